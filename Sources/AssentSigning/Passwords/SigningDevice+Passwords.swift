import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation
import Logging

extension SigningDevice {
    /// What keys are opened for.
    enum OpeningPurpose {
        /// To sign or to decrypt.
        case use
        /// To set another password: an expired one may do that.
        case change
    }

    /// What is at hand for one try.
    struct Opening {
        let record: ContainerRecord
        let kept: SlotRecord
        let policy: ProtectionPolicy.Password
        let password: Secret?
        let purpose: OpeningPurpose

        var id: SigningID { record.id }
    }

    /// Opens the keys of a password, or of what is remembered of it. Nobody else tries at the same time.
    ///
    /// For `assisted` the server has counted and confirmed it when this returns.
    func opened(
        _ id: SigningID, _ slot: PasswordSlot, _ password: Secret?, for purpose: OpeningPurpose
    ) async throws -> OpenedKeys {
        try await withCurrentKeys(id) {
            try await alone(id, slot) { try await self.open(id, slot, password, for: purpose) }
        }
    }

    /// Opens the key of the session: by the password that is given, what is remembered of it, or the one that the app
    /// asks for. After that the open key itself is kept: whoever listens needs it all the time.
    func sessionKey(
        _ record: ContainerRecord, _ slot: PasswordSlot, _ label: String, _ password: Secret?
    ) async throws -> SoftwareAgreementKey {
        if password == nil, let key = try await keptSessionKey(record, slot) { return key }
        do {
            return try await opened(record.id, slot, password, for: .use).agreementKey(label)
        } catch let error as SigningError where password == nil && error.code == .passwordRequired {
            guard let prompt = configuration.sessionPassword, let kept = record.slotRecord(slot) else { throw error }
            let typed = try await ask(prompt, isNew: false, record, slot, kept.mode, policy(record, slot))
            let opened = try await self.opened(record.id, slot, typed, for: .use)
            let key = try opened.agreementKey(label)
            // Another process may have changed it meanwhile.
            guard let now = try await records.load(record.id).slotRecord(slot),
                now.current.salt == kept.current.salt, now.current.generation == kept.current.generation
            else { return key }
            openSessions[record.id] = OpenSession(
                key: key, generation: kept.current.generation, salt: kept.current.salt,
                passwordTime: opened.passwordTime)
            return key
        }
    }

    /// The open key that is kept, unless its password was changed, has expired, or opens nothing any more.
    private func keptSessionKey(
        _ record: ContainerRecord, _ slot: PasswordSlot
    ) async throws -> SoftwareAgreementKey? {
        guard let open = openSessions[record.id] else { return nil }
        let opening = try await self.opening(record.id, slot, nil, for: .use)
        guard open.generation == opening.kept.current.generation, open.salt == opening.kept.current.salt else {
            openSessions[record.id] = nil
            return nil
        }
        do {
            if opening.kept.mode == .local { try checkAge(open.passwordTime, opening) }
        } catch {
            openSessions[record.id] = nil
            throw error
        }
        return open.key
    }

    /// What nobody else does with a password at the same time, in this process or another one.
    func alone<Value>(
        _ id: SigningID, _ slot: PasswordSlot, _ body: () async throws -> Value
    ) async throws -> Value {
        try await alone(id, with: "password.\(id.text).\(slot.rawValue)", body)
    }

    /// Opens the keys; the caller is alone with the password.
    func open(
        _ id: SigningID, _ slot: PasswordSlot, _ password: Secret?, for purpose: OpeningPurpose
    ) async throws -> OpenedKeys {
        let opening = try await self.opening(id, slot, password, for: purpose)
        switch opening.kept.mode {
        case .local: return try await openLocal(opening)
        case .assisted:
            do {
                return try await unlock(opening)
            } catch let error as SigningError where error.code == .wrongGeneration {
                // A renewal may have ended meanwhile, and these be the keys that it has replaced.
                let now = try await self.opening(id, slot, password, for: purpose)
                guard now.record.keyID != opening.record.keyID, now.kept.mode == .assisted else { throw error }
                return try await unlock(now)
            }
        }
    }

    /// What is at hand.
    func opening(
        _ id: SigningID, _ slot: PasswordSlot, _ password: Secret?, for purpose: OpeningPurpose
    ) async throws -> Opening {
        let record = try await records.load(id)
        guard let kept = record.slotRecord(slot),
            let policy = try Self.mapped({ () throws(SigningProtocolError) in try record.policy(slot) })
        else { throw SigningError(.invalidArgument, "The container has no such password.") }
        guard kept.state != .shredded else { throw Self.destroyed }
        return Opening(record: record, kept: kept, policy: policy, password: password, purpose: purpose)
    }

