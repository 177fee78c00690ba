import AssentCore
import AssentSigningProtocol
import AssentStore

/// A realm that offers transaction signing, by the name that its messages carry.
package struct SigningIssuer: Sendable, Hashable {
    /// The URL that all of the issuer's messages name, without a trailing slash. Another URL is another issuer.
    package let name: String
    package let realm: String

    package init(name: String, realm: String) {
        (self.name, self.realm) = (name, realm)
    }
}

/// How one issuer's data are read and changed. Each change is one transaction of the database that has its whole
/// condition, together with its audit record; rows are always locked in this order: user, invite, enrolment, container,
/// key, transaction.
struct SigningStore: Sendable {
    let context: EngineContext
    let audit: AuditLog
    let issuer: SigningIssuer

    /// The data of an issuer in a context's database.
    init(_ context: EngineContext, issuer: SigningIssuer) {
        self.context = context
        self.issuer = issuer
        audit = AuditLog(context)
    }

    /// The time of a call in seconds since 1970: taken once, and used in all of its statements.
    var now: Int64 { context.clock.epochSeconds }

    /// The rows of a statement that only reads.
    func all(_ sql: SQL) async throws -> [SQLRow] { try await context.database.run(.read(sql)) }

    /// The first of them.
    func first(_ sql: SQL) async throws -> SQLRow? { try await all(sql).first }

    /// The rows of several statements that only read, in the order of the statements. Where nodes share the database
    /// that is one round trip, and one state of it. A process that has it for itself asks one after the other: each is
    /// answered on the thread that asks.
    func together(_ queries: [SQL]) async throws -> [[SQLRow]] {
        guard context.database.isShared else {
            var rows: [[SQLRow]] = []
            for query in queries { rows.append(try await all(query)) }
            return rows
        }
        return try await context.database.run(queries.map { SQLStatement.read($0) })
    }

    /// Runs statements as one transaction of the database.
    ///
    /// - Returns: false when one of them did not find its rows; then nothing was changed.
    func succeeds(_ statements: [SQLStatement]) async throws -> Bool {
        let outcome = try await attempt(statements.map { GuardedStatement($0, else: Obstacle.changed) })
        return if case .done = outcome { true } else { false }
    }

    /// Runs statements as one transaction of the database.
    ///
    /// - Returns: false for ``Obstacle/changed``.
    /// - Throws: ``SigningRefusal`` for every other obstacle.
    func changes(_ statements: [GuardedStatement<Obstacle>]) async throws -> Bool {
        switch try await attempt(statements) {
        case .done: return true
        case .refused(.changed): return false
        case .refused(.refusal(let refusal)): throw refusal
        }
    }

    /// Runs statements as one transaction of the database, and says which one did not find its rows.
    func attempt<Refusal>(_ statements: [GuardedStatement<Refusal>]) async throws -> Attempt<Refusal> {
        try await context.database.attempt(statements)
    }

    /// An audit record about a container, a transaction or an invite.
    func record(
        _ event: AuditEvent, _ outcome: AuditRecord.Outcome = .success, reason: SigningErrorCode? = nil,
        user: String?, did: SigningID? = nil, txn: String? = nil, _ detail: KeyValuePairs<String, String?> = [:]
    ) -> AuditRecord {
        var members = JSONObject()
        if let did { members["did"] = .string(did.text) }
        for case (let name, let value?) in detail { members[name] = .string(value) }
        return AuditRecord(
            event, outcome, reason: reason?.rawValue, realm: issuer.realm, userID: user, transactionID: txn,
            detail: members)
    }

    /// The statement that writes down that something was done.
    func note<Refusal>(
        _ event: AuditEvent, user: String?, did: SigningID? = nil, txn: SigningID? = nil,
        _ detail: KeyValuePairs<String, String?> = [:]
    ) -> GuardedStatement<Refusal> {
        .also(audit.statement(record(event, user: user, did: did, txn: txn?.text, detail)))
    }

    /// Writes down that something was refused.
    func writeRefusal(
        _ event: AuditEvent, _ reason: SigningErrorCode?, user: String?, did: SigningID? = nil, txn: SigningID? = nil,
        _ detail: KeyValuePairs<String, String?> = [:]
    ) async throws {
        try await audit.write(
            record(event, .refused, reason: reason, user: user, did: did, txn: txn?.text, detail))
    }

    /// The statement that spends a proof: the second use of one finds it spent.
    func spending(_ proof: SpentProof?, at now: Int64) -> [GuardedStatement<Obstacle>] {
        spending(proof, at: now, else: .refusal(SigningRefusal(.replay)))
    }

    /// The same with another refusal.
    func spending<Refusal>(
        _ proof: SpentProof?, at now: Int64, else refusal: Refusal
    ) -> [GuardedStatement<Refusal>] {
        proof.map { [.one($0.spending(at: now), else: refusal)] } ?? []
    }

    /// Whether a proof was spent before.
    func isSpent(_ proof: SpentProof?) async throws -> Bool {
        guard let proof else { return false }
        return try await first("SELECT jti FROM signing_proofs WHERE jti = \(proof.jti)") != nil
    }
}

/// Why statements that change something did not take place.
enum Obstacle: Sendable {
    /// What they change is not as it was any more: look again.
    case changed
    /// For this reason, however it looks by now.
    case refusal(SigningRefusal)

    /// For this reason, however it looks by now.
    static func refused(_ code: SigningErrorCode, _ detail: String? = nil) -> Self {
        .refusal(SigningRefusal(code, detail))
    }
}

/// The proof of a call that changes something, which may do so once.
struct SpentProof: Sendable, Hashable {
    /// Seconds for which it is remembered: as long as its nonce is valid, also when a node whose clock is ahead deletes
    /// what is over, and one whose clock is behind gets the proof again.
    static let memory = SigningNonces.lead + SigningNonces.lifetime + NodeClocks.difference

    let jti: SigningID
    /// The container or enrolment that it is of.
    let did: SigningID

    /// The statement that remembers it, so that its second use finds it spent.
    func spending(at now: Int64) -> SQL {
        """
        INSERT INTO signing_proofs (jti, did, expires_at)
        VALUES (\(jti), \(did), \(now + Self.memory)) ON CONFLICT DO NOTHING
        """
    }
}
