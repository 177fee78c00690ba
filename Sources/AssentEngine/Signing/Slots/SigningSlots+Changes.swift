import AssentCore
package import AssentSigningProtocol
import AssentStore

/// What is done to a slot beside its device.
package enum SlotAction: String, Sendable, Hashable {
    /// Nobody can try until it is unlocked.
    case lock
    /// It may be tried again, after a fresh authentication.
    case unlock
    /// Its keys are destroyed.
    case wipe
}

extension SigningSlots {
    /// Gives an evaluation back whose password was right, and forgives those before it. A repetition changes nothing.
    ///
    /// - Throws: ``SigningRefusal`` `server_rolled_back` when the slot does not know the number.
    func confirm(_ confirmed: ConfirmedTry, of container: SigningContainerRecord) async throws {
        enum Refused { case isRepeated, numberIsUnknown }
        let outcome = try await store.attempt([
            .one(SlotSQL.insert(confirmed), else: Refused.isRepeated),
            .one(SlotSQL.forgive(confirmed), else: .numberIsUnknown),
            store.note(
                .signingSlot, user: container.userID, did: confirmed.did,
                ["slot": confirmed.slot.rawValue, "step": "confirmed", "n": "\(confirmed.n)"]),
        ])
        guard case .refused(.numberIsUnknown) = outcome else { return }
        let row = try await known(confirmed.slot, of: confirmed.did)
        if row.generation == confirmed.generation {
            try await remember(ahead: confirmed.n, of: row, container: container)
        }
        throw SigningRefusal(.serverRolledBack)
    }

    /// Makes a key beside the slot's, for a new password; the old one must be `minimumAge` seconds old. The key of a
    /// change that had begun before is thrown away.
    ///
    /// - Throws: ``SigningRefusal``: `shredded`, `wrong_generation`, `password_too_young`, why the container may not,
    ///   `unlock_required`, `replay`.
    func begin(
        _ change: SlotChange, with key: SigningOfferedSlot, unl: SigningID, minimumAge: Int64,
        of container: SigningContainerRecord, proof: SpentProof, at now: Int64
    ) async throws {
        let begin = SlotSQL.begin(change, with: key, setBefore: now - minimumAge, at: now)
        let outcome = try await store.attempt(
            [
                .one(SlotSQL.take(change, unl: unl, at: now), else: SigningErrorCode.unlockRequired),
                .one(begin, else: .unavailable),
            ] + store.spending(proof, at: now, else: .replay) + [
                store.note(
                    .signingSlot, user: container.userID, did: change.did,
                    ["slot": change.slot.rawValue, "step": "change"])
            ])
        guard case .refused(let code) = outcome else { return }
        if code == .replay { throw SigningRefusal(.replay) }
        let row = try await found(change, container, at: now)
        guard row.generation == change.from else { throw SigningRefusal(.wrongGeneration) }
        guard row.changedAt <= now - minimumAge else {
            throw SigningRefusal(.passwordTooYoung, retryAfter: row.changedAt + minimumAge - now)
        }
        throw SigningRefusal(code)
    }

    /// The new key takes the old one's place, if it is the one that the device means. A repetition finds it there.
    ///
    /// - Throws: ``SigningRefusal``: `shredded`, `wrong_generation`, also for another key, why the container may not,
    ///   `replay`.
    func commit(
        _ change: SlotChange, of container: SigningContainerRecord, proof: SpentProof, at now: Int64
    ) async throws {
        // A renewal that is under way has the number of this generation.
        let done = try await store.changes(
            [
                .one(SlotSQL.lock(container: change.did), else: .changed),
                .one(SlotSQL.commit(change, at: now), else: .changed),
            ] + RenewalSQL.end(of: change.did).map { .any($0) } + store.spending(proof, at: now) + [
                store.note(
                    .signingSlot, user: container.userID, did: change.did,
                    ["slot": change.slot.rawValue, "step": "changed", "generation": "\(change.to)"])
            ])
        if done { return }
        let row = try await found(change, container, at: now)
        guard row.generation == change.to, row.pendingGeneration == nil, row.publicKey == change.publicKey else {
            throw SigningRefusal(.wrongGeneration)
        }
    }

