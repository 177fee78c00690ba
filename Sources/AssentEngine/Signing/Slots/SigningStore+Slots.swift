import AssentCore
package import AssentSigningProtocol
import AssentStore

/// A change of a slot's password.
package struct SlotChange: Sendable, Hashable {
    /// The container.
    package let did: String
    /// The slot.
    package let slot: PasswordSlot
    /// The generation before.
    package let from: Int64
    /// The generation after.
    package let to: Int64
    /// At the end: the key that has evaluated the new password.
    package let publicKey: [UInt8]?

    /// A change.
    package init(did: String, slot: PasswordSlot, from: Int64, to: Int64, publicKey: [UInt8]? = nil) {
        self.did = did
        self.slot = slot
        self.from = from
        self.to = to
        self.publicKey = publicKey
    }

    /// What the evaluation that it spends is taken by.
    var taker: String { "change:\(from)" }
}

/// What is done to a slot beside its device.
package enum SlotAction: String, Sendable, Hashable {
    /// Nobody can try until it is unlocked.
    case lock
    /// It may be tried again, after a fresh authentication.
    case unlock
    /// Its keys are destroyed.
    case wipe
}

extension SigningStore {
    /// Gives an evaluation back whose password was right, and forgives those before it. A repetition changes nothing.
    ///
    /// - Throws: ``SigningRefusal`` `server_rolled_back` when the slot does not know the number.
    package func confirm(_ confirmed: ConfirmedTry, of container: SigningContainerRecord) async throws {
        let note = audit.statement(
            record(
                .signingSlot, user: container.userID, did: confirmed.did,
                ["slot": confirmed.slot.rawValue, "step": "confirmed", "n": "\(confirmed.n)"]))
        let outcome = try await attempt([
            SQLStatement(SigningSQL.insert(confirmed), expecting: .exactly(1)),
            SQLStatement(SigningSQL.forgive(confirmed), expecting: .exactly(1)), note,
        ])
        guard case .refused(by: let statement) = outcome, statement > 0 else { return }
        guard let row = try await slot(confirmed.slot, of: confirmed.did) else {
            throw SigningRefusal(.invalidRequest, "The container has no such password slot.")
        }
        if row.generation == confirmed.generation {
            try await remember(ahead: confirmed.n, of: row, container: container)
        }
        throw SigningRefusal(.serverRolledBack)
    }

    /// A confirmed evaluation that a decision may take.
    package func confirmed(_ unl: String, slot: PasswordSlot, of did: String, at now: Int64) async throws
        -> ConfirmedTry?
    {
        try await first(
            """
            SELECT * FROM signing_confirms
            WHERE did = \(did) AND slot = \(slot.rawValue) AND unl = \(unl) AND taken_by IS NULL
                AND evaluated_at > \(now - SigningSQL.evaluationLifetime) AND eval IS NOT NULL
            """
        ).map(ConfirmedTry.init)
    }

    /// Makes a key beside the slot's, for a new password; the old one must be `minimumAge` seconds old. The key of a
    /// change that had begun before is thrown away.
    ///
    /// - Throws: ``SigningRefusal``: `shredded`, `wrong_generation`, `password_too_young`, why the container may not,
    ///   `unlock_required`, `replay`.
    package func begin(
        _ change: SlotChange, with key: SigningOfferedSlot, unl: String, minimumAge: Int64,
        of container: SigningContainerRecord, proof: SpentProof, at now: Int64
    ) async throws {
        let outcome = try await attempt(
            [
                SQLStatement(SigningSQL.take(change, unl: unl, at: now), expecting: .exactly(1)),
                SQLStatement(
                    SigningSQL.begin(change, with: key, setBefore: now - minimumAge, at: now), expecting: .exactly(1)),
            ] + spending(proof, at: now) + [
                audit.statement(
                    record(
                        .signingSlot, user: container.userID, did: change.did,
                        ["slot": change.slot.rawValue, "step": "change"]))
            ])
        guard case .refused(by: let statement) = outcome else { return }
        if statement > 1 { throw SigningRefusal(.replay) }
        let row = try await found(change, container, at: now)
        guard row.generation == change.from else { throw SigningRefusal(.wrongGeneration) }
        guard row.changedAt <= now - minimumAge else {
            throw SigningRefusal(.passwordTooYoung, retryAfter: row.changedAt + minimumAge - now)
        }
        throw SigningRefusal(statement == 0 ? .unlockRequired : .unavailable)
    }

    /// The new key takes the old one's place, if it is the one that the device means. A repetition finds it there.
    ///
    /// - Throws: ``SigningRefusal``: `shredded`, `wrong_generation`, also for another key, why the container may not,
    ///   `replay`.
    package func commit(
        _ change: SlotChange, of container: SigningContainerRecord, proof: SpentProof, at now: Int64
    ) async throws {
        let outcome = try await attempt(
            [
                SQLStatement(SigningSQL.lock(container: change.did), expecting: .exactly(1)),
                SQLStatement(SigningSQL.commit(change, at: now), expecting: .exactly(1)),
            ]
                // A renewal that is under way has the number of this generation.
                + SigningSQL.endRenewals(of: change.did).map { SQLStatement($0) } + spending(proof, at: now) + [
                    audit.statement(
                        record(
                            .signingSlot, user: container.userID, did: change.did,
                            ["slot": change.slot.rawValue, "step": "changed", "generation": "\(change.to)"]))
                ])
        guard case .refused(by: let statement) = outcome else { return }
        if statement > 1 { throw SigningRefusal(.replay) }
        let row = try await found(change, container, at: now)
        guard row.generation == change.to, row.pendingGeneration == nil, row.publicKey == change.publicKey else {
            throw SigningRefusal(.wrongGeneration)
        }
    }

