import AssentCore
import AssentSigningProtocol
import Foundation

extension SigningDevice {
    /// Refuses ways to protect keys that the app does not allow, or that cannot be kept.
    ///
    /// - Parameters:
    ///   - offer: the server's.
    ///   - record: the container that is to get new keys; `nil` for a new one.
    /// - Throws: ``SigningError`` with code `protectionPolicy` or `offerRefused`.
    func checkPasswords(_ offer: Offer, renewing record: ContainerRecord? = nil) throws(SigningError) {
        for slot in offer.slots {
            let kept = record?.slotRecord(slot.slot)
            guard kept?.mode != .assisted || slot.mode == .assisted else {
                throw SigningError(
                    .protectionPolicy, "The offer lets this device check a password that the server counts guesses of.")
            }
            let mode: ProtectionMode = slot.mode == .local ? .local : .assisted
            guard configuration.modes.contains(mode) else {
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
                try Self.mapped { () throws(SigningProtocolError) in _ = try ObliviousElement(key) }
            }
        }
        let isBare = offer.keys.contains { $0.usage.needsPossession && $0.slot == nil }
        guard configuration.modes.contains(.device) || !isBare else {
            throw SigningError(.protectionPolicy, "The server offers keys without a password that approve.")
        }
    }

    /// Asks for the passwords of an offer, and seals the keys that they are for.
    func sealedSlots(_ record: ContainerRecord, _ prompt: SigningPasswordPrompt?) async throws -> [SlotRecord] {
        guard let offer = try record.offerContent(), !offer.slots.isEmpty else { return [] }
        try await makeSealingKey(record)
        var passwords: [Secret] = []
        var slots: [SlotRecord] = []
        var scalars: [String: Secret] = [:]
        for offered in offer.slots {
            let policy = try policy(record, offered.slot)
            let password = try await ask(prompt, isNew: true, record, offered.slot, offered.mode, policy)
            guard let normalized = NormalizedPassword(password) else { throw Self.invalid(.unusable) }
            if let rule = policy.rules.broken(by: normalized) { throw Self.invalid(rule) }
            // A guess at the weaker of two would be one at the other.
            guard !passwords.contains(normalized.secret) else { throw Self.invalid(.other) }
            passwords.append(normalized.secret)
            let labels = offer.keys.filter { $0.slot == offered.slot }.map(\.label)
            var contents: [(label: String, content: SealedKeyContent)] = []
            for label in labels {
                let scalar = OpenedKeys.newScalar()
                scalars[label] = scalar
                contents.append(
                    (label, SealedKeyContent(scalar: scalar, passwordTime: offer.head.issuedAt, history: [])))
            }
            let plan = try await firstPlan(offered, policy, normalized, record, by: .evaluate)
            slots.append(
                SlotRecord(
                    slot: offered.slot, mode: offered.mode, current: try await sealed(contents, plan, record),
                    ratchet: offered.mode == .assisted ? Secret(bytes: random.bytes(32)) : nil))
        }
        unsealedKeys[record.id] = scalars
        return slots
    }

    func policy(_ record: ContainerRecord, _ slot: PasswordSlot) throws -> ProtectionPolicy.Password {
        guard let policy = try record.policy(slot) else { throw SigningError(.internal) }
        return policy
    }

    func ask(
        _ prompt: SigningPasswordPrompt?, isNew: Bool, _ record: ContainerRecord, _ slot: PasswordSlot,
        _ mode: PasswordMode, _ policy: ProtectionPolicy.Password
    ) async throws -> Secret {
        guard let prompt else {
            throw SigningError(
                .passwordRequired, "The server's policy asks for a password.",
                suggestion: "Go on with it and let the app ask the user for one.")
        }
        return try await prompt(
            SigningPasswordRequest(
                isNew: isNew, slot: slot, mode: mode, rules: SigningPasswordRules(policy.rules),
                issuerName: record.issuerName))
    }

    /// The generation of an offer, evaluated if it is `assisted`.
    func firstPlan(
        _ offered: OfferedSlot, _ policy: ProtectionPolicy.Password, _ password: NormalizedPassword,
        _ record: ContainerRecord, by kind: DeviceCall
    ) async throws -> SealingPlan {
        let salt = random.bytes(16)
        let s = try Self.mapped { () throws(SigningProtocolError) in
            try stretch(password, salt, policy.cost)
        }
        var plan = SealingPlan(
            slot: offered.slot, mode: offered.mode, generation: offered.generation, salt: salt, cost: policy.cost, s: s)
        guard offered.mode == .assisted else { return plan }
        plan.publicKey = offered.publicKey
        let input = try plan.input(record)
        let body = EvaluateBody(
            slot: offered.slot, generation: offered.generation, rid: SigningID(random: random),
            blinded: input.element.bytes)
        let evaluation = try await call(record.id, kind, body) { received in
            try await self.evaluation(
                received, .enrol, offered.slot, offered.generation, publicKey: offered.publicKey
            ).content
        }
        plan.output = try Self.mapped { () throws(SigningProtocolError) in try Self.output(evaluation, input) }
        return plan
    }

    /// Whether the keys that an enrolment has made can still sign: those behind an `assisted` password cannot be opened
    /// before the container is there.
    func checkCompletable(_ record: ContainerRecord) throws {
        guard unsealedKeys[record.id] == nil, record.slots.contains(where: { $0.mode == .assisted }) else { return }
        throw SigningError(
            .enrolmentVoid, "The keys of this enrolment cannot be opened any more, because the process has ended.")
    }

    /// A sealed private key, while an enrolment needs it.
    func enrolmentKey(
        _ record: ContainerRecord, _ slot: PasswordSlot, _ label: String, _ prompt: SigningPasswordPrompt?
    ) async throws -> Secret {
        if let scalar = unsealedKeys[record.id]?[label] { return scalar }
        try checkCompletable(record)
        let policy = try policy(record, slot)
        let password = try await ask(prompt, isNew: false, record, slot, .local, policy)
        let opened = try await opened(record.id, slot, password, for: .use)
        guard let scalar = opened.contents[label]?.scalar else { throw SigningError(.credentialsLost) }
        // Asked once, for all that is left.
        unsealedKeys[record.id, default: [:]].merge(opened.contents.mapValues(\.scalar)) { _, new in new }
        return scalar
    }
}
