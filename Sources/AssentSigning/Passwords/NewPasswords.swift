import AssentCore
import AssentSigningProtocol

/// Asks for the passwords of an offer, and seals the keys that they are for.
///
/// For new keys of a container the user types the current passwords, which have to open the old keys; each guards the
/// new keys, too, unless the server's new rules refuse it. For a new container, and after a reset, the user chooses.
struct NewPasswords: Sendable {
    let parts: DeviceParts

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

    /// Refuses ways to protect keys that the app does not allow, or that cannot be kept.
    ///
    /// - Parameters:
    ///   - offer: the server's.
    ///   - record: the container that is to get new keys; `nil` for a new one.
    /// - Throws: ``SigningError`` with code `protectionPolicy` or `offerRefused`.
    func check(_ offer: Offer, renewing record: ContainerRecord?) throws(SigningError) {
        let modes = parts.configuration.modes
        for slot in offer.slots {
            let kept = record?.slotRecord(slot.slot)
            guard kept?.mode != .assisted || slot.mode == .assisted else {
                throw SigningError(
                    .protectionPolicy, "The offer lets this device check a password that the server counts guesses of.")
            }
            guard modes.contains(slot.mode == .local ? .local : .assisted) else {
                throw SigningError(.protectionPolicy, "The server asks for passwords that this app does not allow.")
            }
            let isNext =
                switch kept {
                case nil: record != nil || slot.generation == 0
                // The device counts the changes of a local one by itself.
                case let kept?: slot.mode == .local || slot.generation > kept.current.generation
                }
            guard isNext else {
                throw SigningError(.offerRefused, "The offer has a password of another generation.")
            }
            if let key = slot.publicKey {
                _ = try SigningError.mapped(try ObliviousElement(key))
            }
        }
        let isBare = offer.keys.contains { $0.usage.needsPossession && $0.slot == nil }
        guard modes.contains(.device) || !isBare else {
            throw SigningError(.protectionPolicy, "The server offers keys without a password that approve.")
        }
    }

    /// Asks, and seals.
    ///
    /// - Parameters:
    ///   - offer: what the server wants.
    ///   - work: the keys that are made.
    ///   - prompt: the app's.
    /// - Returns: what is stored. The private keys are in memory until the server has the key list.
    /// - Throws: ``SigningError`` with the rule that a password breaks, and what `prompt` throws.
    func sealed(
        _ offer: Offer, _ work: KeyWork, _ prompt: SigningPasswordPrompt?
    ) async throws -> [SlotRecord] {
        let next = work.next
        var typed: [PasswordSlot: Typed] = [:]
        if case .renewal(let renewal) = work {
            await parts.memory.forgetNewKeys(next.id)
            let old = try await parts.records.load(next.id)
            if !renewal.hasCode {
                for kept in old.slots { typed[kept.slot] = try await current(kept, old, renewal, prompt) }
            }
        }
        guard !offer.slots.isEmpty else { return [] }
        try await parts.provider.makeAgreement(named: next.sealingKeyName)
        var passwords: [Secret] = []
        var slots: [SlotRecord] = []
        var scalars: [String: Secret] = [:]
        for offered in offer.slots {
            let policy = try next.knownPolicy(offered.slot)
            let chosen = try await choose(offered, policy, typed[offered.slot], offer, next, prompt)
            // A guess at the weaker of two would be one at the other.
            guard !passwords.contains(chosen.password.secret) else { throw SigningError.invalid(.other) }
            passwords.append(chosen.password.secret)
            var contents: [(label: String, content: SealedKeyContent)] = []
            for key in offer.keys where key.slot == offered.slot {
                let scalar = OpenedKeys.newScalar()
                scalars[key.label] = scalar
                let content = SealedKeyContent(scalar: scalar, passwordTime: chosen.time, history: chosen.history)
                contents.append((key.label, content))
            }
            let plan = try await plan(offered, policy, chosen.password, work)
            slots.append(
                SlotRecord(
                    slot: offered.slot, mode: offered.mode,
                    current: try await parts.sealing.sealed(contents, plan, next),
                    ratchet: offered.mode == .assisted ? Secret(bytes: parts.random.bytes(32)) : nil))
        }
        await parts.memory.keep(unsealed: scalars, next.id)
        return slots
    }