    /// The slot of a change that was refused.
    private func found(_ change: SlotChange, _ container: SigningContainerRecord, at now: Int64) async throws
        -> SigningSlotRow
    {
        guard let row = try await slot(change.slot, of: change.did) else {
            throw SigningRefusal(.invalidRequest, "The container has no such password slot.")
        }
        guard row.sealedKey != nil else { throw SigningRefusal(.shredded) }
        guard let known = try await self.container(did: change.did) else { throw SigningRefusal(.unknownContainer) }
        guard known.state(at: now) != .suspect else { throw SigningRefusal(.containerSuspect) }
        if let refusal = known.refusal(approving: false, at: now) { throw refusal }
        return row
    }

    /// Locks, unlocks or destroys a slot.
    ///
    /// - Returns: false when there is no such slot, or its keys were destroyed before.
    package func act(
        _ action: SlotAction, on slot: PasswordSlot, of container: SigningContainerRecord, by actor: String
    ) async throws -> Bool {
        let did = container.did
        func changed(_ sql: SQL, _ step: String) async throws -> Bool {
            try await succeeds([
                SQLStatement(SigningSQL.lock(container: did), expecting: .exactly(1)),
                SQLStatement(sql, expecting: .exactly(1)),
                audit.statement(
                    record(
                        .signingSlot, user: container.userID, did: did,
                        ["slot": slot.rawValue, "step": step, "by": actor])),
            ])
        }
        return switch action {
        case .lock: try await changed(SigningSQL.hold(slot, of: did), "locked")
        case .unlock: try await changed(SigningSQL.open(slot, of: did), "unlocked")
        case .wipe: try await destroy(slot, of: container, by: actor)
        }
    }

    /// Destroys a slot's keys; with `cap` only when so many evaluations were never confirmed.
    @discardableResult
    func destroy(
        _ slot: PasswordSlot, of container: SigningContainerRecord, cap: Int? = nil, by actor: String
    ) async throws -> Bool {
        let did = container.did
        return try await succeeds(
            [
                SQLStatement(SigningSQL.lock(container: did), expecting: .exactly(1)),
                SQLStatement(SigningSQL.retireKeys(of: did, in: slot)),
                SQLStatement(SigningSQL.destroy(slot, of: did, cap: cap), expecting: .exactly(1)),
            ] + SigningSQL.endRenewals(of: did, evenWithCode: false).map { SQLStatement($0) } + [
                audit.statement(
                    record(
                        .signingSlot, user: container.userID, did: did,
                        ["slot": slot.rawValue, "step": "destroyed", "by": actor]))
            ])
    }
}

extension SigningStore {
    /// The slots that the offer of an enrolment has.
    package func offeredSlots(did: String, pid: String) async throws -> [SigningOfferedSlot] {
        try await context.database.run(.read(SigningSQL.offeredSlots(of: did, pid: pid))).map(SigningOfferedSlot.init)
    }

    /// Counts an evaluation at enrolment, or for new keys.
    ///
    /// - Throws: ``SigningRefusal``: `invalid_request`, `enrolment_void`, `wrong_generation`, `rate_limited`.
    package func evaluate(
        _ evaluation: SlotEvaluation, generation: Int64, rid: String, element: String, at now: Int64
    ) async throws -> SigningOfferedSlot {
        let (did, pid, slot) = (evaluation.did, evaluation.pid, evaluation.slot)
        let outcome = try await attempt([
            SQLStatement(
                SigningSQL.evaluate(evaluation, generation: generation, rid: rid, element: element, at: now),
                expecting: .exactly(1)),
            audit.statement(
                record(
                    evaluation.isRenewal ? .signingContainer : .signingEnrol, user: evaluation.user, did: did,
                    ["step": "evaluate", "slot": slot.rawValue])),
        ])
        if case .done(let results) = outcome, let row = results.first?.first { return try SigningOfferedSlot(row) }
        guard let isStarted = try await isStarted(evaluation, at: now) else { throw SigningRefusal(.enrolmentVoid) }
        guard isStarted, let offered = try await offeredSlots(did: did, pid: pid).first(where: { $0.slot == slot })
        else { throw SigningRefusal(.invalidRequest, "There is nothing to evaluate now.") }
        throw SigningRefusal(offered.generation == generation ? .rateLimited : .wrongGeneration)
    }

    /// Whether what a password is evaluated for waits for it; `nil` when it is over.
    private func isStarted(_ evaluation: SlotEvaluation, at now: Int64) async throws -> Bool? {
        if evaluation.isRenewal {
            guard let known = try await renewal(pid: evaluation.pid), known.state != .void, known.expiresAt > now else {
                return nil
            }
            return known.state == .started
        }
        guard let known = try await enrolment(did: evaluation.did), known.state != .void, known.expiresAt > now else {
            return nil
        }
        return known.state == .started
    }
}

/// For what a password is evaluated that seals nothing yet.
package struct SlotEvaluation: Sendable, Hashable {
    /// The container, or what will be one.
    package let did: String
    /// The enrolment, or the renewal.
    package let pid: String
    /// Whether it is for new keys of a container.
    package let isRenewal: Bool
    /// Whose it is.
    package let user: String?
    /// The slot.
    package let slot: PasswordSlot

    /// A password of an enrolment.
    package init(_ enrolment: SigningEnrolmentRecord, user: String?, slot: PasswordSlot) {
        (did, pid, isRenewal) = (enrolment.did, enrolment.pid, false)
        (self.user, self.slot) = (user, slot)
    }

    /// A password for new keys.
    package init(_ renewal: SigningRenewalRecord, user: String?, slot: PasswordSlot) {
        (did, pid, isRenewal) = (renewal.did, renewal.pid, true)
        (self.user, self.slot) = (user, slot)
    }
}
