import AssentCore
import AssentEngine
import Foundation
import HTTPTypes
import Hummingbird

/// The web origins whose scripts are trusted like the operator's own pages, at one door: they may read its answers and
/// use the user's session cookie (Fetch §3.3).
struct TrustedOrigins: Sendable, Hashable {
    /// What a browser says about the page that sends a request.
    enum Sender: Hashable {
        /// Nothing: no browser sends it, or the browser follows a link.
        case unnamed
        /// A page of this very server.
        case own
        /// A page of an origin that is listed.
        case listed(String)
        /// Any other page, and one whose origin its browser does not tell (`null`).
        case foreign
    }

    /// The origin of the door itself.
    let own: String

    /// The origins, as browsers write them.
    let listed: Set<String>

    /// What our own answers say in fields.
    private static let exposed = "WWW-Authenticate, Retry-After, Content-API-Version, DPoP-Nonce"

    /// How many seconds a browser may remember the answer to a preflight.
    private static let maxAge = "600"

    /// How many fields a preflight may ask for.
    private static let fieldLimit = 64

    /// Which page sends a request with these fields.
    func sender(of fields: HTTPFields) -> Sender {
        let named = fields[values: .origin]
        guard let origin = named.first else { return .unnamed }
        guard named.count == 1 else { return .foreign }
        if origin == own { return .own }
        return listed.contains(origin) ? .listed(origin) : .foreign
    }

    /// The answer to a listed page's browser that asks whether it may send a request (Fetch §3.3.3); `nil` for anything
    /// else. It must come before anybody asks for credentials: a preflight has none.
    func preflight(_ request: Request, methods: some Sequence<HTTPRequest.Method>) -> Response? {
        guard request.method == .options, request.headers.contains(.accessControlRequestMethod),
            case .listed(let origin) = sender(of: request.headers)
        else { return nil }
        var response = Response(status: .noContent)
        Self.allow(origin, &response)
        response.headers[.accessControlAllowMethods] = methods.map(\.rawValue).joined(separator: ", ")
        // With credentials, `*` is not a wildcard; a listed page may send what it likes.
        let fields = request.headers[values: .accessControlRequestHeaders].flatMap { $0.split(separator: ",") }
            .prefix(Self.fieldLimit)
            .compactMap { HTTPField.Name($0.trimmingCharacters(in: .whitespaces))?.canonicalName }
        if !fields.isEmpty { response.headers[.accessControlAllowHeaders] = fields.joined(separator: ", ") }
        response.headers[.accessControlMaxAge] = Self.maxAge
        return response
    }

    /// Lets a listed page read a response. Returns whether it was sent to one.
    @discardableResult
    func open(_ response: inout Response, to fields: HTTPFields) -> Bool {
        guard case .listed(let origin) = sender(of: fields) else {
            Self.vary(&response)
            return false
        }
        // The answer to a preflight has no fields that a script could read.
        let isPreflight = response.status == .noContent && response.headers.contains(.accessControlMaxAge)
        Self.allow(origin, &response)
        guard !isPreflight else { return true }
        // A service may have named more.
        let named = response.headers[values: .accessControlExposeHeaders]
        response.headers[values: .accessControlExposeHeaders] = [Self.exposed] + named.filter { $0 != Self.exposed }
        return true
    }

    private static func allow(_ origin: String, _ response: inout Response) {
        vary(&response)
        response.headers[.accessControlAllowOrigin] = origin
        response.headers[.accessControlAllowCredentials] = "true"
    }

    private static func vary(_ response: inout Response) {
        let varies = response.headers[values: .vary].contains { value in
            value.split(separator: ",").contains { $0.trimmingCharacters(in: .whitespaces).lowercased() == "origin" }
        }
        if !varies { response.headers.append(HTTPField(name: .vary, value: "Origin")) }
    }
}

/// Which origins are trusted at the doors of the server, by realm.
struct WebOrigins: Sendable {
    /// At `/json`.
    private let json: [String: TrustedOrigins]

    /// At `/oauth2`.
    private let oauth: [String: TrustedOrigins]

    /// Those of all doors. They may read a refusal of what is at none of them: it tells nothing about anybody.
    let anywhere: TrustedOrigins

    /// The origins that the realms and their clients list, at a server with the origin `own`. A preflight does not say
    /// which client asks, so that an origin of one client is trusted at the endpoints that all clients of a realm have.
    init(_ realms: [RealmConfiguration], own: Origin) {
        let own = own.description
        var json: [String: TrustedOrigins] = [:]
        var oauth: [String: TrustedOrigins] = [:]
        for realm in realms {
            let listed = Set(realm.allowedOrigins)
            json[realm.name] = TrustedOrigins(own: own, listed: listed)
            oauth[realm.name] = TrustedOrigins(
                own: own, listed: listed.union(realm.clients.flatMap(\.allowedOrigins)))
        }
        self.json = json
        self.oauth = oauth
        anywhere = TrustedOrigins(own: own, listed: Set(oauth.values.flatMap(\.listed)))
    }

    /// Those of AM's REST interface in a realm; `nil` for an unknown realm.
    func json(realm: String) -> TrustedOrigins? { json[realm] }

    /// Those of the OpenID provider of a realm; `nil` for an unknown realm.
    func oauth(realm: String) -> TrustedOrigins? { oauth[realm] }
}
