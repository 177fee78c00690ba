import AssentEnforcement

/// Which policies decide on the requests of a route, and what the route asks of its callers' access tokens.
public struct EnforcedRoute: Hashable, Sendable {
    /// The policy set, one that the group of the service's client may ask.
    public let policySet: String

    /// The scopes that an access token must have, all of them.
    public var scopes: [String] = []

    /// What an access token must be issued for (`aud`), one of them. When there are none: the service's own origin, or
    /// the realm's provider.
    public var audience: [String] = []

    /// Whether only an access token or a session that belongs to a key lets a caller in.
    public var isSenderConstrained = false

    /// The claims about the user that the handler gets, of those that the server knows, for example `email`.
    public var claims: [String] = []

    /// A route whose policies are in this set. It takes sessions, and access tokens with all of these scopes.
    public init(policySet: String, scopes: [String] = []) {
        self.policySet = policySet
        self.scopes = scopes
    }

    /// What is asked of a caller's access token, at a service with this origin. Clients that call for themselves are
    /// not let in: a handler gets a user.
    func requirement(origin: String) -> EnforcementQuestion.Requirement {
        var requirement = EnforcementQuestion.Requirement()
        requirement.scopes = scopes
        requirement.audience = audience.isEmpty ? [origin] : audience
        requirement.includesIssuer = audience.isEmpty
        requirement.kinds = ["user"]
        requirement.isSenderConstrained = isSenderConstrained
        return requirement
    }
}
