public import AssentCore

/// What an origin gets, and how it says that it wants the user's approval.
public struct ResourceAccess: Hashable, Sendable {
    /// Whether requests carry the access token as `Authorization: Bearer`.
    public let sendsAccessToken: Bool

    /// Whether requests carry AM's session: in the cookie, and in a header field of the cookie's name.
    public let sendsSession: Bool

    /// Whether a body that is AM's policy decision counts as an advice. Without this only 401 challenges and 307 redirects do.
    public let acceptsDecisions: Bool

    /// Whether a transaction's id goes back in the header field `X-TxID`, not as `_txid` in the query.
    public let sendsTransactionInHeader: Bool

    /// The access token.
    public static let accessToken = ResourceAccess(token: true, session: false)

    /// AM's session.
    public static let session = ResourceAccess(token: false, session: true)

    /// The access token and AM's session.
    public static let both = ResourceAccess(token: true, session: true)

    /// The same for an origin that asks AM itself and passes its decision on in the body.
    ///
    /// - Parameter transactionInHeader: whether it reads a transaction's id from `X-TxID`.
    /// - Returns: the access with decisions accepted.
    public func acceptingDecisions(transactionInHeader: Bool = true) -> ResourceAccess {
        ResourceAccess(
            token: sendsAccessToken, session: sendsSession, decisions: true, transactionInHeader: transactionInHeader)
    }

    private init(token: Bool, session: Bool, decisions: Bool = false, transactionInHeader: Bool = false) {
        sendsAccessToken = token
        sendsSession = session
        acceptsDecisions = decisions
        sendsTransactionInHeader = transactionInHeader
    }
}

/// Which origins are protected resources.
public struct AuthorizationConfiguration: Sendable {
    /// What each origin gets. No other origin ever gets a credential, and an advice of no other is looked at.
    public let resources: [Origin: ResourceAccess]

    /// Whether an approval is refused unless the server says that it is for all of this request: method, URL with query, and
    /// body. AM does not.
    public var requiresBinding: Bool

    /// A configuration, origins written as URLs without path, for example `https://api.example.com`.
    ///
    /// - Throws: ``AuthorizationError`` with code `invalidConfiguration` when one is no origin, named twice, or neither https
    ///   nor on this machine.
    public init(resources: [String: ResourceAccess], requiresBinding: Bool = false) throws(AuthorizationError) {
        var origins: [Origin: ResourceAccess] = [:]
        for (text, access) in resources {
            let origin: Origin
            do throws(WireError) {
                origin = try Origin(headerValue: text)
            } catch {
                throw AuthorizationError(.invalidConfiguration, "\(text) is no origin: \(error.detail)")
            }
            guard origin.isSecure || origin.host.isLoopback else {
                throw AuthorizationError(.invalidConfiguration, "\(text) is neither https nor on this machine")
            }
            guard origins.updateValue(access, forKey: origin) == nil else {
                throw AuthorizationError(.invalidConfiguration, "\(text) is named twice")
            }
        }
        self.resources = origins
        self.requiresBinding = requiresBinding
    }
}
