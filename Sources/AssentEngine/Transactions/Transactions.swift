import AssentCore
package import AssentStore
import Logging

/// How many transactions may be made. Earlier ones stay valid: clients use the id of the last answer.
package struct TransactionLimits: Sendable, Hashable {
    /// How many a session may have made for one policy in a window.
    package var creations: Int64

    /// The window, in seconds.
    package var window: Int64

    /// Limits. A client may ask twice for one access (a browser SDK does), so they are not tight.
    package init(creations: Int64 = 20, window: Int64 = 60) {
        self.creations = creations
        self.window = window
    }
}

/// The transactions in the store: each is one approval for one access.
package struct Transactions: Sendable {
    let context: EngineContext
    let limits: TransactionLimits
    let audit: AuditLog
    private let attempts: AttemptCounter

    /// Seconds for which an unused transaction is still known by name after its end, so that a late answer can say why.
    package static let expiredRetention: Int64 = 600

    /// Seconds for which a taken transaction is known after its end.
    package static let takenRetention: Int64 = 24 * 3600

    /// For how many seconds a request that is refused again gets the same transaction: some clients repeat what
    /// was refused at once.
    static let repetition: Int64 = 5

    /// The transactions of a context's database.
    package init(_ context: EngineContext, limits: TransactionLimits = TransactionLimits()) {
        self.context = context
        self.limits = limits
        audit = AuditLog(context)
        attempts = AttemptCounter(context)
    }

    /// Makes a transaction; for a request that was refused a few seconds before, and whose transaction nobody has
    /// looked at, gives that one, and counts nothing.
    ///
    /// Requests are the same when all that is known of them is, their `Idempotency-Key` included: two payments that
    /// only look alike have two approvals.
    ///
    /// - Throws: ``EngineError``: `tooManyRequests` when the session has made too many, `sessionRequired` when it is no
    ///   longer alive, `unavailable`.
    package func create(
        binding: TransactionBinding, url: String, display: [DisplayLine], ttl: Int64,
        idempotencyKey: String? = nil
    ) async throws -> TransactionRecord {
        try await context.translatingStoreErrors {
            let requestKey = binding.requestKey(idempotencyKey: idempotencyKey)
            if let known = try await repeated(requestKey) { return known }
            let counter = "transaction:\(binding.sessionAuditID):\(binding.policySet):\(binding.policy)"
            guard try await attempts.attempt(counter, limit: limits.creations, window: limits.window) else {
                context.logger.warning(
                    "transactions limited",
                    metadata: ["policy": "\(binding.policy)", "session": "\(binding.sessionAuditID)"])
                throw EngineError(.tooManyRequests, "Too many transactions. Try again later.")
            }
            let id = context.random.uuid()
            let now = context.clock.epochSeconds
            let lines = JSONValue.array(display.map(\.json)).serialized()
            let new = TransactionRecord(
                id: id, state: .created, binding: binding, url: url, display: display, createdAt: now,
                expiresAt: now + ttl, outcome: nil)
            do {
                _ = try await context.database.run([
                    SQLStatement(
                        TransactionSQL.release(requestKey: requestKey, before: now - Self.repetition, at: now)),
                    SQLStatement(
                        TransactionSQL.create(new, display: lines, requestKey: requestKey),
                        expecting: .exactly(1)),
                    audit.statement(record(.transactionCreate, .success, id: id, binding: binding)),
                ])
            } catch let error as StoreError where error.code == .unexpectedCount {
                // The same request came at the same moment, or the session has ended.
                guard let known = try await repeated(requestKey) else { throw EngineError.sessionRequired }
                return known
            }
            return new
        }
    }

    private func repeated(_ requestKey: String?) async throws -> TransactionRecord? {
        guard let requestKey else { return nil }
        let now = context.clock.epochSeconds
        return try await context.database.run(
            .read(TransactionSQL.find(requestKey: requestKey, since: now - Self.repetition, at: now))
        ).first.map(TransactionRecord.init)
    }

    /// CREATED → IN_PROGRESS, for the session that it was made for. From here on it is shown in one language: the
    /// first of `languages` in which the policy has labels.
    ///
    /// - Throws: ``EngineError`` `transactionUnreadable`, the same for unknown, expired, foreign and in another state.
    package func start(
        id: String, session: LiveSession, languages: [String] = []
    ) async throws -> PendingApproval {
        try await context.translatingStoreErrors {
            let now = context.clock.epochSeconds
            // Nothing changes the lines once they are stored, so that they may be read before the statement.
            let lines = try await find(id, at: now)?.record.display
            let shown = lines.map { ShownLines($0, languages: languages).stored }
            let statement = SQLStatement(
                TransactionSQL.start(id, session: session, shown: shown, at: now), expecting: .exactly(1))
            let note = audit.statement(record(.transactionStart, .success, id: id, session: session))
            do {
                let rows = try await context.database.run([statement, note])
                guard let row = rows.first?.first else { throw EngineError.transactionUnreadable }
                return try Self.approval(row)
            } catch let error as StoreError where error.code == .unexpectedCount {
                try await refuse(.transactionStart, id: id, session: session)
                throw EngineError.transactionUnreadable
            }
        }
    }

    /// The approval again, at a later step of its journey.
    ///
    /// - Throws: the same error when it is no longer IN_PROGRESS for this session.
    package func check(id: String, session: LiveSession) async throws -> PendingApproval {
        try await context.translatingStoreErrors {
            let rows = try await context.database.run(
                .read(TransactionSQL.check(id, session: session, at: context.clock.epochSeconds)))
            guard let row = rows.first else {
                try await refuse(.transactionCheck, id: id, session: session)
                throw EngineError.transactionUnreadable
            }
            return try Self.approval(row)
        }
    }

    private static func approval(_ row: SQLRow) throws -> PendingApproval {
        var approval = try TransactionRecord(row).approval
        approval.clientID = try row.optionalText("client")
        return approval
    }

    /// The record, to the session that it was made for; `nil` to any other, and when it has expired.
    func current(id: String, session: LiveSession) async throws -> TransactionRecord? {
        let now = context.clock.epochSeconds
        return try await context.translatingStoreErrors {
            guard let found = try await find(id, at: now), found.record.binding.sessionID == session.id,
                found.record.binding.userID == session.user.id, found.record.expiresAt > now
            else { return nil }
            return found.record
        }
    }

    /// The statements that make it COMPLETED, to run in one transaction with the end of the journey. They fail as a
    /// whole (``StoreError`` `unexpectedCount`) when it is no longer IN_PROGRESS, has expired, or its session or user
    /// is no longer live.
    package func completion(of approval: PendingApproval, session: LiveSession) -> [SQLStatement] {
        [
            SQLStatement(
                TransactionSQL.complete(approval.id, session: session, at: context.clock.epochSeconds),
                expecting: .exactly(1)),
            audit.statement(record(.transactionComplete, .success, id: approval.id, session: session)),
        ]
    }

    /// CREATED or IN_PROGRESS → DECLINED: the user, or the journey, said no. Returns whether that changed anything.
    package func decline(id: String, session: LiveSession) async throws -> Bool {
        try await context.translatingStoreErrors {
            do {
                _ = try await context.database.run([
                    SQLStatement(TransactionSQL.decline(id, session: session), expecting: .exactly(1)),
                    audit.statement(record(.transactionDecline, .success, id: id, session: session)),
                ])
                return true
            } catch let error as StoreError where error.code == .unexpectedCount {
                return false
            }
        }
    }

    /// Deletes what is long past. Returns how many.
    package func purge() async throws -> Int {
        let now = context.clock.epochSeconds
        return try await context.translatingStoreErrors {
            try await context.delete(
                from: "transactions",
                where: TransactionSQL.isPast(
                    unusedBefore: now - Self.expiredRetention, takenBefore: now - Self.takenRetention))
        }
    }

    func record(
        _ event: AuditEvent, _ outcome: AuditRecord.Outcome, reason: TransactionRefusal? = nil, id: String?,
        binding: TransactionBinding
    ) -> AuditRecord {
        AuditRecord(
            event, outcome, reason: reason?.rawValue, realm: binding.realm, userID: binding.userID,
            sessionAuditID: binding.sessionAuditID, transactionID: id,
            detail: JSONObject([
                .init(name: "policySet", value: .string(binding.policySet)),
                .init(name: "policy", value: .string(binding.policy)),
                .init(name: "resource", value: .string(binding.resource)),
            ]))
    }

    private func record(
        _ event: AuditEvent, _ outcome: AuditRecord.Outcome, reason: TransactionRefusal? = nil, id: String?,
        session: LiveSession
    ) -> AuditRecord {
        AuditRecord(
            event, outcome, reason: reason?.rawValue, realm: session.realm, userID: session.user.id,
            sessionAuditID: session.auditID, transactionID: id)
    }

    private func refuse(_ event: AuditEvent, id: String, session: LiveSession) async throws {
        let now = context.clock.epochSeconds
        let found = try await find(id, at: now)
        let reason: TransactionRefusal =
            if let found {
                if found.record.binding.userID != session.user.id {
                    .subject
                } else if found.record.binding.sessionID != session.id {
                    .session
                } else {
                    found.refusal(at: now)
                }
            } else {
                .unknown
            }
        let note = record(event, .refused, reason: reason, id: found?.record.id, session: session)
        try await close(found?.record, reason: reason, at: now, note: note)
    }
}
