import AssentCore
import AssentSigningProtocol
import AssentStore

/// A realm that offers transaction signing, by the name that its messages carry.
package struct SigningIssuer: Sendable, Hashable {
    /// The URL that all of the issuer's messages name, without a trailing slash. Another URL is another issuer.
    package let name: String

    /// The realm of its users.
    package let realm: String

    /// An issuer.
    package init(name: String, realm: String) {
        self.name = name
        self.realm = realm
    }
}

/// What one issuer keeps in the database. Each change is one statement that has its whole condition, together with its
/// audit record; rows are always locked in this order: user, invite, enrolment, container, key, transaction.
package struct SigningStore: Sendable {
    let context: EngineContext
    let audit: AuditLog

    /// Whose data it is.
    package let issuer: SigningIssuer

    /// The data of an issuer in a context's database.
    package init(_ context: EngineContext, issuer: SigningIssuer) {
        self.context = context
        self.issuer = issuer
        audit = AuditLog(context)
    }

    /// The time of a call: taken once, and used in all of its statements.
    package var now: Int64 { context.clock.epochSeconds }

    /// What came of statements that must all find their rows.
    enum Attempt {
        case done([[SQLRow]])
        /// Nothing was changed: this statement did not find its row.
        case refused(by: Int)
    }

    /// Runs statements as one transaction of the database.
    func attempt(_ statements: [SQLStatement]) async throws -> Attempt {
        do {
            return .done(try await context.database.run(statements))
        } catch let error as StoreError where error.code == .unexpectedCount {
            return .refused(by: error.statement ?? 0)
        }
    }

    /// As ``attempt(_:)`` when it does not matter which statement refused.
    func succeeds(_ statements: [SQLStatement]) async throws -> Bool {
        if case .done = try await attempt(statements) { true } else { false }
    }

    /// The row of a statement that only reads.
    func first(_ sql: SQL) async throws -> SQLRow? { try await context.database.run(.read(sql)).first }

    /// An audit record about a container, a transaction or an invite.
    func record(
        _ event: AuditEvent, _ outcome: AuditRecord.Outcome = .success, reason: RefusalCode? = nil,
        user: String?, did: String? = nil, txn: String? = nil, _ detail: KeyValuePairs<String, String?> = [:]
    ) -> AuditRecord {
        var members = JSONObject()
        if let did { members["did"] = .string(did) }
        for case (let name, let value?) in detail { members[name] = .string(value) }
        return AuditRecord(
            event, outcome, reason: reason?.rawValue, realm: issuer.realm, userID: user, transactionID: txn,
            detail: members)
    }

    /// The statement that spends a proof: the second use of one finds it spent.
    func spending(_ proof: SpentProof?, at now: Int64) -> [SQLStatement] {
        guard let proof else { return [] }
        return [
            SQLStatement(
                """
                INSERT INTO signing_proofs (jti, did, expires_at)
                VALUES (\(proof.jti), \(proof.did), \(now + SpentProof.memory)) ON CONFLICT DO NOTHING
                """, expecting: .exactly(1))
        ]
    }

    /// Whether a proof was spent before.
    func isSpent(_ proof: SpentProof?) async throws -> Bool {
        guard let proof else { return false }
        return try await first("SELECT jti FROM signing_proofs WHERE jti = \(proof.jti)") != nil
    }
}

/// The proof of a call that changes something, which may do so once.
package struct SpentProof: Sendable, Hashable {
    /// Seconds for which it is remembered: as long as its nonce counts, on a node whose clock is late, too.
    static let memory: Int64 = 360

    /// The proof's id.
    package let jti: String

    /// The container or enrolment that it is of.
    package let did: String

    /// A proof.
    package init(jti: String, did: String) {
        self.jti = jti
        self.did = did
    }
}