    /// Asks the app. What the app asks of the device meanwhile does not wait for the renewal that waits for the app.
    func ask(
        _ prompt: SigningPasswordPrompt?, isNew: Bool, _ record: ContainerRecord, _ slot: PasswordSlot,
        _ mode: PasswordMode
    ) async throws -> Secret {
        await parts.memory.beginAsking(record.id)
        do {
            let password = try await parts.passwords.ask(prompt, isNew: isNew, record, slot, mode)
            await parts.memory.endAsking(record.id)
            return password
        } catch {
            await parts.memory.endAsking(record.id)
            throw error
        }
    }

    /// The current password of a slot, which is counted like any other try.
    private func current(
        _ kept: SlotRecord, _ record: ContainerRecord, _ renewal: RenewalRecord, _ prompt: SigningPasswordPrompt?
    ) async throws -> Typed {
        guard kept.state != .shredded else { throw SigningError.destroyed }
        let text = try await ask(prompt, isNew: false, record, kept.slot, kept.mode)
        let password = try text.normalized
        let opened = try await parts.passwords.opened(record.id, kept.slot, text, for: .change, by: .given)
        if let key = try renewal.oldOfferContent().keys.first(where: {
            $0.usage.needsPossession && $0.slot == kept.slot
        }) {
            await parts.memory.keep(endorser: try opened.signingKey(key.label), record.id)
        }
        // A change that was begun may have been settled by opening.
        let settled = try await parts.records.load(record.id).slotRecord(kept.slot) ?? kept
        return Typed(password: password, kept: settled, opened: opened)
    }

    /// The current password, if it may go on guarding keys, or a new one. One whose file is enough to guess it must not
    /// guard keys that the server counts guesses of.
    private func choose(
        _ offered: OfferedSlot, _ policy: ProtectionPolicy.Password, _ typed: Typed?, _ offer: Offer,
        _ next: ContainerRecord, _ prompt: SigningPasswordPrompt?
    ) async throws -> Chosen {
        if let typed, typed.kept.mode == offered.mode, policy.rules.broken(by: typed.password) == nil {
            return Chosen(
                password: typed.password, time: typed.opened.passwordTime,
                history: Array(typed.opened.history.prefix(policy.rules.history)))
        }
        let password = try await ask(prompt, isNew: true, next, offered.slot, offered.mode).normalized
        if let rule = policy.rules.broken(by: password) { throw SigningError.invalid(rule) }
        guard let typed else { return Chosen(password: password, time: offer.head.issuedAt, history: []) }
        guard password.secret != typed.password.secret else { throw SigningError.invalid(.history) }
        try parts.sealing.checkHistory(password, typed.opened, typed.kept, policy.rules)
        return Chosen(
            password: password, time: offer.head.issuedAt,
            history: typed.opened.history(replacing: typed.kept, policy.rules))
    }

    /// The generation of an offer, evaluated if it is `assisted`.
    private func plan(
        _ offered: OfferedSlot, _ policy: ProtectionPolicy.Password, _ password: NormalizedPassword, _ work: KeyWork
    ) async throws -> SealingPlan {
        let salt = parts.random.bytes(16)
        var plan = SealingPlan(
            slot: offered.slot, mode: offered.mode, generation: offered.generation, salt: salt, cost: policy.cost,
            publicKey: offered.publicKey, s: try parts.sealing.stretch(password, salt, policy.cost))
        guard offered.mode == .assisted else { return plan }
        let input = try plan.input(work.next)
        let body = EvaluateBody(
            slot: offered.slot, generation: offered.generation, rid: SigningID(random: parts.random),
            blinded: input.element.bytes)
        let request = Request(work.isRenewal ? .renewEvaluate : .evaluate, body)
        do {
            let evaluation = try await parts.calls.ask(
                request, of: parts.records.load(work.next.id), by: .given
            ) { received in
                try await parts.passwords.evaluation(
                    received, .enrol, offered.slot, offered.generation, publicKey: offered.publicKey
                ).content
            }
            try plan.evaluate(evaluation, input)
            return plan
        } catch let error as SigningError where error.code == .invalidRequest && work.isRenewal {
            // A process that has ended had committed to other keys before: this renewal is of no use.
            throw SigningError(.enrolmentVoid)
        }
    }
}
