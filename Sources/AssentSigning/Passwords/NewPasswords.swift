import AssentCore
import AssentSigningProtocol

/// Asks for the passwords of an offer, and seals the keys that they are for.
///
/// For new keys of a container the user types the current passwords, which have to open the old keys; each guards the
/// new keys, too, unless the server's new rules refuse it. For a new container, and after a reset, the user chooses.
struct NewPasswords: Sendable {
    let parts: DeviceParts

    /// A password that the user has typed to renew keys, and what it opened.
    struct Typed {
        let password: NormalizedPassword
        let kept: SlotRecord
        let opened: OpenedKeys
    }

    /// What a slot's new keys are sealed by, and what is sealed with each.
    struct Chosen {
        let password: NormalizedPassword
        let time: Int
        let history: [SealedKeyContent.Earlier]
    }

    /// Refuses ways to protect keys that the app does not allow, or that cannot be kept.
    ///
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

    /// The container whose passwords the user types to renew its keys; `nil` after a reset, and for a new container.
    func toType(_ work: KeyWork) async throws -> (renewal: RenewalRecord, old: ContainerRecord)? {
        guard case .renewal(let renewal) = work else { return nil }
        await parts.memory.forgetNewKeys(renewal.next.id)
        guard !renewal.hasCode else { return nil }
        return (renewal, try await parts.records.load(renewal.next.id))
    }

    /// Asks for the current password of a slot.
    func current(
        _ kept: SlotRecord, _ old: ContainerRecord, _ prompt: SigningPasswordPrompt?
    ) async throws -> Secret {
        guard kept.state != .shredded else { throw SigningError.destroyed }
        let text = try await ask(prompt, isNew: false, old, kept.slot, kept.mode)
        _ = try text.normalized
        return text
    }

    /// A current password that has opened the old keys, of which one is to vouch for the new ones.
    func typed(_ text: Secret, _ opened: OpenedKeys, _ kept: SlotRecord, _ renewal: RenewalRecord) async throws -> Typed
    {
        let id = renewal.next.id
        if let key = try renewal.oldOfferContent().keys.first(where: {
            $0.usage.needsPossession && $0.slot == kept.slot
        }) {
            await parts.memory.keep(endorser: try opened.signingKey(key.label), id)
        }
        // A change that was begun may have been settled by opening.
        let settled = try await parts.records.load(id).slotRecord(kept.slot) ?? kept
        return Typed(password: try text.normalized, kept: settled, opened: opened)
    }

    /// The current password, if it may go on guarding keys, or a new one. One whose file is enough to guess it must not
    /// guard keys that the server counts guesses of.
    ///
    /// - Throws: ``SigningError`` with the rule that a password breaks, and what `prompt` throws.
    func choose(
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
    func plan(
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

    /// Makes the keys of a slot, and seals them.
    ///
    /// - Returns: what is stored, and the private keys by label, which are in memory until the server has the key list.
    func sealed(
        _ plan: SealingPlan, _ chosen: Chosen, _ offer: Offer, _ next: ContainerRecord
    ) async throws -> (record: SlotRecord, scalars: [String: Secret]) {
        var scalars: [String: Secret] = [:]
        var contents: [(label: String, content: SealedKeyContent)] = []
        for key in offer.keys where key.slot == plan.slot {
            let scalar = OpenedKeys.newScalar()
            scalars[key.label] = scalar
            let content = SealedKeyContent(scalar: scalar, passwordTime: chosen.time, history: chosen.history)
            contents.append((key.label, content))
        }
        let record = SlotRecord(
            slot: plan.slot, mode: plan.mode, current: try await parts.sealing.sealed(contents, plan, next),
            ratchet: plan.mode == .assisted ? Secret(bytes: parts.random.bytes(32)) : nil)
        return (record, scalars)
    }
}
