import AssentSigningProtocol

/// Refuses offers that break a rule, that this device cannot fulfil, or that take protection from a key.
struct OfferRules {
    let parts: DeviceParts

    /// Checks the offer for a new container.
    func check(_ offer: Offer, for record: ContainerRecord, others: [ContainerRecord]) throws(SigningError) {
        try SigningError.mapped(try offer.check())
        guard offer.identity == record.identity.thumbprint else {
            throw SigningError(.offerRefused, "The offer names another identity key.")
        }
        guard record.pid.map({ $0 == offer.pid }) ?? true, !others.contains(where: { $0.did == offer.did }) else {
            throw SigningError(.offerRefused, "The offer is for another invite, or for a container that exists.")
        }
        guard offer.commit == .digits || record.pid != nil else {
            throw SigningError(.offerRefused, "The offer asks for no digits although the invite was typed.")
        }
        try parts.newPasswords.check(offer, renewing: nil)
    }

    /// Checks the offer for new keys of a container.
    func check(_ offer: Offer, for renewal: RenewalRecord, of record: ContainerRecord) throws(SigningError) {
        try SigningError.mapped(try offer.check(isRenewal: true))
        guard offer.did == renewal.next.did, offer.identity == record.identity.thumbprint else {
            throw SigningError(.offerRefused, "The offer is for another container, or names another identity key.")
        }
        guard renewal.next.pid.map({ $0 == offer.pid }) ?? true,
            offer.commit == (renewal.hasCode ? .digits : .exchange)
        else { throw SigningError(.offerRefused, "The offer does not fit the renewal.") }
        let old = try renewal.oldOfferContent()
        for key in offer.keys where key.slot == nil {
            // Under another name it would be the same loss.
            let others = old.keys.filter { $0.usage == key.usage }
            let isTaken =
                old.keys.contains { $0.label == key.label && $0.slot != nil }
                || (!others.isEmpty && others.allSatisfy { $0.slot != nil })
            guard !isTaken else {
                throw SigningError(.protectionPolicy, "The offer takes the password from the key \(key.label).")
            }
        }
        try parts.newPasswords.check(offer, renewing: record)
    }
}