    /// The slot of a change that was refused.
    private func found(_ change: SlotChange, _ container: SigningContainerRecord, at now: Int64) async throws
        -> SigningSlotRow
    {
        let row = try await known(change.slot, of: change.did)
        guard row.sealedKey != nil else { throw SigningRefusal(.shredded) }
        guard let known = try await devices.find(change.did) else { throw SigningRefusal(.unknownContainer) }
        guard known.state(at: now) != .suspect else { throw SigningRefusal(.containerSuspect) }
        if let refusal = known.refusal(approving: false, at: now) { throw refusal }
        return row
    }

    /// Unlocks a slot, of the caller or by an administrator, after a fresh authentication. Administrators also lock it,
    /// and destroy what it opens.
    ///
    /// - Returns: the container's state.
    /// - Throws: ``SigningRefusal``: `unknown_container`, also for somebody else's; `forbidden`;
    ///   `fresh_authentication_required`; `invalid_request` when there is no such slot; `shredded`.
    package func act(_ caller: SigningCaller, did: String, _ action: SlotAction, on name: String)
        async throws(SigningRefusal) -> ContainerState
    {
        try await answering {
            let now = now
            let container = try await devices.find(did, for: caller)
            guard action == .unlock || caller.isAdministrator else { throw SigningRefusal(.forbidden) }
            if action == .unlock { try requireFreshness(of: caller, at: now) }
            guard let slot = PasswordSlot(rawValue: name) else { throw Self.noSuchSlot }
            let row = try await known(slot, of: container.did)
            let done = try await act(action, on: slot, of: container, by: caller.session.user.id)
            guard done || (action == .wipe && row.sealedKey == nil) else { throw SigningRefusal(.shredded) }
            return container.state(at: now)
        }
    }

    /// Locks, unlocks or destroys a slot.
    ///
    /// - Returns: false when there is no such slot, or its keys were destroyed before.
    func act(
        _ action: SlotAction, on slot: PasswordSlot, of container: SigningContainerRecord, by actor: String
    ) async throws -> Bool {
        func changed(_ sql: SQL, _ step: String) async throws -> Bool {
            try await store.changes([
                .one(SlotSQL.lock(container: container.did), else: .changed), .one(sql, else: .changed),
                store.note(
                    .signingSlot, user: container.userID, did: container.did,
                    ["slot": slot.rawValue, "step": step, "by": actor]),
            ])
        }
        return switch action {
        case .lock: try await changed(SlotSQL.hold(slot, of: container.did), "locked")
        case .unlock: try await changed(SlotSQL.open(slot, of: container.did), "unlocked")
        case .wipe: try await destroy(slot, of: container, by: actor)
        }
    }

    /// Destroys a slot's keys; with `cap` only when so many evaluations were never confirmed.
    @discardableResult
    func destroy(
        _ slot: PasswordSlot, of container: SigningContainerRecord, cap: Int? = nil, by actor: String
    ) async throws -> Bool {
        let did = container.did
        let isDue: SQL = cap.map { "unconfirmed >= \($0)" } ?? "1 = 1"
        let isMeant: SQL = "slot = \(slot) AND sealed_k IS NOT NULL AND \(isDue)"
        return try await store.changes(
            [
                .one(SlotSQL.lock(container: did), else: .changed), .any(LoginSQL.endSessions(of: did)),
                .any(ContainerSQL.retireKeys(of: did, when: "slot = \(slot)")),
                .one(SlotSQL.destroySlots(of: did, when: isMeant), else: .changed),
            ] + RenewalSQL.end(of: did, evenWithCode: false).map { .any($0) } + [
                store.note(
                    .signingSlot, user: container.userID, did: did,
                    ["slot": slot.rawValue, "step": "destroyed", "by": actor])
            ])
    }
}
