import AssentCore
package import AssentSigningProtocol

/// An `assisted` password slot of a container, as its offer has it.
struct AssistedSlot: Sendable {
    let slot: PasswordSlot
    /// How often a password may be wrong.
    let lock: AssistedPasswordLock
    let rules: PasswordRules
    /// What a receipt says of it.
    let method: ReceiptMethod

    /// Seconds that a password must be old before it is changed.
    var minimumAge: Int64 { Int64(rules.minAge) * 86400 }

    /// The time after which the password must have been set; -1 when it may be of any age.
    func passwordSetAfter(at now: Int64) -> Int64 { rules.maxAge == 0 ? -1 : now - Int64(rules.maxAge) * 86400 }

    /// A slot of an offer; `nil` unless it is one with this mode.
    init?(_ slot: PasswordSlot, of offer: Offer) {
        guard offer.slots.contains(where: { $0.slot == slot && $0.mode == .assisted }),
            let key = offer.keys.first(where: { $0.slot == slot }),
            let policy = offer.policies.first(where: { $0.id == key.policy }), let password = policy.password,
            case .assisted(let lock) = password.lock
        else { return nil }
        self.slot = slot
        self.lock = lock
        rules = password.rules
        method = policy.kind == .password ? .pin : .user
    }
}

extension SigningPart {
    /// An `assisted` slot of a container; `nil` when it has no such one.
    func assisted(
        _ slot: PasswordSlot, of container: SigningContainerRecord
    ) throws(SigningProtocolError) -> AssistedSlot? {
        AssistedSlot(slot, of: try realm.offers.offer(container.offer))
    }

    /// The same, which must be there.
    ///
    /// - Throws: ``SigningRefusal`` `invalid_request`.
    func required(_ slot: PasswordSlot, of container: SigningContainerRecord) throws -> AssistedSlot {
        guard let assisted = try assisted(slot, of: container) else { throw SigningSlots.noSuchSlot }
        return assisted
    }
}

extension SigningSettings {
    /// The password slots of the keys that devices make.
    var plannedSlots: [(slot: PasswordSlot, mode: PasswordMode)] {
        PasswordSlot.allCases.compactMap { slot in
            guard let key = offeredKeys.first(where: { $0.slot == slot }),
                let mode = policies.first(where: { $0.id == key.policy })?.password?.mode
            else { return nil }
            return (slot, mode)
        }
    }

    /// What a device must be able to do.
    var neededModes: Set<ProtectionMode> {
        Set([.device] + plannedSlots.map { $0.mode == .local ? .local : .assisted })
    }

    /// The policies of an offer: those that a key has.
    var offeredPolicies: [ProtectionPolicy] {
        let used = Set(offeredKeys.map(\.policy))
        return [ProtectionPolicy(deviceOnly: Self.policyID)] + policies.filter { used.contains($0.id) }
    }

    /// A key of an offer: its policy says whether it is in the password slot of its usage.
    package static func offered(
        _ usage: SigningKeyUsage, _ label: String, policy: String, of policies: [ProtectionPolicy]
    )
        -> OfferedKey
    {
        let hasPassword = policies.first { $0.id == policy }?.password != nil
        return OfferedKey(usage: usage, label: label, slot: hasPassword ? usage.passwordSlot : nil, policy: policy)
    }

    /// What every device would refuse of the offer, one sentence each.
    func offerFaults() -> [String] {
        var faults: [String] = []
        if Set(policies.map(\.id)).count != policies.count || policies.contains(where: { $0.id == Self.policyID }) {
            faults.append("each policy has a name of its own, other than \(Self.policyID)")
        }
        for policy in policies {
            do {
                _ = try ProtectionPolicy(plaintext: policy.encoded())
            } catch {
                faults.append("policy \(policy.id): \(error.detail)")
            }
        }
        // The keys and ids are not looked at.
        guard let id = SigningID(bytes: [UInt8](repeating: 0, count: 16)),
            let identity = KeyThumbprint(bytes: [UInt8](repeating: 0, count: 32))
        else { return faults }
        let offer = Offer(
            head: SigningReplyHead(
                issuer: issuer.name, audience: identity.text, issuedAt: 0, request: SigningHash(sha256: [])),
            pid: id, did: id, identity: identity, name: name, commit: .digits, expiresAt: 0, keys: offeredKeys,
            slots: plannedSlots.map {
                OfferedSlot(
                    slot: $0.slot, mode: $0.mode, generation: 0,
                    publicKey: $0.mode == .assisted ? [UInt8](repeating: 0, count: 49) : nil)
            }, policies: offeredPolicies)
        do {
            try offer.check()
        } catch {
            faults.append("a device would refuse it. \(error.detail)")
        }
        return faults
    }
}
