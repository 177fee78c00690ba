import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation
import Logging

/// What keys are opened for.
enum OpeningPurpose {
    /// To sign or to decrypt.
    case use
    /// To set another password: an expired one may do that.
    case change
}

/// What is at hand for one try of a password.
struct Opening {
    let record: ContainerRecord
    let kept: SlotRecord
    let policy: ProtectionPolicy.Password
    let password: Secret?
    let purpose: OpeningPurpose

    var id: SigningID { record.id }

    init(_ record: ContainerRecord, _ slot: PasswordSlot, _ password: Secret?, for purpose: OpeningPurpose) throws {
        guard let kept = record.slotRecord(slot),
            let policy = try SigningError.mapped(try record.policy(slot))
        else { throw SigningError(.invalidArgument, "The container has no such password.") }
        guard kept.state != .shredded else { throw SigningError.destroyed }
        self.record = record
        self.kept = kept
        self.policy = policy
        self.password = password
        self.purpose = purpose
    }

    /// The same try after the record was changed.
    func with(_ record: ContainerRecord) throws -> Opening { try Opening(record, kept.slot, password, for: purpose) }

    /// The device judges the age of a `local` password, by the last time that the server signed.
    func checkAge(_ passwordTime: Int) throws {
        let days = policy.rules.maxAge
        guard days > 0, purpose == .use, record.serverTime > passwordTime + days * 86400 else { return }
        throw SigningError(.passwordExpired)
    }
}

/// Opens the keys behind passwords. Nobody else tries a password at the same time.
struct KeyOpening: Sendable {
    let parts: DeviceParts

    /// Opens keys for one use: by the password or, where that is `nil`, by what is remembered of it. For `assisted` the
    /// server has counted and confirmed it when this returns. The prover is `given` where a renewal's lease is held, or
    /// the caller takes new keys itself.
    ///
    /// - Throws: ``SigningError`` with what is left of tries, `wait`, `locked`, `passwordRequired` and others.
    func opened(
        _ id: SigningID, _ slot: PasswordSlot, _ password: Secret?, for purpose: OpeningPurpose,
        by prover: Prover = .current
    ) async throws -> OpenedKeys {
        var record = try await parts.records.load(id)
        var retry = CallRetry(sends: 0)
        while true {
            let held = try await parts.hold(.password(id, slot))
            do {
                let opened = try await open(id, slot, password, for: purpose)
                await held.release()
                return opened
            } catch {
                await held.release()
                guard case .current = prover else { throw error }
                try await parts.calls.recover(&record, &retry, from: error)
            }
        }
    }

    func ask(
        _ prompt: SigningPasswordPrompt?, isNew: Bool, _ record: ContainerRecord, _ slot: PasswordSlot,
        _ mode: PasswordMode
    ) async throws -> Secret {
        guard let prompt else {
            throw SigningError(
                .passwordRequired, "The server's policy asks for a password.",
                suggestion: "Go on with it and let the app ask the user for one.")
        }
        return try await prompt(
            SigningPasswordRequest(
                isNew: isNew, slot: slot, mode: mode, rules: record.knownPolicy(slot).rules,
                issuerName: record.issuerName))
    }

    // MARK: Session

    /// The key that decrypts replies; it may need the password of the session. The caller takes new keys, and begins
    /// again: `record` is the container as it is when its user has typed, and `typed` is what that was, so that nobody
    /// is asked twice.
    func transportKey(
        _ record: inout ContainerRecord, _ password: Secret?, _ typed: inout Secret?
    ) async throws -> any KeyAgreementKey {
        guard let offered = try record.offerContent()?.keys.first(where: { $0.usage == .transport }) else {
            throw SigningError(.credentialsLost)
        }
        guard let slot = offered.slot else { return try await parts.provider.transport(record, offered.label) }
        let kept = record.slotRecord(slot)
        if typed == nil {
            if password == nil, let key = try await keptSessionKey(record, slot) { return key }
            do {
                return try await opened(record.id, slot, password, for: .use, by: .given).agreementKey(offered.label)
            } catch let error as SigningError where password == nil && error.code == .passwordRequired {
                guard let prompt = parts.configuration.sessionPassword, let kept else { throw error }
                typed = try await ask(prompt, isNew: false, record, slot, kept.mode)
            }
        }
        let contents = try await opened(record.id, slot, typed, for: .use, by: .given)
        let key = try contents.agreementKey(offered.label)
        record = try await parts.records.load(record.id)
        // Another process may have changed it meanwhile.
        guard let kept, let now = record.slotRecord(slot), now.current.salt == kept.current.salt,
            now.current.generation == kept.current.generation
        else { return key }
        // The open key itself is kept: an app that listens needs it all the time.
        let session = OpenSession(
            key: key, generation: kept.current.generation, salt: kept.current.salt, passwordTime: contents.passwordTime)
        await parts.memory.keep(session, record.id)
        return key
    }

