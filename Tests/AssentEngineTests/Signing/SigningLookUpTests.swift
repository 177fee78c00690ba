import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("What calls of transaction signing read among all that is kept as evidence")
struct SigningLookUpTests {
    /// How the database finds what a statement is about: its own words.
    private static func plan(_ sql: SQL, _ database: any SQLDatabase) async throws -> String {
        let isPostgreSQL = TestDatabase.isPostgreSQL
        let explain: SQL = isPostgreSQL ? "EXPLAIN" : "EXPLAIN QUERY PLAN"
        let rows = try await database.run(SQLStatement("\(explain) \(sql)"))
        return try rows.map { try $0.text(isPostgreSQL ? "QUERY PLAN" : "detail") }.joined(separator: "\n")
    }

    /// 20,000 transactions that were approved, each for a policy's transaction, and as many devices: PostgreSQL reads
    /// small tables whole whatever indices there are.
    private static func fill(_ database: any SQLDatabase) async throws {
        let numbers: SQL = """
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
            """
        _ = try await database.run(
            SQLStatement(
                """
                INSERT INTO signing_transactions (txn, iss, client_id, user_id, kind, state, content, req, request,
                    created_at, expires_at, own_session, policy_transaction)
                \(numbers)
                SELECT 't' || n, 'i', 'shop', 'u' || n, 'transaction', 'APPROVED', '', '', '', n, n, 0, 'p' || n
                FROM numbers
                """))
        _ = try await database.run(
            SQLStatement(
                """
                INSERT INTO signing_containers (did, iss, user_id, username, pid, state, serial, name, properties,
                    commit_mode, device_kid, device_jwk, transport_jwk, sealed_echo, echo_hash, sealed_handle, offer,
                    enrol, transcript, approvals_from, renew_at, expires_at, void_at, created_at, seen_at)
                \(numbers)
                SELECT 'd' || n, 'i', 'u' || n, '', '', 'ACTIVE', 's' || n, '', '{}', '', '', '', '',
                    \(SQLValue.blob([1])), '', \(SQLValue.blob([1])), '', '', '', 0, 0, 0, 0, 0, 0
                FROM numbers
                """))
        for table in ["signing_transactions", "signing_containers"] as [SQL] {
            _ = try await database.run(SQLStatement("ANALYZE \(table)"))
        }
    }

    @Test("A signed approval, a new transaction, a device's question and a new device read none of the others' rows")
    func indices() async throws {
        let fixture = try await SigningStoreFixture()
        let database = fixture.base.database
        let container = try await fixture.active()
        if TestDatabase.isPostgreSQL { try await Self.fill(database) }
        let now = fixture.base.clock.epochSeconds
        let created = SigningTransactionSQL.createUnclaimed(
            fixture.transaction(), issuer: SigningStoreFixture.issuer.name, limits: SigningLimits())
        let looks: [(sql: SQL, index: String)] = [
            (SigningTransactionSQL.take(policyTransaction: "p7", req: "req"), "signing_transactions_policy"),
            (created, "signing_transactions_waiting"),
            (SigningTransactionSQL.pending(for: container, at: now), "signing_transactions_waiting"),
        ]
        let cleared = ContainerSQL.clearVoid(user: fixture.user).map { (sql: $0, index: "signing_containers_voided") }
        for look in looks + cleared {
            let plan = try await Self.plan(look.sql, database)
            if TestDatabase.isPostgreSQL {
                #expect(!plan.contains("Seq Scan on signing_transactions"), "\(plan)")
                #expect(!plan.contains("Seq Scan on signing_containers"), "\(plan)")
            } else {
                #expect(plan.contains(look.index), "\(plan)")
            }
        }
        // The control: what no index is for.
        let all = try await Self.plan("SELECT txn FROM signing_transactions WHERE req = 'req'", database)
        #expect(all.contains(TestDatabase.isPostgreSQL ? "Seq Scan on" : "SCAN "), "\(all)")
    }
}
