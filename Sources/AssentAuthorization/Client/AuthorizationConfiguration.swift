public import AssentCore
public import AssentTokens

/// Which origins are protected resources.
public struct AuthorizationConfiguration: Sendable {
    /// What each origin gets. No other origin ever gets a credential, and an advice of no other is looked at.
    public let resources: [Origin: ResourceAccess]

    /// Whether an approval is refused unless the server says that it is for all of this request: method, URL with
    /// query, and body. AM does not.
    public var requiresBinding: Bool

    /// A configuration, origins written as URLs without path, for example `https://api.example.com`.
    ///
    /// - Throws: ``AuthorizationError`` with code `invalidConfiguration` when one is no origin, named twice, or neither
    ///   https nor on this machine.
    public init(resources: [String: ResourceAccess], requiresBinding: Bool = false) throws(AuthorizationError) {
        var origins: [Origin: ResourceAccess] = [:]
        for (text, access) in resources {
            let origin: Origin
            do throws(WireError) {
                origin = try Origin(headerValue: text)
            } catch {
                throw AuthorizationError(.invalidConfiguration, "\(text) is not an origin: \(error.detail).")
            }
            guard origin.isSecure || origin.host.isLoopback else {
                throw AuthorizationError(.invalidConfiguration, "\(text) is neither https nor on this machine.")
            }
            guard origins.updateValue(access, forKey: origin) == nil else {
                throw AuthorizationError(.invalidConfiguration, "\(text) is named twice.")
            }
        }
        self.resources = origins
        self.requiresBinding = requiresBinding
    }
}