    /// The open key that is kept, unless its password was changed, has expired, or opens nothing any more.
    private func keptSessionKey(_ record: ContainerRecord, _ slot: PasswordSlot) async throws -> SoftwareAgreementKey? {
        guard let session = await parts.memory.session(record.id) else { return nil }
        let opening = try Opening(record, slot, nil, for: .use)
        guard session.generation == opening.kept.current.generation, session.salt == opening.kept.current.salt else {
            await parts.memory.keep(nil, record.id)
            return nil
        }
        do {
            if opening.kept.mode == .local { try opening.checkAge(session.passwordTime) }
        } catch {
            await parts.memory.keep(nil, record.id)
            throw error
        }
        return session.key
    }

    // MARK: Local

    /// Opens the keys of a `local` password. The try is counted before it is made.
    func openLocal(_ opening: Opening) async throws -> OpenedKeys {
        guard case .local(let lock) = opening.policy.lock else { throw SigningError(.secureData) }
        let (id, kept, memory) = (opening.id, opening.kept, parts.memory)
        guard let password = opening.password else { return try await openRemembered(opening) }
        let attempt = LocalTry(lock: lock, failures: kept.failures)
        switch attempt.before(elapsed: parts.uptime() - (await memory.lastFailure(id, kept.slot))) {
        case .destroy: throw try await destroy(opening)
        case .wait(let seconds):
            var error = SigningError(.passwordWait)
            error.retryAfter = seconds
            throw error
        case .attempt: break
        }
        // What can fail although the password is right comes before the count: else it would destroy the keys.
        let s = try parts.sealing.stretch(password.normalized, kept.current.salt, kept.current.cost)
        let blobs = try await parts.sealing.blobs(of: kept.current, opening.record)
        try await parts.records.modify(id) { $0.modify(kept.slot) { $0.failures += 1 } }
        guard let contents = try parts.sealing.unsealed(kept.current, blobs, SealingPlan(kept, s: s), opening.record)
        else {
            await memory.keep(failure: parts.uptime(), id, kept.slot)
            let wrong = attempt.afterWrong()
            if wrong.isDestroyed { throw try await destroy(opening) }
            var error = SigningError(.wrongPassword)
            error.passwordState = .open
            (error.remaining, error.retryAfter) = (wrong.remaining, wrong.wait)
            throw error
        }
        try await parts.records.modify(id) { $0.modify(kept.slot) { $0.failures = 0 } }
        await memory.keep(failure: nil, id, kept.slot)
        let opened = OpenedKeys(contents: contents, s: s)
        try opening.checkAge(opened.passwordTime)
        await remember(s, opening)
        return opened
    }

    private func openRemembered(_ opening: Opening) async throws -> OpenedKeys {
        let kept = opening.kept
        guard let s = await parts.memory.takeRemembered(opening.id, kept, at: parts.uptime()) else {
            throw SigningError(.passwordRequired)
        }
        guard let contents = try await parts.sealing.unsealed(kept.current, SealingPlan(kept, s: s), opening.record)
        else {
            await parts.memory.forget(opening.id, kept.slot)
            throw SigningError(.passwordRequired)
        }
        let opened = OpenedKeys(contents: contents, s: s)
        try opening.checkAge(opened.passwordTime)
        return opened
    }

    /// Remembers a password that was right, as long as the policy and the app allow.
    func remember(_ s: Secret, _ opening: Opening) async {
        let (rules, uses) = (opening.policy.rules, parts.configuration.rememberedUses)
        guard rules.cache > 0, uses > 0 else { return }
        await parts.memory.remember(
            RememberedPassword(
                s: s, generation: opening.kept.current.generation, until: parts.uptime() + .seconds(rules.cache),
                uses: uses), opening.id, opening.kept.slot)
    }

    /// Destroys what a password opens, and says so.
    private func destroy(_ opening: Opening) async throws -> SigningError {
        await parts.memory.forget(opening.id, opening.kept.slot)
        try await parts.records.modify(opening.id) { $0.modify(opening.kept.slot) { $0.shred() } }
        parts.logger.notice("the keys of a password were destroyed", metadata: ["container": "\(opening.id)"])
        return SigningError.destroyed
    }
}

extension SigningError {
    /// The keys of a password do not exist any more.
    static var destroyed: SigningError {
        var error = SigningError(.credentialsLost, "The keys that the password opens were destroyed.")
        error.passwordState = .shredded
        return error
    }

    /// A new password breaks a rule.
    static func invalid(_ rule: PasswordRule) -> SigningError {
        var error = SigningError(.invalidPassword)
        error.rule = rule
        return error
    }
}

extension Secret {
    /// A password in the form that is stretched.
    var normalized: NormalizedPassword {
        get throws(SigningError) {
            guard let normalized = NormalizedPassword(self) else { throw SigningError.invalid(.unusable) }
            return normalized
        }
    }
}
