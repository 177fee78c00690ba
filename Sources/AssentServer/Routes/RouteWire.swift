import AssentCore
import AssentEngine
import Hummingbird

/// What differs between the tables of routes: how a request names its realm and its access token, and how a refusal is
/// worded.
protocol RouteWire: Sendable {
    /// What serves a realm.
    associatedtype Service: Sendable

    /// Whether `?realm=` names the realm, as AM has it.
    static var readsRealmParameter: Bool { get }

    /// Which pages are trusted in a realm; `nil` for an unknown realm.
    func trusted(_ origins: WebOrigins, realm: String) -> TrustedOrigins?

    /// Checks what the wire asks of every request that has a row, before its caller is looked up.
    ///
    /// - Throws: what ``response(refusing:to:of:realm:)`` words.
    func check(_ request: Request) throws

    /// The access token of a request, unchecked.
    ///
    /// - Throws: what ``response(refusing:to:of:realm:)`` words.
    func accessToken(of request: Request, _ rule: RouteRule) async throws -> TokenCredentials

    /// What an access token of a confidential client must be issued for, besides the realm's issuer.
    func audience(of service: Service) -> [String]

    /// The answer to a request that is refused.
    ///
    /// - Parameters:
    ///   - error: a ``RouteRefusal``, a ``RequestError``, or what the handler threw.
    ///   - request: the request.
    ///   - rule: its row; `nil` if it has none.
    ///   - realm: its realm; `nil` if there was none.
    /// - Returns: the refusal in the wire's form.
    /// - Throws: `error`, when it is the server's own fault and the wire has no words for that.
    func response(refusing error: any Error, to request: Request, of rule: RouteRule?, realm: String?) throws
        -> Response

    /// Adds to each answer of a row, errors too, what the wire gives with it.
    func complete(_ response: inout Response, of rule: RouteRule, service: Service)
}

extension RouteWire {
    func check(_ request: Request) throws {}

    func accessToken(of request: Request, _ rule: RouteRule) async throws -> TokenCredentials {
        TokenCredentials(request.headers[values: .authorization])
    }

    func audience(of service: Service) -> [String] { [] }

    func complete(_ response: inout Response, of rule: RouteRule, service: Service) {}
}

/// Why a request is refused before its handler sees it.
enum RouteRefusal: Error, Hashable {
    /// The path leads to no route.
    case noRoute
    /// The realm does not exist, or does not offer this.
    case unknownRealm(String)
    /// The route does not take the method.
    case method
    /// A foreign page may have made the user's browser send it; the text says how that is seen.
    case forgery(String)
    /// There is no live session of the realm.
    case sessionRequired
    /// The session is one of another realm, and the row tells so.
    case foreignSession
    /// There is no access token.
    case tokenRequired
    /// The access token, or the proof beside it or beside a session, is not valid here.
    case tokenRefused(TokenRefusal)
    /// The credentials are valid, and of a kind that the route's door is not open for.
    case kind
}
