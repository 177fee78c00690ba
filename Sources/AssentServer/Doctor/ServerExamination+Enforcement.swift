import AssentConfiguration
import AssentCore
import AssentEngine

/// What the groups of gateways elsewhere may ask, and what comes of it. Names that are not there and addresses that are
/// no origins are refused when the file is read.
extension ServerExamination {
    static func enforcement(_ configuration: ServerConfiguration) -> [Diagnosis] {
        configuration.realms.flatMap { realm in
            realm.enforcement.flatMap { group in
                let sets = realm.policySets.filter { group.policySets.contains($0.name) }
                return unanswered(group, sets, realm) + unbelieved(group, sets, realm)
            }
        }
    }

    /// Sets and origins of a group that no policy brings together: whatever is asked there is denied.
    private static func unanswered(
        _ group: EnforcementGroup, _ sets: [PolicySet], _ realm: RealmConfiguration
    ) -> [Diagnosis] {
        let origins = group.origins.sorted { $0.description < $1.description }
        let answered = origins.map { origin in sets.map { $0.isAbout(origin) } }
        let lostSets = sets.indices.filter { set in !answered.contains { $0[set] } }
        let lostOrigins = origins.indices.filter { origin in !answered[origin].contains(true) }
        return lostSets.map {
            Diagnosis(
                .note,
                "no policy of \(sets[$0].name) is about an origin of the gateways \(group.name) of \(realm.name): what they "
                    + "ask it is denied. Name one in the resources of a policy, or take the set from policySets")
        }
            + lostOrigins.map {
                Diagnosis(
                    .note,
                    "no policy that the gateways \(group.name) of \(realm.name) may ask is about \(origins[$0]): what they "
                        + "ask there is denied. Name it in the resources of a policy, or take it from origins")
            }
    }

    /// Policies of the gateway's sets that no gateway asks, since they are about other addresses: those of a file that
    /// was made for localhost and is used at another host.
    static func unasked(_ configuration: ServerConfiguration) -> [Diagnosis] {
        guard let gateway = configuration.gateway, let own = try? Origin(gateway.publicURL) else { return [] }
        return configuration.realms.flatMap { realm in
            realm.policySets.flatMap { set -> [Diagnosis] in
                let access = GatewayRoute.Access.policies(realm: realm.name, policySet: set.name)
                guard gateway.routes.contains(where: { $0.access == access }) else { return [] }
                let groups = realm.enforcement.filter { $0.policySets.contains(set.name) }
                let origins = [own] + groups.flatMap { Array($0.origins) }
                return set.policies.filter { policy in policy.isActive && !origins.contains { policy.isAbout($0) } }
                    .map {
                        Diagnosis(
                            .note,
                            "the policy \($0.name) of \(realm.name), \(set.name), is not about \(own), where the gateway "
                                + "is, so it grants nothing there. Name that address in its resources, unless it is "
                                + "for programs that ask over REST")
                    }
            }
        }
    }

    /// Policies that look at an address that nobody believes the group.
    private static func unbelieved(
        _ group: EnforcementGroup, _ sets: [PolicySet], _ realm: RealmConfiguration
    ) -> [Diagnosis] {
        guard !group.believesAddress else { return [] }
        return sets.flatMap { set in
            set.policies.filter { $0.condition.map(looksAtAddress) ?? false }.map {
                Diagnosis(
                    .note,
                    "the policy \($0.name) of \(realm.name), \(set.name) looks at the client's address, which the gateways "
                        + "\(group.name) are not believed: the condition never holds for them. Set believesAddress: true "
                        + "if they know it")
            }
        }
    }

    private static func looksAtAddress(_ condition: PolicyCondition) -> Bool {
        switch condition {
        case .and(let conditions), .or(let conditions): conditions.contains(where: looksAtAddress)
        case .not(let condition): looksAtAddress(condition)
        case .address, .usualNetwork: true
        case .authLevel, .authenticateToService, .sessionProperty, .sessionAge, .time, .scopes, .transaction: false
        }
    }
}

extension PolicySet {
    /// Whether a policy is about some address of an origin.
    fileprivate func isAbout(_ origin: Origin) -> Bool { policies.contains { $0.isAbout(origin) } }
}

extension Policy {
    /// Whether it is about some address of an origin.
    fileprivate func isAbout(_ origin: Origin) -> Bool {
        let addresses = ["\(origin)/*", "\(origin)/*?*"].compactMap { try? ResourcePattern($0) }
        return resources.contains { resource in addresses.contains { resource.overlaps($0) } }
    }
}
