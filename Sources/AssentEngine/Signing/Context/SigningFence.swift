import AssentCore
import AssentStore

/// What is done to the data of a restored backup before a server works on it: what was open then may have been answered
/// since, and nobody here knows.
package enum SigningFence {
    /// How much there was.
    package struct Outcome: Sendable, Hashable {
        /// Transactions that were open.
        package let transactions: Int
        /// Invites that had not led to anything yet.
        package let invites: Int
        /// Devices that had not finished, and renewals.
        package let enrolments: Int
    }

    /// Ends open transactions, invites, unfinished enrolments and renewals, and locks every slot until its user
    /// authenticates, in one transaction of the database.
    package static func run(_ context: EngineContext) async throws -> Outcome {
        let now = context.clock.epochSeconds
        let audit = AuditLog(context)
        let note = AuditRecord(.signingRestore, .success)
        let rows = try await context.database.run(
            statements(at: now).map { SQLStatement($0) } + [audit.statement(note)])
        func count(_ range: Range<Int>) -> Int { rows[range].reduce(0) { $0 + $1.count } }
        return Outcome(transactions: count(0..<1), invites: count(1..<2), enrolments: count(2..<5))
    }

    private static func statements(at now: Int64) -> [SQL] {
        [
            """
            UPDATE signing_transactions SET state = 'FAILED', reason = 'restored'
            WHERE state = 'PENDING' RETURNING txn
            """,
            // One by which a container is active, or has its new keys, is over already.
            """
            UPDATE signing_invites SET state = 'VOID', digits = NULL
            WHERE state = 'OPEN' OR (state = 'USED' AND (
                EXISTS (SELECT 1 FROM signing_containers c
                    WHERE c.pid = signing_invites.pid AND c.state = 'UNCONFIRMED')
                OR EXISTS (SELECT 1 FROM signing_renewals r
                    WHERE r.invite = signing_invites.pid AND r.state = 'COMPLETED')))
            RETURNING pid
            """,
            """
            UPDATE signing_enrolments SET state = 'VOID' WHERE state IN ('STARTED', 'COMMITTED') RETURNING did
            """,
            """
            UPDATE signing_containers SET state = 'VOID', number = NULL, ended_at = \(now)
            WHERE state = 'UNCONFIRMED' RETURNING did
            """,
            """
            UPDATE signing_renewals SET state = 'VOID'
            WHERE state IN ('STARTED', 'COMMITTED', 'COMPLETED') RETURNING did
            """,
            "DELETE FROM signing_keys WHERE state = 'PENDING'",
            "UPDATE signing_slots SET held = 1 WHERE held = 0",
            """
            DELETE FROM signing_keys WHERE EXISTS (
                SELECT 1 FROM signing_containers c WHERE c.did = signing_keys.did AND c.state = 'VOID')
            """,
            """
            DELETE FROM signing_otp_keys WHERE EXISTS (
                SELECT 1 FROM signing_containers c WHERE c.did = signing_otp_keys.did AND c.state = 'VOID')
            """,
        ]
    }
}
