import AssentCore
import AssentStore

/// A transaction that was taken for one access. Nobody else has one with this id.
package struct TakenTransaction: Sendable, Hashable {
    /// The id.
    package let id: String

    /// Only a take makes one.
    init(id: String) { self.id = id }
}

/// What came of the attempt to use a transaction.
package enum TakeResult: Sendable, Hashable {
    /// This access, and no other, is granted.
    case taken(TakenTransaction)
    /// It was used before, for the very same request.
    case alreadyTaken(TransactionRecord)
    /// It grants nothing. That is in the audit log.
    case refused(TransactionRefusal)
}

extension Transactions {
    /// COMPLETED → TAKEN, if everything that it is bound to is the same: one statement, together with its audit record.
    ///
    /// - Parameters:
    ///   - id: the transaction.
    ///   - binding: what it must be bound to.
    ///   - attempt: the request of a gateway elsewhere that it is for. It is then on record as forwarded, and the same
    ///     attempt has it a second time within ``TransactionAttempt/repetition`` seconds.
    ///   - tokenID: the id of the access token that the request came with; one that was revoked since takes nothing.
    /// - Returns: what came of it.
    /// - Throws: ``EngineError``; then nothing was taken.
    package func take(
        id: String, binding: TransactionBinding, by attempt: TransactionAttempt? = nil, token tokenID: String? = nil
    ) async throws -> TakeResult {
        try await context.translatingStoreErrors {
            let now = context.clock.epochSeconds
            let take = SQLStatement(
                TransactionSQL.take(id, binding: binding, by: attempt, token: tokenID, at: now),
                expecting: .exactly(1))
            let note = audit.statement(record(.transactionTake, .success, id: id, binding: binding))
            do {
                _ = try await context.database.run([take, note])
                return .taken(TakenTransaction(id: id))
            } catch let error as StoreError where error.code == .unexpectedCount {
                return try await explain(id, binding: binding, by: attempt, token: tokenID, at: now)
            }
        }
    }

    /// A record and whether its session is alive, and the access token and its grant if it came with one.
    struct Found {
        let record: TransactionRecord
        let isLive: Bool

        /// Why a record whose fields all match is refused.
        func refusal(at now: Int64) -> TransactionRefusal {
            if record.state == .taken { return .taken }
            if record.state == .expired || record.expiresAt <= now { return .expired }
            if record.createdAt > now + TransactionSQL.clockTolerance { return .clock }
            return isLive ? .state : .sessionEnded
        }
    }

    func find(_ id: String, token tokenID: String? = nil, at now: Int64) async throws -> Found? {
        guard id.utf8.count <= 64 else { return nil }
        let rows = try await context.database.run(.read(TransactionSQL.find(id, token: tokenID, at: now)))
        return try rows.first.map { Found(record: try TransactionRecord($0), isLive: try $0.bool("live")) }
    }

    /// Writes the one audit record of a refusal, and with it that the time of `record` is over when that was the
    /// reason.
    func close(
        _ record: TransactionRecord?, reason: TransactionRefusal, at now: Int64, note: AuditRecord
    ) async throws {
        var statements = [audit.statement(note)]
        if reason == .expired, let record {
            statements.append(SQLStatement(TransactionSQL.expire(record.id, at: now)))
        }
        _ = try await context.database.run(statements)
    }

    private func explain(
        _ id: String, binding: TransactionBinding, by attempt: TransactionAttempt?, token tokenID: String?,
        at now: Int64
    ) async throws -> TakeResult {
        let found = try await find(id, token: tokenID, at: now)
        let reason = found.map { found in
            found.record.binding.firstDifference(from: binding) ?? found.refusal(at: now)
        }
        let refusal = reason ?? .unknown
        if refusal == .taken, let attempt, found?.record.wasTaken(by: attempt, at: now) == true {
            return .taken(TakenTransaction(id: id))
        }
        let note = record(.transactionTake, .refused, reason: refusal, id: found?.record.id, binding: binding)
        try await close(found?.record, reason: refusal, at: now, note: note)
        if refusal == .taken, let found { return .alreadyTaken(found.record) }
        return .refused(refusal)
    }
}
