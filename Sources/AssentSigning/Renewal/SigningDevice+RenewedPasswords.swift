import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation

extension SigningDevice {
    /// A password that the user has typed to renew keys, and what it opened.
    private struct Typed {
        let password: NormalizedPassword
        let kept: SlotRecord
        let opened: OpenedKeys
    }

    /// What a slot's new keys are sealed by, and what is sealed with each.
    private struct Chosen {
        let password: NormalizedPassword
        let time: Int
        let history: [SealedKeyContent.Earlier]
    }

    /// Asks for the passwords of a renewal, and seals the new keys.
    ///
    /// Without a code the user types the current ones, which have to open the old keys; each guards the new keys, too,
    /// unless the server's new rules refuse it. After a reset the user chooses new ones.
    func renewedSlots(
        _ renewal: RenewalRecord, _ prompt: SigningPasswordPrompt?
    ) async throws -> [SlotRecord] {
        let next = renewal.next
        let old = try await records.load(next.id)
        forgetSealedKeys(next.id)
        var typed: [PasswordSlot: Typed] = [:]
        if !renewal.hasCode {
            for kept in old.slots { typed[kept.slot] = try await current(kept, old, renewal, prompt) }
        }
        guard let offer = try next.offerContent(), !offer.slots.isEmpty else { return [] }
        try await makeSealingKey(next)
        var passwords: [Secret] = []
        var slots: [SlotRecord] = []
        var scalars: [String: Secret] = [:]
        for offered in offer.slots {
            let policy = try policy(next, offered.slot)
            let known = typed[offered.slot]
            let chosen: Chosen
            if let known, let same = carried(known, offered.mode, policy) {
                chosen = same
            } else {
                let new = try await ask(prompt, isNew: true, next, offered.slot, offered.mode, policy)
                chosen = try replaced(known, policy, new, offer)
            }
            // A guess at the weaker of two would be one at the other.
            guard !passwords.contains(chosen.password.secret) else { throw Self.invalid(.other) }
            passwords.append(chosen.password.secret)
            var contents: [(label: String, content: SealedKeyContent)] = []
            for key in offer.keys where key.slot == offered.slot {
                let scalar = OpenedKeys.newScalar()
                scalars[key.label] = scalar
                contents.append(
                    (
                        key.label,
                        SealedKeyContent(scalar: scalar, passwordTime: chosen.time, history: chosen.history)
                    ))
            }
            let plan: SealingPlan
            do {
                plan = try await firstPlan(offered, policy, chosen.password, next, by: .renewEvaluate)
            } catch let error as SigningError where error.code == .invalidRequest {
                // A process that has ended had committed to other keys before: this renewal is of no use.
                throw SigningError(.enrolmentVoid)
            }
            slots.append(
                SlotRecord(
                    slot: offered.slot, mode: offered.mode, current: try await sealed(contents, plan, next),
                    ratchet: offered.mode == .assisted ? Secret(bytes: random.bytes(32)) : nil))
        }
        unsealedKeys[next.id] = scalars
        return slots
    }

    /// The current password of a slot, which is counted like any other try.
    private func current(
        _ kept: SlotRecord, _ record: ContainerRecord, _ renewal: RenewalRecord, _ prompt: SigningPasswordPrompt?
    ) async throws -> Typed {
        guard kept.state != .shredded else { throw Self.destroyed }
        let policy = try policy(record, kept.slot)
        let text = try await ask(prompt, isNew: false, record, kept.slot, kept.mode, policy)
        guard let password = NormalizedPassword(text) else { throw Self.invalid(.unusable) }
        let opened = try await opened(record.id, kept.slot, text, for: .change)
        let old = try Self.mapped { () throws(SigningProtocolError) in
            try UnverifiedMessage<Offer>(renewal.oldOffer).content
        }
        if let key = old.keys.first(where: { $0.usage.needsPossession && $0.slot == kept.slot }) {
            endorsers[record.id] = try opened.signingKey(key.label)
        }
        // A change that was begun may have been settled by opening.
        let settled = try await records.load(record.id).slotRecord(kept.slot) ?? kept
        return Typed(password: password, kept: settled, opened: opened)
    }

