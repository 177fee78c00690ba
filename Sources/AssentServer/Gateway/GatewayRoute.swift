import AssentCore
import AssentEngine

/// One service behind the gateway.
package struct GatewayRoute: Sendable, Hashable {
    /// Who may use it.
    package enum Access: Sendable, Hashable {
        /// Everybody: nobody is asked who they are.
        case everybody
        /// Those whom the policies of a set of a realm let in.
        case policies(realm: String, policySet: String)
    }

    /// Its name, for the log.
    package let name: String

    /// The path that it answers, and all below it; `/` for everything.
    package let path: String

    /// The service, or several that do the same.
    package var upstream: UpstreamSettings

    /// What stands in the place of ``path`` in the path that a service gets: `/` for nothing, `nil` for the path
    /// itself.
    package var rewrite: String?

    /// Who may use it.
    package let access: Access

    /// For whom its callers may call; nothing is asked of everybody.
    package let accepts: Set<CallerKind>

    /// The one media type, without parameters, of bodies that a policy binds here; in lower case.
    package let mediaType: String

    /// The largest body on a route whose policy binds the body, in bytes.
    package let maxBodyBytes: Int

    /// Whether the service gets the `Authorization` field. It then sees the access token.
    package let keepsAuthorization: Bool

    /// The scopes that an access token must have here; a session needs none.
    package let scopes: [String]

    /// What an access token must be for (`aud`), one of them. Empty: the realm's issuer or the gateway's own origin.
    package let audience: [String]

    /// Whether only an access token that belongs to a key, with a proof of that key, lets a caller in.
    package let isSenderConstrained: Bool

    /// Fields of clients that reach the service beside the ordinary ones, in lower case.
    package let passHeaders: Set<String>

    /// Ordinary fields that the service believes of the gateway alone, in lower case: a client's own never reach it.
    package let stripHeaders: Set<String>

    /// The web origins whose pages may call it, with the session cookie.
    package let allowedOrigins: Set<String>

    /// Where users go on after they have decided on one of its requests in a browser: a path of the gateway, or an
    /// app's page. `nil` when there is no such place.
    package let home: String?

    /// How the service is told in a signed token who calls; `nil` where it is not.
    package var identity: RouteIdentity?

    /// Whether only sealed requests reach it, whatever client sends them (docs/payload-encryption.md).
    package var requiresSealing = false

    /// Which actions its requests are for policies.
    package var actions = RouteActions()

    /// What is allowed of its replies that do not end by themselves.
    package var streams = RouteStreams()

    /// What is allowed of its WebSockets; `nil` where it has none.
    package var tunnels: RouteTunnels?

    /// For how many seconds a gateway elsewhere may use a decision again for the same safe request; 0 for never.
    package var cacheSeconds = 0

    /// The most of them.
    static let longestCache = 60

    /// The path as it is compared: policies do not tell upper from lower case either.
    let folded: String

    /// A route.
    package init(
        name: String, path: String = "/", upstream: UpstreamSettings, access: Access,
        accepts: Set<CallerKind> = [.user], mediaType: String = "application/json", maxBodyBytes: Int = 64 << 10,
        keepsAuthorization: Bool = false,
        scopes: [String] = [], audience: [String] = [], isSenderConstrained: Bool = false,
        passHeaders: Set<String> = [], stripHeaders: Set<String> = [], allowedOrigins: Set<String> = [],
        home: String? = nil
    ) {
        self.name = name
        self.path = path
        self.upstream = upstream
        self.access = access
        self.accepts = accepts
        self.mediaType = mediaType
        self.maxBodyBytes = maxBodyBytes
        self.keepsAuthorization = keepsAuthorization
        self.scopes = scopes
        self.audience = audience
        self.isSenderConstrained = isSenderConstrained
        self.passHeaders = passHeaders
        self.stripHeaders = stripHeaders
        self.allowedOrigins = allowedOrigins
        self.home = home
        folded = path.lowercased()
    }

    /// What an access token must have here, at a gateway of this origin.
    func requirement(origin: String) -> AccessTokenRequirement {
        AccessTokenRequirement(
            scopes: scopes, audience: audience.isEmpty ? [origin] : audience, includesIssuer: audience.isEmpty,
            kinds: accepts, isSenderConstrained: isSenderConstrained)
    }

    /// Whether both answer the same paths.
    func isRival(of other: GatewayRoute) -> Bool { folded == other.folded }

    /// Whether a route at the path `folded` answers another path, both in lower case: its own path, or one below it.
    private static func answers(_ path: String, at folded: String) -> Bool {
        guard folded != "/" else { return true }
        guard path.utf8.starts(with: folded.utf8) else { return false }
        let next = path.utf8.dropFirst(folded.utf8.count).first
        return next == nil || next == UInt8(ascii: "/")
    }

    /// The request target that the service gets. The policies decide about the resource as the caller named it, which
    /// is also what is approved and bound; only what is forwarded has another beginning.
    ///
    /// A resource has no dot segments, no encoded slashes and no empty segments, and what follows the route's path
    /// begins with a slash or is empty: so nothing that a caller writes leads out of the new beginning.
    func target(of resource: CanonicalResource) -> String {
        guard let rewrite else { return resource.target }
        // Both are ASCII here: a path in another alphabet answers nothing.
        let count = folded == "/" ? 0 : folded.utf8.count
        let path = (rewrite == "/" ? "" : rewrite) + EscapedText.dropping(count, of: resource.path)
        return (path.isEmpty ? "/" : path) + (resource.query.map { "?" + $0 } ?? "")
    }

    /// Whether a text can be ``rewrite``: a path as it is forwarded, without a slash at its end.
    static func canRewrite(to path: String) -> Bool {
        guard path.hasPrefix("/"), path == "/" || !path.hasSuffix("/") else { return false }
        guard let resource = try? CanonicalResource("http://service.example\(path)") else { return false }
        return resource.path == path && resource.query == nil
    }

    /// The route of `routes` that answers `path`: of several the one with the longest path, wherever it stands.
    static func answering(_ path: String, of routes: [GatewayRoute]) -> GatewayRoute? {
        answering(path, of: routes, folded: \.folded)
    }

    /// The same of what has a route: `folded` is its path in lower case.
    static func answering<Served>(_ path: String, of routes: [Served], folded: (Served) -> String) -> Served? {
        let path = EscapedText.compared(path).lowercased()
        var (found, length) = (nil as Served?, -1)
        for route in routes {
            let own = folded(route)
            guard own.utf8.count > length, answers(path, at: own) else { continue }
            (found, length) = (route, own.utf8.count)
        }
        return found
    }
}
