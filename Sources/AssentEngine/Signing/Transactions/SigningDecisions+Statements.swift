import AssentCore
import AssentSigningProtocol
import AssentStore

extension SigningDecisions {
    func find(of txn: SigningID) async throws -> SigningDecision? {
        try await store.first("SELECT * FROM signing_decisions WHERE txn = \(txn)").map(SigningDecision.init)
    }

    /// What is true of a transaction that a container decides on before anything of the decision is looked at.
    enum Turn: Sendable, Hashable {
        /// This decision was made before: its receipt.
        case repeated(receipt: String)
        /// It may be decided now.
        case open(SigningTransactionRecord)
    }

    /// Whether a container may decide on a transaction now, or has decided so before.
    ///
    /// - Throws: ``SigningRefusal``: `tx_unknown`, `already_decided`, or why it is not open.
    func turn(
        _ txn: SigningID, dh: SigningHash, container: SigningContainerRecord, at now: Int64
    ) async throws -> Turn {
        guard let transaction = try await documents.find(txn), transaction.isFor(container) else {
            throw SigningRefusal(.transactionUnknown)
        }
        if let stored = try await find(of: txn) {
            guard stored.did == container.did, stored.dh == dh else { throw SigningRefusal(.alreadyDecided) }
            return .repeated(receipt: stored.receipt)
        }
        if let refusal = transaction.refusal(at: now) { throw refusal }
        return .open(transaction)
    }

    /// The same decision, sent twice at once, was made by the other request: both get its receipt.
    struct RepeatedDecision: Error {
        let receipt: String
    }

    /// Looks, before a decision is refused, whether it was made meanwhile.
    ///
    /// - Throws: ``RepeatedDecision``.
    func checkForRepetition(_ txn: SigningID, dh: SigningHash, container: SigningContainerRecord) async throws {
        if let receipt = try await receipt(of: txn, dh: dh, by: container.did) {
            throw RepeatedDecision(receipt: receipt)
        }
    }

    private func receipt(of txn: SigningID, dh: SigningHash, by did: SigningID) async throws -> String? {
        guard let stored = try await find(of: txn), stored.dh == dh, stored.did == did else { return nil }
        return stored.receipt
    }

    /// A confirmed evaluation that a decision may take, and when its password was set.
    func confirmed(_ unl: SigningID, slot: PasswordSlot, of did: SigningID, at now: Int64) async throws
        -> (evaluation: ConfirmedTry, changedAt: Int64?)?
    {
        try await store.first(DecisionSQL.confirmed(unl, slot: slot, of: did, at: now))
            .map { (try ConfirmedTry($0), try $0.optionalInteger("changed_at")) }
    }

    /// Compares the number that the user typed. One decision may try, and that is committed before the comparison; a
    /// wrong number ends the transaction.
    ///
    /// - Throws: ``SigningRefusal``: `match_used`, `match_wrong`, or why it is not open; ``RepeatedDecision``.
    func compareNumber(
        _ number: String, txn: SigningID, dh: SigningHash, container: SigningContainerRecord, at now: Int64
    ) async throws {
        let rows = try await context.database.run(
            SQLStatement(DecisionSQL.claimNumber(txn: txn, dh: dh, at: now)))
        guard let row = rows.first else {
            try await checkForRepetition(txn, dh: dh, container: container)
            guard let known = try await documents.find(txn) else { throw SigningRefusal(.transactionUnknown) }
            let refusal = known.refusal(at: now) ?? SigningRefusal(.matchUsed)
            try await refuse(refusal.code, txn: txn, container: container)
            throw refusal
        }
        guard let right = try row.optionalText("match_number"), ConstantTime.equal(right, number) else {
            try await fail(txn: txn, because: .matchWrong, container: container)
            throw SigningRefusal(.matchWrong)
        }
    }

