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
            case .listed = sender(of: request.headers)
        else { return nil }
        var response = Response(status: .noContent)
        response.headers[.accessControlAllowMethods] = methods.map(\.rawValue).joined(separator: ", ")
        // With credentials, `*` is no wildcard; a listed page may send what it likes.
        let fields = request.headers[values: .accessControlRequestHeaders].flatMap { $0.split(separator: ",") }
            .prefix(Self.fieldLimit)
            .compactMap { HTTPField.Name($0.trimmingCharacters(in: .whitespaces))?.canonicalName }
        if !fields.isEmpty { response.headers[.accessControlAllowHeaders] = fields.joined(separator: ", ") }
        response.headers[.accessControlMaxAge] = Self.maxAge
        open(&response, to: request.headers)
        return response
    }

    /// Lets a listed page read a response. Returns whether it was sent to one.
    @discardableResult
    func open(_ response: inout Response, to fields: HTTPFields) -> Bool {
        let varies = response.headers[values: .vary].contains { value in
            value.split(separator: ",").contains { $0.trimmingCharacters(in: .whitespaces).lowercased() == "origin" }
        }
        if !varies { response.headers.append(HTTPField(name: .vary, value: "Origin")) }
        guard case .listed(let origin) = sender(of: fields) else { return false }
        response.headers[.accessControlAllowOrigin] = origin
        response.headers[.accessControlAllowCredentials] = "true"
        // What our own answers say in fields; a service may have named more.
        let named = response.headers[values: .accessControlExposeHeaders]
        response.headers[values: .accessControlExposeHeaders] =
            ["WWW-Authenticate, Retry-After, Content-API-Version"] + named
        return true
    }
}

/// Which origins are trusted at the doors of the server, by realm.
struct WebOrigins: Sendable {
    /// At `/json`.
    private let json: [String: TrustedOrigins]

    /// At `/oauth2`.
    private let oauth: [String: TrustedOrigins]

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
    }

    /// Those of AM's REST interface in a realm; `nil` for an unknown realm.
    func json(realm: String) -> TrustedOrigins? { json[realm] }

    /// Those of the OpenID provider of a realm; `nil` for an unknown realm.
    func oauth(realm: String) -> TrustedOrigins? { oauth[realm] }
}
