package import AssentCore

/// Gateways elsewhere that have one right: what they may ask about, and what they are believed.
package struct EnforcementGroup: Sendable, Hashable {
    /// The name, unique in the realm. A transaction that one of them asked for is taken by another one of them, and by
    /// nobody else.
    package let name: String

    /// The OAuth clients that they are.
    package let clients: Set<String>

    /// The policy sets of the realm that they may ask.
    package let policySets: Set<String>

    /// The origins under which their clients know them.
    package let origins: Set<Origin>

    /// Whether their word for the address of a client is believed.
    package var believesAddress = false

    /// The largest body that they may send, in bytes.
    package var maxBodyBytes = 64 << 10

    /// A group.
    package init(name: String, clients: Set<String>, policySets: Set<String>, origins: Set<Origin>) {
        self.name = name
        self.clients = clients
        self.policySets = policySets
        self.origins = origins
    }

    /// What a group may not do.
    package enum Fault: Error, Sendable, Hashable {
        /// Ask this policy set.
        case policySet
        /// Speak for this origin.
        case origin
    }

    /// Checks that the group may ask a set about a resource, with proofs for a URL.
    ///
    /// - Parameters:
    ///   - policySet: the set.
    ///   - urls: the resource, the URL that proofs are for, and the issuer of a token, each at one of the origins.
    /// - Throws: ``Fault``.
    package func check(policySet: String, urls: [String]) throws(Fault) {
        guard policySets.contains(policySet) else { throw .policySet }
        var checked: String?
        for url in urls {
            // The resource is nearly always the very URL that proofs are for.
            if let checked, checked.utf8.elementsEqual(url.utf8) { continue }
            guard let origin = try? Origin(url), origins.contains(origin) else { throw .origin }
            checked = url
        }
    }
}
