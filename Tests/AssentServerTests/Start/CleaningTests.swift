import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Logging
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What housekeeping deletes")
struct CleaningTests {
    /// A database that writes down what it is asked.
    private final class Recorder: SQLDatabase {
        private let base: any SQLDatabase
        private let statements = Locked<[SQLStatement]>([])
        /// How the statements begin that fail.
        private let broken: String?
        /// What the clock of the database's server shows, in milliseconds since 1970; `nil` where it has none.
        private let served: Int64?
        /// Is waited for before sessions are deleted.
        private let delay: @Sendable () async -> Void

        init(
            _ base: any SQLDatabase, broken: String?, served: Int64?, delay: @escaping @Sendable () async -> Void
        ) {
            self.base = base
            self.broken = broken
            self.served = served
            self.delay = delay
        }

        var isShared: Bool { base.isShared }

        private var texts: [String] { statements.withLock { $0 }.map { $0.sql.text() } }

        /// The tables of which rows were deleted.
        var tables: Set<String> {
            Set(
                texts.compactMap { text in
                    text.firstMatch(of: /DELETE FROM ([a-z_]+)/).map { String($0.output.1) }
                })
        }

        /// What has deleted rows of a table.
        func deletions(from table: String) -> [String] { texts.filter { $0.hasPrefix("DELETE FROM \(table) ") } }

        /// What has changed rows of a table.
        func updates(of table: String) -> [String] { texts.filter { $0.hasPrefix("UPDATE \(table) ") } }

        /// How the database does the first statement that begins so: its own words.
        func plan(of beginning: String) async throws -> [String] {
            let ran = statements.withLock { $0 }
            let statement = try #require(ran.first(where: { $0.sql.text().hasPrefix(beginning) }))
            let isPostgreSQL = TestDatabase.isPostgreSQL
            let explain: SQL = isPostgreSQL ? "EXPLAIN" : "EXPLAIN QUERY PLAN"
            let rows = try await base.run(SQLStatement("\(explain) \(statement.sql)"))
            return try rows.map { try $0.text(isPostgreSQL ? "QUERY PLAN" : "detail") }
        }

        func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await run([statement]).first ?? [] }

