package import AssentCore

/// Says what the policies grant. It is a value without I/O: the same question always has the same answer, and nothing
/// is spent or stored. What takes and creates transactions is ``AccessSettlement``.
package struct PolicyDecisionPoint: Sendable {
    private let policySets: [PolicySet]

    /// A decision point for these policy sets, which have passed ``PolicySet/validate(journeys:at:)``.
    package init(policySets: [PolicySet]) {
        self.policySets = policySets
    }

    /// The policy set of that name in a realm, or `nil`.
    package func policySet(_ name: String, realm: String) -> PolicySet? {
        policySets.first { $0.name == name && $0.realm == realm }
    }

    /// The policy sets of a realm.
    package func policySets(realm: String) -> [PolicySet] { policySets.filter { $0.realm == realm } }

    /// The policies of a set that are about a resource, for whomever they are.
    ///
    /// Most services take a path with a slash at its end for the one without. So where policies are about a path with
    /// one, those that are only about the path without it are among them, and both must be granted. Without an action
    /// that is not so: AM's enforcement points, which do not tell it, compare a last slash.
    ///
    /// - Parameters:
    ///   - set: the set.
    ///   - resource: the resource.
    ///   - action: only the policies that speak of this action are taken; `nil` when the action is not known.
    /// - Returns: the policies, in the order of the set.
    package func match(_ set: PolicySet, resource: CanonicalResource, action: String?) -> MatchedPolicies {
        let speaking = set.policies.filter { policy in
            policy.isActive && action.map { policy.actionValues[$0] != nil } ?? true
        }
        let covering = speaking.filter { $0.covers(resource) }
        if action != nil, !covering.isEmpty, let bare = resource.withoutLastSlash {
            let both = speaking.filter { $0.covers(resource) || $0.covers(bare) }
            if both.count > covering.count {
                return MatchedPolicies(
                    set: set, resource: resource, action: action, policies: both, spellings: [resource, bare])
            }
        }
        return MatchedPolicies(set: set, resource: resource, action: action, policies: covering, spellings: [])
    }

    /// What the matched policies say of somebody under these circumstances, before any transaction is looked at.
    package func assess(_ matched: MatchedPolicies, facts: PolicyFacts) -> PolicyAssessment {
        PolicyAssessment(matched, facts: facts)
    }
}

/// The policies that are about a resource and, where that is known, an action.
package struct MatchedPolicies: Sendable {
    /// Their set.
    package let set: PolicySet

    /// The resource.
    package let resource: CanonicalResource

    /// The action that is asked for; `nil` when it is not known.
    package let action: String?

    /// The policies.
    package let policies: [Policy]

    /// The spellings of the resource, with and without a slash at the path's end, that must both be granted; empty
    /// where the resource alone is decided on.
    let spellings: [CanonicalResource]

    /// Whether one of them binds the body of a request, which must then be read whole before anything is settled.
    package var bindsBody: Bool { policies.contains { $0.bind.contains(.body) } }
}

/// Who asks, and under which circumstances.
package struct PolicyFacts: Sendable {
    /// The user, when they are known.
    package let user: User?

    /// The client, where it calls for itself.
    package let client: ClientItself?

    /// Their live session, when there is one. Only with one do conditions on sessions, levels and transactions hold.
    package let session: LiveSession?

    /// The client's address, when it is known and believed.
    package let clientAddress: IPAddress?

    /// Seconds since 1970 by the server's clock; `nil` when nobody has looked at it, and then no condition on a time
    /// holds.
    package var now: Int64?

    /// The scopes of the access token that came with the request; `nil` when none came.
    package var scopes: Set<String>?

    /// When the user was in the network of ``clientAddress`` before; `nil` when nobody has looked.
    package var sightings: [NetworkSighting]?

    /// The claims of a token that was verified, when that says whose access it is; never what a caller merely says.
    package var claims: JSONObject?

    /// Facts about the user of a live session, or about nobody.
    package init(session: LiveSession?, clientAddress: IPAddress? = nil, now: Int64? = nil) {
        self.init(user: session?.user, session: session, clientAddress: clientAddress, now: now)
    }

    /// Facts about a user who need not have a session.
    package init(
        user: User?, client: ClientItself? = nil, session: LiveSession?, clientAddress: IPAddress? = nil,
        now: Int64? = nil, scopes: Set<String>? = nil, claims: JSONObject? = nil
    ) {
        self.user = user
        self.client = client
        self.session = session
        self.clientAddress = clientAddress
        self.now = now
        self.scopes = scopes
        self.claims = claims
    }
}
