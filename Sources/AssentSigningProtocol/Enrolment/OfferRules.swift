extension Offer {
    /// Checks what every device checks: the keys, and the rules on password modes. What an app wants beyond that is its
    /// own.
    ///
    /// - Parameter isRenewal: whether old keys vouch for the new ones.
    /// - Throws: ``SigningProtocolError`` with `offerRefused`.
    package func check(isRenewal: Bool = false) throws(SigningProtocolError) {
        for usage in SigningKeyUsage.allCases where !usage.count.contains(keys.count(where: { $0.usage == usage })) {
            throw Self.refused("has too many or too few keys for \(usage.rawValue)", "keys")
        }
        guard Set(keys.map(\.label)).count == keys.count else { throw Self.refused("has a label twice", "keys") }
        guard Set(policies.map(\.id)).count == policies.count else {
            throw Self.refused("has a policy twice", "policies")
        }
        guard Set(slots.map(\.slot)).count == slots.count else { throw Self.refused("has a slot twice", "slots") }
        for slot in slots where !keys.contains(where: { $0.slot == slot.slot }) {
            throw Self.refused("has a slot without keys", "slots")
        }
        for slot in slots where Set(keys.filter { $0.slot == slot.slot }.map(\.policy)).count > 1 {
            throw Self.refused("has keys of several policies in one slot", "keys")
        }
        for key in keys { try check(key) }
        for slot in slots where slot.mode == .assisted {
            guard slot.slot == .signing else {
                throw Self.refused("has an assisted slot that is not the one for signing", "slots")
            }
            guard slots.allSatisfy({ $0.mode == .assisted }) else {
                throw Self.refused("has local and assisted slots together", "slots")
            }
        }
        guard commit == .digits || isRenewal || !keys.contains(where: \.usage.needsPossession) else {
            throw Self.refused("would enrol keys that approve without the user's digits", "commit")
        }
    }

    private func check(_ key: OfferedKey) throws(SigningProtocolError) {
        guard let policy = policies.first(where: { $0.id == key.policy }) else {
            throw Self.refused("has a key whose policy is missing", "keys")
        }
        guard let slot = key.slot else {
            guard policy.kind == .device else {
                throw Self.refused("has a key with a password and without a slot", "keys")
            }
            return
        }
        guard key.usage.passwordSlot == slot, let offered = slots.first(where: { $0.slot == slot }),
            policy.password?.mode == offered.mode
        else { throw Self.refused("has a key whose slot, policy and mode do not fit together", "keys") }
    }

    private static func refused(_ why: String, _ member: String) -> SigningProtocolError {
        SigningProtocolError(.offerRefused, "The server's offer \(why).", member: member)
    }
}
