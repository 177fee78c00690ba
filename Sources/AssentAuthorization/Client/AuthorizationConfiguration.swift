public import AssentCore
public import AssentTokens

/// Which origins are protected resources.
public struct AuthorizationConfiguration: Sendable {
    /// What each origin gets. No other origin ever gets a credential, and an advice of no other is looked at.
    public let resources: [Origin: ResourceAccess]

    /// Whether an approval is refused unless the server says that it is for all of this request: method, URL with
    /// query, and body. AM does not.
    public var requiresBinding: Bool

    /// Narrows what an origin of ``resources`` gets, or names others, while the program runs; `nil` where what was
    /// configured holds as it is.
    package var changing: (@Sendable (Origin) -> ResourceAccess?)?

    /// Waits until ``changing`` may be asked, no longer than the call may take: a process that has just started may not
    /// know yet what was taken away.
    package var settle: (@Sendable (HTTPCall) async throws -> Void)?

    /// Whether ``settle`` has nothing to wait for; `nil` where there is nothing to settle.
    package var settled: (@Sendable () -> Bool)?

    /// Whether ``changing`` may be asked.
    package var isSettled: Bool { settled?() ?? true }

    /// What an origin gets now; `nil` for one that is not a protected resource.
    package func access(to origin: Origin) -> ResourceAccess? {
        changing.map { $0(origin) } ?? resources[origin]
    }

    /// A configuration, origins written as URLs without path, for example `https://api.example.com`.
    ///
    /// - Throws: ``AuthorizationError`` with code `invalidConfiguration` when one is not an origin, named twice, or
    ///   neither https nor on this machine.
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
