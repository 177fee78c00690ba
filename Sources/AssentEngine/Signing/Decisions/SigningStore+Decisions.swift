import AssentCore
package import AssentSigningProtocol
import AssentStore

extension SigningStore {
    /// The decision of a transaction.
    package func decision(of txn: String) async throws -> StoredDecision? {
        try await first("SELECT * FROM signing_decisions WHERE txn = \(txn)").map(StoredDecision.init)
    }

    /// What is true of a transaction that a container decides on before anything of the decision is looked at.
    package enum DecisionTurn: Sendable, Hashable {
        /// This decision was made before: its receipt.
        case repeated(receipt: String)
        /// It may be decided now.
        case open(SigningTransactionRecord)
    }

    /// Whether a container may decide on a transaction now, or has decided so before.
    ///
    /// - Throws: ``SigningRefusal``: `tx_unknown`, `already_decided`, or why it is not open.
    package func turn(_ txn: String, dh: String, container: SigningContainerRecord, at now: Int64) async throws
        -> DecisionTurn
    {
        guard let transaction = try await transaction(txn), transaction.userID == container.userID,
            transaction.did == nil || transaction.did == container.did
        else { throw SigningRefusal(.transactionUnknown) }
        if let stored = try await decision(of: txn) {
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

    /// Has whoever is about to refuse a decision look whether it was made meanwhile.
    ///
    /// - Throws: ``RepeatedDecision``.
    func checkForRepetition(_ txn: String, dh: String, container: SigningContainerRecord) async throws {
        guard let stored = try await decision(of: txn), stored.did == container.did, stored.dh == dh else { return }
        throw RepeatedDecision(receipt: stored.receipt)
    }

    /// Compares the number that the user typed. One decision may try, and that is committed before the comparison; a
    /// wrong number ends the transaction.
    ///
    /// - Throws: ``SigningRefusal``: `match_used`, `match_wrong`, or why it is not open; ``RepeatedDecision``.
    package func compareNumber(
        _ number: String, txn: String, dh: String, container: SigningContainerRecord, at now: Int64
    ) async throws {
        let rows = try await context.database.run(
            SQLStatement(SigningSQL.claimNumber(txn: txn, dh: dh, at: now)))
        guard let row = rows.first else {
            try await checkForRepetition(txn, dh: dh, container: container)
            guard let known = try await transaction(txn) else { throw SigningRefusal(.transactionUnknown) }
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
    package func fail(txn: String, because reason: RefusalCode, container: SigningContainerRecord) async throws {
        _ = try await succeeds([
            SQLStatement(SigningSQL.fail(txn: txn, reason: reason.rawValue), expecting: .exactly(1)),
            audit.statement(
                record(
                    .signingDecide, .failed, reason: reason, user: container.userID, did: container.did, txn: txn)),
        ])
    }

    /// Writes down that a decision was refused.
    package func refuse(_ reason: RefusalCode, txn: String, container: SigningContainerRecord) async throws {
        try await audit.write(
            record(.signingDecide, .refused, reason: reason, user: container.userID, did: container.did, txn: txn))
    }

    /// Decides, in one transaction of the database.
    ///
    /// - Returns: the receipt that counts: the one of `decision`, or of the same decision at an earlier time.
    /// - Throws: ``SigningRefusal``: why it was not decided; that is in the audit log.
    package func decide(
        _ decision: SigningDecision, container: SigningContainerRecord, proof: SpentProof, at now: Int64
    ) async throws -> String {
        let approving = decision.state == .approved
        let note = record(
            .signingDecide, user: container.userID, did: decision.did, txn: decision.txn,
            ["state": decision.state.rawValue, "status": decision.status, "kid": decision.kid])
        let statements =
            [
                SQLStatement(
                    SigningSQL.use(container: decision.did, approving: approving, at: now), expecting: .exactly(1)),
                SQLStatement(
                    SigningSQL.use(key: decision.kid, of: decision.did, at: now), expecting: .exactly(1)),
            ] + taking(decision, at: now) + [
                SQLStatement(
                    SigningSQL.decide(decision, user: container.userID, at: now), expecting: .exactly(1)),
                SQLStatement(SigningSQL.keep(decision, at: now), expecting: .exactly(1)),
            ] + spending(proof, at: now) + [audit.statement(note, id: decision.auditID)]
        guard case .refused(let statement) = try await attempt(statements) else { return decision.receipt }
        // The same decision, sent twice at once: both get one receipt.
        if let receipt = try await receipt(of: decision) { return receipt }
        let reason = try await refusal(of: decision, by: statement, at: now)
        try await refuse(reason.code, txn: decision.txn, container: container)
        throw reason
    }

    /// The statement that spends the decision's evaluation, if its key needs one.
    private func taking(_ decision: SigningDecision, at now: Int64) -> [SQLStatement] {
        decision.unlock.map {
            [
                SQLStatement(
                    SigningSQL.take($0, dh: decision.dh, did: decision.did, at: now), expecting: .exactly(1))
            ]
        } ?? []
    }

    private func receipt(of decision: SigningDecision) async throws -> String? {
        guard let stored = try await self.decision(of: decision.txn), stored.dh == decision.dh,
            stored.did == decision.did
        else { return nil }
        return stored.receipt
    }

    private func refusal(of decision: SigningDecision, by statement: Int, at now: Int64) async throws -> SigningRefusal
    {
        var statement = statement
        if let unlock = decision.unlock {
            if statement == 2 {
                if let refusal = try await transaction(decision.txn)?.refusal(at: now) { return refusal }
                return try await refusal(of: unlock, did: decision.did)
            }
            if statement > 2 { statement -= 1 }
        }
        switch statement {
        case 0:
            guard let container = try await container(did: decision.did) else {
                return SigningRefusal(.unknownContainer)
            }
            return container.refusal(approving: decision.state == .approved, at: now) ?? SigningRefusal(.unavailable)
        case 1: return SigningRefusal(.keyRetired)
        case 2:
            guard let known = try await transaction(decision.txn) else { return SigningRefusal(.transactionUnknown) }
            if let refusal = known.refusal(at: now) { return refusal }
            return SigningRefusal(decision.needsNumber ? .matchUsed : .transactionUnknown)
        case 3: return SigningRefusal(.alreadyDecided)
        default: return SigningRefusal(.replay)
        }
    }
}

extension SigningStore {
    /// Why an evaluation could not be taken.
    func refusal(of unlock: SpentEvaluation, did: String) async throws -> SigningRefusal {
        let isExpired = try await slot(unlock.slot, of: did).map { $0.changedAt <= unlock.passwordSetAfter } ?? false
        return SigningRefusal(isExpired ? .passwordExpired : .unlockRequired)
    }
}

extension SigningContainerRecord {
    /// Why it may not decide; `nil` when it may.
    package func refusal(approving: Bool, at now: Int64) -> SigningRefusal? {
        switch state(at: now) {
        case .active: break
        case .suspect: if approving { return SigningRefusal(.containerSuspect) }
        case .blocked: return SigningRefusal(.containerBlocked)
        case .revoked: return SigningRefusal(.containerRevoked)
        case .void, .unconfirmed: return SigningRefusal(.enrolmentVoid)
        }
        if expiresAt <= now { return SigningRefusal(.keyExpired) }
        guard approving, approvalsFrom > now else { return nil }
        return SigningRefusal(.approvalsNotYet, retryAfter: approvalsFrom - now)
    }
}