    /// PENDING → FAILED.
    func fail(txn: SigningID, because reason: SigningErrorCode, container: SigningContainerRecord) async throws {
        let note = store.record(
            .signingDecide, .failed, reason: reason, user: container.userID, did: container.did, txn: txn.text)
        let fail: SQL = """
            UPDATE signing_transactions
            SET state = \(SigningTransactionRecord.State.failed), reason = \(reason.rawValue)
            WHERE txn = \(txn) AND state = \(SigningTransactionRecord.State.pending)
            """
        _ = try await store.changes([.one(fail, else: .changed), .also(store.audit.statement(note))])
    }

    /// Writes down that a decision was refused.
    func refuse(_ reason: SigningErrorCode, txn: SigningID, container: SigningContainerRecord) async throws {
        try await store.writeRefusal(.signingDecide, reason, user: container.userID, did: container.did, txn: txn)
    }

    /// Why a decision was not made, by the statement that says so.
    private enum Obstacle: Sendable {
        case container, key, evaluation(SpentEvaluation), transaction, isDecided, isReplayed
    }

    /// Decides, in one transaction of the database.
    ///
    /// - Returns: the receipt that holds: the one of `decision`, or of the same decision at an earlier time.
    /// - Throws: ``SigningRefusal``: why it was not decided; that is in the audit log.
    func decide(
        _ decision: SigningDecision, _ effects: DecisionEffects, container: SigningContainerRecord, proof: SpentProof,
        at now: Int64
    ) async throws -> String {
        let (did, txn) = (decision.did, decision.txn)
        let note = store.record(
            .signingDecide, user: container.userID, did: did, txn: txn.text,
            ["state": effects.state.rawValue, "status": effects.status, "kid": effects.kid.text])
        let approves = effects.state == .approved
        var statements: [GuardedStatement<Obstacle>] = [
            .one(DecisionSQL.use(container: did, approving: approves, at: now), else: .container),
            .one(DecisionSQL.use(key: effects.kid, of: did, at: now), else: .key),
        ]
        if let unlock = effects.unlock {
            let take = DecisionSQL.take(unlock, for: decision.dh.text, did: did, at: now)
            statements.append(.one(take, else: .evaluation(unlock)))
        }
        statements += [
            .one(DecisionSQL.decide(decision, effects, user: container.userID, at: now), else: .transaction),
            .one(DecisionSQL.keep(decision, at: now), else: .isDecided),
        ]
        statements += store.spending(proof, at: now, else: .isReplayed)
        statements.append(.also(store.audit.statement(note, id: effects.auditID)))
        guard case .refused(let obstacle) = try await store.attempt(statements) else { return decision.receipt }
        // The same decision, sent twice at once: both get one receipt.
        if let receipt = try await receipt(of: txn, dh: decision.dh, by: did) { return receipt }
        let reason = try await refusal(obstacle, decision, effects, at: now)
        try await refuse(reason.code, txn: txn, container: container)
        throw reason
    }

    private func refusal(
        _ obstacle: Obstacle, _ decision: SigningDecision, _ effects: DecisionEffects, at now: Int64
    ) async throws -> SigningRefusal {
        switch obstacle {
        case .container:
            guard let container = try await devices.find(decision.did) else {
                return SigningRefusal(.unknownContainer)
            }
            if let refusal = container.refusal(approving: effects.state == .approved, at: now) { return refusal }
            let isActive = try await Users(context).find(id: container.userID)?.isActive ?? false
            return SigningRefusal(isActive ? .unavailable : .containerBlocked)
        case .key: return SigningRefusal(.keyRetired)
        case .evaluation(let unlock):
            if let refusal = try await documents.find(decision.txn)?.refusal(at: now) { return refusal }
            let changedAt = try await slots.find(unlock.slot, of: decision.did)?.changedAt
            let isExpired = changedAt.map { $0 <= unlock.passwordSetAfter } ?? false
            return SigningRefusal(isExpired ? .passwordExpired : .unlockRequired)
        case .transaction:
            guard let known = try await documents.find(decision.txn) else { return SigningRefusal(.transactionUnknown) }
            if let refusal = known.refusal(at: now) { return refusal }
            return SigningRefusal(effects.needsNumber ? .matchUsed : .transactionUnknown)
        case .isDecided: return SigningRefusal(.alreadyDecided)
        case .isReplayed: return SigningRefusal(.replay)
        }
    }
}
