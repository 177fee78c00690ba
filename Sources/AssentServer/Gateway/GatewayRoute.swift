import AssentCore

/// One protected service behind the gateway.
package struct GatewayRoute: Sendable, Hashable {
    /// Its name, for the log.
    package let name: String

    /// The path that it answers, and all below it; `/` for everything.
    package let path: String

    /// Scheme, host and port of the service.
    package let upstream: String

    /// The realm whose sessions and policies count.
    package let realm: String

    /// The policy set that decides.
    package let policySet: String

    /// The largest body on a route whose policy binds the body, in bytes.
    package let maxBodyBytes: Int

    /// Whether the service gets the `Authorization` field. It then sees the access token.
    package let keepsAuthorization: Bool

    /// The scopes that an access token must have here; a session needs none.
    package let scopes: [String]

    /// The web origins whose scripts may use the session cookie with methods that change something.
    package let allowedOrigins: [String]

    /// A route.
    package init(
        name: String, path: String = "/", upstream: String, realm: String, policySet: String,
        maxBodyBytes: Int = 64 << 10, keepsAuthorization: Bool = false, scopes: [String] = [],
        allowedOrigins: [String] = []
    ) {
        self.name = name
        self.path = path
        self.upstream = upstream
        self.realm = realm
        self.policySet = policySet
        self.maxBodyBytes = maxBodyBytes
        self.keepsAuthorization = keepsAuthorization
        self.scopes = scopes
        self.allowedOrigins = allowedOrigins
    }

    /// Whether the route answers `path`: its own path, or one below it.
    func answers(_ path: String) -> Bool {
        self.path == "/" || path == self.path || path.hasPrefix(self.path + "/")
    }
}