    /// The current password, if it may go on guarding keys. One whose file is enough to guess it must not guard keys
    /// that the server counts guesses of.
    private func carried(
        _ typed: Typed, _ mode: PasswordMode, _ policy: ProtectionPolicy.Password
    ) -> Chosen? {
        guard typed.kept.mode == mode, policy.rules.broken(by: typed.password) == nil else { return nil }
        return Chosen(
            password: typed.password, time: typed.opened.passwordTime,
            history: Array(typed.opened.history.prefix(policy.rules.history)))
    }

    /// A new password in the place of the current one, which a reset does not know.
    private func replaced(
        _ typed: Typed?, _ policy: ProtectionPolicy.Password, _ new: Secret, _ offer: Offer
    ) throws -> Chosen {
        guard let password = NormalizedPassword(new) else { throw Self.invalid(.unusable) }
        if let rule = policy.rules.broken(by: password) { throw Self.invalid(rule) }
        var history: [SealedKeyContent.Earlier] = []
        if let typed {
            guard password.secret != typed.password.secret else { throw Self.invalid(.history) }
            let current = SealedKeyContent.Earlier(salt: typed.kept.current.salt, s: typed.opened.s)
            for earlier in typed.opened.history.prefix(policy.rules.history) {
                let s = try Self.mapped { () throws(SigningProtocolError) in
                    try stretch(password, earlier.salt, typed.kept.current.cost)
                }
                guard s != earlier.s else { throw Self.invalid(.history) }
            }
            history = Array(([current] + typed.opened.history).prefix(policy.rules.history))
        }
        return Chosen(password: password, time: offer.head.issuedAt, history: history)
    }

    /// The old key behind a password that vouches for the new ones: opened a moment ago, or by the password again.
    func endorser(
        _ record: ContainerRecord, _ slot: PasswordSlot, _ label: String, _ prompt: SigningPasswordPrompt?
    ) async throws -> any SigningKey {
        if let key = endorsers[record.id] { return key }
        guard let kept = record.slotRecord(slot) else { throw SigningError(.credentialsLost) }
        let password = try await ask(prompt, isNew: false, record, slot, kept.mode, try policy(record, slot))
        return try await opened(record.id, slot, password, for: .change).signingKey(label)
    }

    /// The new key that the reply to `complete` is for.
    func newTransportKey(_ next: ContainerRecord) async throws -> any KeyAgreementKey {
        guard let offered = try next.offerContent()?.keys.first(where: { $0.usage == .transport }),
            offered.slot != nil
        else { return try await transportKey(next) }
        guard let scalar = unsealedKeys[next.id]?[offered.label] else { throw SigningError(.enrolmentVoid) }
        return try OpenedKeys.agreementKey(scalar)
    }

    /// Goes back to the making of keys, or ends the renewal, where a process has ended that alone had them unsealed.
    func checkSealedKeys(_ renewal: inout RenewalRecord) async throws {
        let next = renewal.next
        guard !next.slots.isEmpty, unsealedKeys[next.id] == nil else { return }
        let transport = try next.offerContent()?.keys.first { $0.usage == .transport }
        switch next.step {
        case .commit:
            (renewal.next.slots, renewal.next.nonceD) = ([], nil)
            try await records.keep(renewal)
        case .complete where transport?.slot != nil, .sign:
            throw SigningError(
                .enrolmentVoid, "The new keys cannot be opened any more, because the process has ended.",
                suggestion: "Renew again. After a reset ask for a new code.")
        default: return
        }
    }

    /// Forgets what only a renewal that is under way needs.
    func forgetSealedKeys(_ id: SigningID) {
        unsealedKeys[id] = nil
        endorsers[id] = nil
    }
}