    static var destroyed: SigningError {
        var error = SigningError(.credentialsLost, "The keys that the password opens were destroyed.")
        error.passwordState = .shredded
        return error
    }

    /// *s* of the password that was given.
    func stretched(_ opening: Opening, _ password: Secret) throws -> Secret {
        guard let normalized = NormalizedPassword(password) else { throw Self.invalid(.unusable) }
        return try Self.mapped { () throws(SigningProtocolError) in
            try stretch(normalized, opening.kept.current.salt, opening.kept.current.cost)
        }
    }

    static func invalid(_ rule: PasswordRule) -> SigningError {
        var error = SigningError(.invalidPassword)
        error.rule = rule
        return error
    }

    // MARK: Local

    /// Opens the keys of a `local` password. The try is counted before it is made.
    private func openLocal(_ opening: Opening) async throws -> OpenedKeys {
        guard case .local(let lock) = opening.policy.lock else { throw SigningError(.secureData) }
        let (id, kept) = (opening.id, opening.kept)
        guard let password = opening.password else { return try await openRemembered(opening) }
        if case .counter(let max) = lock, kept.failures >= max { throw try await destroy(opening) }
        if let left = delay(lock, kept, id) {
            var error = SigningError(.passwordWait)
            error.retryAfter = left
            throw error
        }
        guard NormalizedPassword(password) != nil else { throw Self.invalid(.unusable) }
        try await records.modify(id) { $0.modify(kept.slot) { $0.failures += 1 } }
        let s = try stretched(opening, password)
        guard let contents = try await unsealed(kept.current, SealingPlan(kept, s: s), opening.record) else {
            failedAt[[id.text, kept.slot.rawValue]] = uptime()
            var error = SigningError(.wrongPassword)
            error.passwordState = .open
            var failed = kept
            failed.failures += 1
            if case .counter(let max) = lock {
                guard failed.failures < max else { throw try await destroy(opening) }
                error.remaining = max - failed.failures
            }
            error.retryAfter = delay(lock, failed, id)
            throw error
        }
        try await records.modify(id) { $0.modify(kept.slot) { $0.failures = 0 } }
        failedAt[[id.text, kept.slot.rawValue]] = nil
        let opened = OpenedKeys(contents: contents, s: s)
        try checkAge(opened.passwordTime, opening)
        remember(s, id, kept, opening.policy.rules)
        return opened
    }

    private func openRemembered(_ opening: Opening) async throws -> OpenedKeys {
        let kept = opening.kept
        guard let s = takeRemembered(opening.id, kept) else { throw SigningError(.passwordRequired) }
        guard let contents = try await unsealed(kept.current, SealingPlan(kept, s: s), opening.record) else {
            forget(opening.id, kept.slot)
            throw SigningError(.passwordRequired)
        }
        let opened = OpenedKeys(contents: contents, s: s)
        try checkAge(opened.passwordTime, opening)
        return opened
    }

    /// Seconds that are left to wait; `nil` when there are none. They begin anew with the process, whose clock is the
    /// only one that nobody can set.
    private func delay(_ lock: LocalPasswordLock, _ kept: SlotRecord, _ id: SigningID) -> Int? {
        guard case .delay(let seconds, let counter) = lock, kept.failures > 0 else { return nil }
        let whole = seconds << (min(kept.failures, counter) - 1)
        let since = uptime() - (failedAt[[id.text, kept.slot.rawValue]] ?? .zero)
        let left = Duration.seconds(whole) - since
        return left > .zero ? Int(left.components.seconds) + (left.components.attoseconds > 0 ? 1 : 0) : nil
    }

    /// The device judges the age of a `local` password, by the last time that the server signed.
    private func checkAge(_ passwordTime: Int, _ opening: Opening) throws {
        let days = opening.policy.rules.maxAge
        guard days > 0, opening.purpose == .use,
            opening.record.serverTime > passwordTime + days * 86400
        else { return }
        throw SigningError(.passwordExpired)
    }

    /// Destroys what a password opens, and says so.
    func destroy(_ opening: Opening) async throws -> SigningError {
        forget(opening.id, opening.kept.slot)
        try await records.modify(opening.id) { $0.modify(opening.kept.slot) { $0.shred() } }
        logger.notice("the keys of a password were destroyed", metadata: ["container": "\(opening.id)"])
        return Self.destroyed
    }
}