        func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
            self.statements.withLock { $0 += statements }
            if statements.contains(where: { $0.sql.text().hasPrefix("DELETE FROM sessions ") }) { await delay() }
            if let broken, statements.contains(where: { $0.sql.text().hasPrefix(broken) }) {
                throw StoreError(.unavailable, "It takes longer than a statement may.")
            }
            return try await base.run(statements)
        }

        func checkHealth() async throws { try await base.checkHealth() }

        func time() async throws -> Int64? { served }

        func close() async throws { try await base.close() }
    }

    /// A clock that is moved by each sleep, also backwards, and ends the sleep after the last of its steps.
    private final class SteppedClock: WallClock {
        private struct State {
            var now: Date
            var steps: ArraySlice<TimeInterval>
            var hasEnded = false
        }

        private let state: Locked<State>

        init(_ steps: [TimeInterval]) { state = Locked(State(now: ManualClock().now, steps: steps[...])) }

        var now: Date { state.withLock { $0.now } }

        /// Whether somebody has slept after its last step.
        var hasEnded: Bool { state.withLock { $0.hasEnded } }

        func sleep(until deadline: Date) async throws {
            try state.withLock { state in
                guard let step = state.steps.popFirst() else {
                    state.hasEnded = true
                    throw CancellationError()
                }
                state.now += step
            }
        }
    }

    /// Housekeeping on a database of its own, while `body` runs.
    private func run(
        clock: any WallClock = ManualClock(), broken: String? = nil, served: Int64? = nil,
        delay: @escaping @Sendable () async -> Void = {}, _ body: (Housekeeping, Recorder) async throws -> Void
    ) async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let location = try await TestDatabase.location(directory + "/assent.sqlite")
        let database = Recorder(
            try await location.open(clock: clock), broken: broken, served: served, delay: delay)
        let context = EngineContext(
            database: database, clock: clock, random: SystemRandom(),
            masterKey: try MasterKey(Secret(bytes: SystemRandom().bytes(MasterKey.byteCount))),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let (keys, transactions) = (ServerKeys(context), Transactions(context))
        let hold = try #require(try await location.hold(node: context.node))
        let housekeeping = Housekeeping(
            context: context, sessions: Sessions(context), transactions: transactions,
            providers: [
                try OAuthProvider(
                    context, keys: keys,
                    configuration: OAuthProviderConfiguration(
                        realm: "/alpha", issuer: "https://am.example/am/oauth2/realms/root/realms/alpha", clients: []))
            ],
            authentication: Authentication(
                context, realms: [:], transactions: transactions, passwords: Passwords(context),
                oneTimePasswords: OneTimePasswords(context), proofs: SenderProofs(context)), keys: keys,
            proofs: SenderProofs(context), payload: PayloadParts(context, proofs: SenderProofs(context)),
            watch: NodeWatch(context, location, hold, clockLimit: served == nil ? nil : .seconds(30)), policies: "")
        try await body(housekeeping, database)
        hold.release()
        try await database.close()
    }

    @Test("It deletes from the tables that the register gives to it, and from no other")
    func register() async throws {
        try await run { housekeeping, database in
            // What ends one by one is deleted only when there is something.
            _ = try await database.run(
                SQLStatement(
                    """
                    INSERT INTO client_instances (id, realm, app, key_thumbprint, metadata, token_hash, created_at,
                        used_at, expires_at)
                    VALUES ('pay~1', '/alpha', 'pay', '', '', '', 0, 0, 0)
                    """))
            try await housekeeping.report()
            try await housekeeping.clean()
            var expected = Set(TableRegister.tables.filter { $0.cleaning == .purged }.map(\.name))
            // One process has spent proofs and sessions of payload encryption in memory.
            if !database.isShared { expected.subtract(["payload_sessions", "spent_proofs"]) }
            #expect(database.tables == expected)
        }
    }

    @Test("A node whose clock is a day ahead deletes nothing that is valid elsewhere, and leaves the work to others")
    func clockAhead() async throws {
        let clock = ManualClock()
        try await run(clock: clock, served: clock.epochMilliseconds) { housekeeping, database in
            try await Self.spend(database, until: clock.epochSeconds + 3600)
            clock.advance(by: 86_400)
            await housekeeping.watch.look()
            try await housekeeping.clean()
            #expect(database.tables.isEmpty)
            let leases = try await database.run(.read("SELECT name FROM leases"))
            #expect(leases.isEmpty)
            clock.put(by: -86_400)
            await housekeeping.watch.look()
            try await housekeeping.clean()
            #expect(database.tables.contains("sessions"))
            let proofs = try await database.run(.read("SELECT jti FROM signing_proofs"))
            #expect(proofs.count == 1)
        }
    }

    @Test("A clock that goes wrong within a round ends the round")
    func clockGoesWrong() async throws {
        let clock = ManualClock()
        let watch = Locked<NodeWatch?>(nil)
        let wrong: @Sendable () async -> Void = {
            clock.advance(by: 86_400)
            await watch.withLock { $0 }?.look()
        }
        try await run(clock: clock, served: clock.epochMilliseconds, delay: wrong) { housekeeping, database in
            try await Self.spend(database, until: clock.epochSeconds + 3600)
            watch.withLock { $0 = housekeeping.watch }
            try await housekeeping.clean()
            #expect(database.tables == ["sessions"])
            let proofs = try await database.run(.read("SELECT jti FROM signing_proofs"))
            #expect(proofs.count == 1)
        }
    }

    /// Writes down that a proof was used that is good until `time`.
    private static func spend(_ database: Recorder, until time: Int64) async throws {
        _ = try await database.run(
            SQLStatement("INSERT INTO signing_proofs (jti, did, expires_at) VALUES ('j', 'd', \(time))"))
    }

    @Test("What fails keeps nothing else from its turn", arguments: ["DELETE FROM journey_steps ", "UPDATE audit "])
    func failure(statement: String) async throws {
        try await run(broken: statement) { housekeeping, database in
            try await housekeeping.clean()
            #expect(database.tables.isSuperset(of: ["sessions", "transactions", "grants", "payload_keys", "attempts"]))
        }
    }

    @Test("What anybody can make many of is deleted in steps, also what hangs on something else")
    func steps() async throws {
        let many: [(table: String, columns: SQL, values: SQL)] = [
            ("attempts", "counter, window_start, count", "'a' || n, 0, 1"),
            ("signing_proofs", "jti, did, expires_at", "'j' || n, 'd', 0"),
            (
                "grants", "id, realm, client_id, scope, is_offline, created_at, expires_at",
                "'g' || n, '/alpha', 'c', '', 0, 0, 0"
            ),
            ("refresh_tokens", "id, grant_id, client_id, issued_at, expires_at", "'r' || n, 'g1', 'c', 0, 0"),
            (
                "registration_tokens", "hash, realm, app, uses_left, created_at, expires_at",
                "'h' || n, '/alpha', 'pay', 1, 0, 0"
            ),
            (
                "signing_offered_slots", "did, pid, slot, generation, public_key, sealed_k, evaluations, expires_at",
                "'d', 'p' || n, 's', 1, \(SQLValue.blob([])), \(SQLValue.blob([])), 0, 0"
            ),
        ]
        try await run { housekeeping, database in
            for rows in many { try await Self.fill(database, rows.table, rows.columns, rows.values) }
            try await housekeeping.clean()
            for rows in many {
                #expect(database.deletions(from: rows.table).count == 2, "\(rows.table)")
                let left = try await database.run(.read("SELECT 1 AS n FROM \(SQL(verbatim: rows.table))"))
                #expect(left.isEmpty, "\(rows.table)")
            }
            for table in [
                "sessions", "transactions", "journey_steps", "attempts", "consents", "revoked_access_tokens",
                "refresh_tokens", "grants", "signing_proofs", "signing_notices", "usual_networks",
                "registration_tokens", "signing_offered_slots", "signing_keys", "signing_renewals", "signing_invites",
            ] {
                let deletions = database.deletions(from: table)
                #expect(!deletions.isEmpty, "\(table)")
                #expect(deletions.allSatisfy { $0.contains("LIMIT") }, "\(table)")
            }
        }
    }

    @Test("What the time decides about many rows is written in steps")
    func decisions() async throws {
        let many: [(table: String, columns: SQL, values: SQL, left: SQL)] = [
            (
                "signing_transactions",
                "txn, iss, client_id, kind, state, content, req, request, created_at, expires_at, own_session",
                "'t' || n, 'i', 'c', 'payment', 'PENDING', '', '', '', 0, 0, 0", "state <> 'EXPIRED'"
            ),
            (
                "signing_confirms", "did, slot, n, unl, generation, evaluated_at, confirmed_at, eval, confirm",
                "'d', 's', n, 'u', 1, 0, 0, 'e', 'c'", "eval IS NOT NULL OR confirm IS NOT NULL"
            ),
            (
                "refresh_tokens", "id, grant_id, client_id, issued_at, expires_at, used_at, sealed_successor",
                "'r' || n, 'g1', 'c', 0, 1000000000000, 0, \(SQLValue.blob([1]))", "sealed_successor IS NOT NULL"
            ),
            (
                "journey_steps", "id, created_at, expires_at, sealed_state, answered_at, sealed_reply",
                "'s' || n, 0, 1000000000000, \(SQLValue.blob([])), 0, \(SQLValue.blob([1]))",
                "length(sealed_reply) > 0"
            ),
        ]
        try await run { housekeeping, database in
            _ = try await database.run(
                SQLStatement(
                    """
                    INSERT INTO grants (id, realm, client_id, scope, is_offline, created_at, expires_at)
                    VALUES ('g1', '/alpha', 'c', '', 0, 0, 1000000000000)
                    """))
            for rows in many { try await Self.fill(database, rows.table, rows.columns, rows.values) }
            try await housekeeping.clean()
            for rows in many {
                #expect(database.updates(of: rows.table).count == 2, "\(rows.table)")
                let left = try await database.run(
                    .read("SELECT 1 AS n FROM \(SQL(verbatim: rows.table)) WHERE \(rows.left)"))
                #expect(left.isEmpty, "\(rows.table)")
                let kept = try await database.run(.read("SELECT 1 AS n FROM \(SQL(verbatim: rows.table))"))
                #expect(kept.count == EngineContext.rowsAtOnce + 1, "\(rows.table)")
            }
            for table in many.map(\.table) + ["signing_renewals", "grants"] {
                let updates = database.updates(of: table)
                #expect(!updates.isEmpty, "\(table)")
                #expect(updates.allSatisfy { $0.contains("LIMIT") }, "\(table)")
            }
        }
    }

    @Test("Audit records are numbered in steps, without gaps also where several have one place")
    func numbers() async throws {
        try await run { housekeeping, database in
            try await Self.fill(
                database, "audit", "id, at, event, outcome, detail, node, position",
                "'r' || n, 0, 'e', 'success', '{}', \(housekeeping.context.node), n / 2")
            try await housekeeping.clean()
            #expect(database.updates(of: "audit").count == 2)
            let row = try await database.run(
                .read("SELECT count(sequence) AS n, min(sequence) AS first, max(sequence) AS last FROM audit")
            ).first
            let numbers = try ["n", "first", "last"].map { try row?.integer($0) }
            let count = Int64(EngineContext.rowsAtOnce + 1)
            #expect(numbers == [count, 1, count])
        }
    }

    @Test("Audit records without a number are found without a walk past all that have one")
    func unnumbered() async throws {
        try await run { housekeeping, database in
            try await housekeeping.clean()
            for (name, place, number) in [
                ("a", 0, "n"), ("b", 10_000, "n + 10000"), ("c", 20_000, "NULL"), ("d", 30_000, "NULL"),
            ] as [(String, Int64, SQL)] {
                try await Self.fill(
                    database, "audit", "id, at, event, outcome, detail, node, position, sequence",
                    "\(name) || n, 0, 'e', 'success', '{}', \(housekeeping.context.node), \(place) + n, \(number)")
            }
            _ = try await database.run(SQLStatement("ANALYZE audit"))
            let plan = try await database.plan(of: "UPDATE audit ")
            #expect(!plan.isEmpty)
            #expect(!plan.contains { $0.contains("audit_position") || $0.hasPrefix("SCAN audit") }, "\(plan)")
        }
    }

    /// Adds one row more to a table than are changed at once.
    private static func fill(_ database: Recorder, _ table: String, _ columns: SQL, _ values: SQL) async throws {
        _ = try await database.run(
            SQLStatement(
                """
                INSERT INTO \(SQL(verbatim: table)) (\(columns))
                WITH RECURSIVE numbers (n) AS (
                    SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n <= \(EngineContext.rowsAtOnce))
                SELECT \(values) FROM numbers
                """))
    }

    @Test(
        "What has ended is found by an index among all tokens, devices and calls",
        .enabled(if: !TestDatabase.isPostgreSQL))
    func indices() async throws {
        try await run { housekeeping, database in
            try await housekeeping.clean()
            let successors = try await database.plan(of: "UPDATE refresh_tokens ")
            #expect(successors.contains { $0.contains("refresh_tokens_sealed") }, "\(successors)")
            let invites = try await database.plan(of: "DELETE FROM signing_invites ")
            #expect(invites.contains { $0.contains("signing_containers_invite") }, "\(invites)")
            let keys = try await database.plan(of: "DELETE FROM signing_keys ")
            #expect(keys.contains { $0.contains("signing_keys_pending") }, "\(keys)")
            let attempts = try await database.plan(of: "DELETE FROM attempts ")
            #expect(attempts.contains { $0.contains("attempts_age") }, "\(attempts)")
        }
    }

    @Test(
        "A clock that is set back does not put the next round off",
        arguments: [([60, 60], false), ([60, 60, -86_400], true), ([300], true)] as [([TimeInterval], Bool)])
    func setBack(steps: [TimeInterval], isDue: Bool) async throws {
        try await run(clock: SteppedClock(steps)) { housekeeping, database in
            try await housekeeping.run()
            #expect(database.tables.contains("sessions") == isDue)
        }
    }

    @Test("While much is deleted the node looks at its clock each minute all the same, and begins no second round")
    func longRound() async throws {
        let clock = SteppedClock([300, 60, 60, 300, 60])
        let untilTheEnd: @Sendable () async -> Void = { while !clock.hasEnded { await Task.yield() } }
        try await run(clock: clock, delay: untilTheEnd) { housekeeping, database in
            try await housekeeping.run()
            #expect(database.deletions(from: "attempts").count == 1)
        }
    }
}
