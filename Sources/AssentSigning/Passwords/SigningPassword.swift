public import AssentCore
public import AssentSigningProtocol

/// A question for a password during an enrolment, or a renewal.
public struct SigningPasswordRequest: Sendable {
    /// Whether the user chooses it, or types the current one, or one that was chosen before a crash.
    public let isNew: Bool
    /// Which keys it opens.
    public let slot: PasswordSlot
    /// Where a guess is checked.
    public let mode: PasswordMode
    /// What a new one must be like.
    public let rules: PasswordRules
    /// The issuer's name.
    public let issuerName: String
}

/// Asks the user for a password. An error that it throws ends the step, which can be tried again.
public typealias SigningPasswordPrompt = @Sendable (SigningPasswordRequest) async throws -> Secret

/// A password of a container.
public struct SigningPassword: Sendable, Identifiable {
    /// Which keys it opens.
    public let slot: PasswordSlot
    /// Where a guess is checked.
    public let mode: PasswordMode
    /// What a new one must be like.
    public let rules: PasswordRules
    /// What happens after wrong ones.
    public let lock: PasswordLock
    /// The labels of the keys that it opens.
    public let keyLabels: [String]
    /// Its state: for `assisted` what the server signed last.
    public let state: PasswordSlotState
    /// Tries that are left until it is locked (`assisted`) or destroyed (`local`); `nil` when nothing is counted, or
    /// the server has not said it yet.
    public let remaining: Int?
    /// `assisted`: evaluations without the right password that are left before the keys are lost for ever.
    public let spare: Int?

    let device: SigningDevice
    let record: SigningID

    /// Its slot.
    public var id: PasswordSlot { slot }

    /// Whether the user should authenticate at the issuer soon: few wrong tries more would destroy the keys.
    public var needsAuthentication: Bool { spare.map { $0 <= 5 } ?? false }

    /// Whether the device remembers it, so that the next use needs no password.
    public var isRemembered: Bool {
        get async { await device.parts.memory.isRemembered(record, slot, at: device.parts.uptime()) }
    }

    /// Finds out whether a password is the right one. A wrong one counts like any other try. The right one is
    /// remembered as long as the rules allow.
    ///
    /// - Throws: ``SigningError``: with code `wrongPassword` and what is left; `wait` with the seconds, `locked`,
    ///   `credentialsLost` when the keys are destroyed, `password_expired`.
    public func verify(_ password: Secret) async throws {
        _ = try await device.parts.passwords.opened(record, slot, password, for: .use)
    }

    /// Changes the password. If it fails on the way, call it again: what was sent counts once, and until the server
    /// has said which password counts, nothing is lost.
    ///
    /// - Parameters:
    ///   - old: the current one.
    ///   - new: the one to set.
    /// - Throws: ``SigningError``: with code `invalidPassword` and the rule that the new one breaks, `wrongPassword`
    ///   for the old one, `password_too_young`.
    public func change(from old: Secret, to new: Secret) async throws {
        try await PasswordChanges(parts: device.parts).change(record, slot, from: old, to: new)
    }

    /// Forgets what the device remembers of it.
    public func forget() async { await device.parts.memory.forget(record, slot) }
}

extension ContainerRecord {
    /// The policy of a slot's keys.
    func policy(_ slot: PasswordSlot) throws(SigningProtocolError) -> ProtectionPolicy.Password? {
        guard let offer = try offerContent(), let key = offer.keys.first(where: { $0.slot == slot }) else { return nil }
        return offer.policies.first { $0.id == key.policy }?.password
    }

    /// The policy of a slot's keys; an error of the SDK's own when there is none.
    func knownPolicy(_ slot: PasswordSlot) throws -> ProtectionPolicy.Password {
        guard let policy = try policy(slot) else { throw SigningError(.internal) }
        return policy
    }

    /// What is kept of a slot; `nil` when it has no password.
    func slotRecord(_ slot: PasswordSlot) -> SlotRecord? { slots.first { $0.slot == slot } }

    /// Changes what is kept of a slot.
    mutating func modify(_ slot: PasswordSlot, _ change: (inout SlotRecord) -> Void) {
        for index in slots.indices where slots[index].slot == slot { change(&slots[index]) }
    }

    /// The passwords, as an app sees them.
    func passwords(on device: SigningDevice) throws(SigningProtocolError) -> [SigningPassword] {
        var passwords: [SigningPassword] = []
        for kept in slots {
            guard let policy = try policy(kept.slot) else { continue }
            var remaining = kept.tries
            if case .local(.counter(let max)) = policy.lock { remaining = Swift.max(0, max - kept.failures) }
            passwords.append(
                SigningPassword(
                    slot: kept.slot, mode: kept.mode, rules: policy.rules, lock: policy.lock,
                    keyLabels: kept.current.keys.map(\.label), state: kept.state, remaining: remaining,
                    spare: kept.spare, device: device, record: id))
        }
        return passwords
    }
}
