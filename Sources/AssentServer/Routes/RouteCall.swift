import AssentCore
import AssentEngine
import Hummingbird

/// A request as its handler gets it: held to the route's row, its realm and its caller found.
struct RouteCall<Service: Sendable>: Sendable {
    /// The request.
    let request: Request

    /// The row.
    let rule: RouteRule

    /// What the path has for `{id}`; empty where the row has none.
    let id: String

    /// The realm.
    let realm: String

    /// What serves the realm.
    let service: Service

    /// Which pages are trusted here.
    let trusted: TrustedOrigins

    /// Who sends it, as far as the row asks for it.
    let caller: RouteCaller

    /// Where it comes from.
    let client: ClientAddress

    /// The caller's session, for rows that ask for one.
    ///
    /// - Throws: ``RouteRefusal/sessionRequired``.
    var session: LiveSession {
        get throws(RouteRefusal) {
            guard case .session(let session, _) = caller else { throw .sessionRequired }
            return session
        }
    }

    /// The access token's grant, for rows that ask for a token.
    ///
    /// - Throws: ``RouteRefusal/tokenRequired``.
    var grant: AccessGrant {
        get throws(RouteRefusal) {
            guard case .accessToken(let grant) = caller else { throw .tokenRequired }
            return grant
        }
    }

    /// The client, for rows that ask for a confidential one.
    ///
    /// - Throws: ``RouteRefusal/tokenRequired``.
    var party: OAuthClient {
        get throws(RouteRefusal) {
            guard case .confidentialClient(let client) = caller else { throw .tokenRequired }
            return client
        }
    }

    /// The body, which is at most as large as the row says.
    ///
    /// - Throws: ``RequestError`` 413, 400.
    func body() async throws -> [UInt8] { try await request.bytes(upTo: rule.bodyLimit) }

    /// The body as a JSON object; an empty one is an empty object.
    ///
    /// - Throws: ``RequestError`` 413, 415, 400.
    func jsonObject() async throws -> JSONObject { try await request.jsonObject(upTo: rule.bodyLimit) }

    /// The action that the query names.
    func action() throws -> String? { try request.query("_action") }
}

/// Who sends a request, as far as its row asks for it.
enum RouteCaller: Sendable {
    /// Nobody who is known, or the row does not ask.
    case unknown
    /// The user of a live session of the realm.
    case session(LiveSession, SessionCarrier)
    /// Somebody with a valid access token of the realm.
    case accessToken(AccessGrant)
    /// A client with a secret, by an access token for this service.
    case confidentialClient(OAuthClient)

    /// The user's session, where one was presented and looked for.
    var session: LiveSession? {
        if case .session(let session, _) = self { session } else { nil }
    }
}
