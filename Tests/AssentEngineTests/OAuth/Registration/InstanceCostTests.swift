import AssentCore
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("What an instance's requests cost among many instances")
struct InstanceCostTests {
    /// Keeps what it is asked, and says how it would find that.
    private final class AskedDatabase: SQLDatabase {
        private let base: any SQLDatabase
        private let asked = Locked<[SQLStatement]>([])

        init(_ base: any SQLDatabase) { self.base = base }

        var isShared: Bool { base.isShared }

        /// The statements that something takes.
        func statements(_ body: () async throws -> Void) async throws -> [SQLStatement] {
            let before = asked.withLock { $0.count }
            try await body()
            return asked.withLock { Array($0[before...]) }
        }

        /// Whether a statement looks at all instances to find its own: the database says so in its own words.
        func walksAll(_ sql: SQL) async throws -> Bool {
            let isPostgreSQL = TestDatabase.isPostgreSQL
            let explain: SQL = isPostgreSQL ? "EXPLAIN" : "EXPLAIN QUERY PLAN"
            let rows = try await base.run(SQLStatement("\(explain) \(sql)"))
            let plan = try rows.map { try $0.text(isPostgreSQL ? "QUERY PLAN" : "detail") }
            if isPostgreSQL { return plan.contains { $0.contains("Seq Scan on client_instances") } }
            let names = sql.text().matches(of: /client_instances(?: ([a-z]+))?/).map { found in
                found.output.1.map { String($0) } ?? "client_instances"
            }
            return plan.contains { line in
                names.contains { line == "SCAN \($0)" || line.hasPrefix("SCAN \($0) ") }
            }
        }

        func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await run([statement]).first ?? [] }

        func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
            asked.withLock { $0 += statements }
            return try await base.run(statements)
        }

        func time() async throws -> Int64? { try await base.time() }

        func checkHealth() async throws { try await base.checkHealth() }

        func close() async throws { try await base.close() }
    }

    @Test("Among 20,000 each request takes the statements that it takes among ten, and none looks at all of them")
    func many() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let database = AskedDatabase(fixture.database)
        let context = EngineContext(
            database: database, clock: fixture.clock, random: SystemRandom(), masterKey: fixture.context.masterKey,
            logger: fixture.context.logger)
        let node = try OAuthProvider(context, keys: ServerKeys(context), configuration: fixture.grants.configuration)
        let (registered, key) = try await fixture.instance()
        /// A registration, tokens, calls, and what an instance does about its registration.
        func requests() async throws -> [SQLStatement] {
            let initial = try await fixture.initialToken()
            return try await database.statements {
                _ = try await fixture.register(AssertionKey(), token: initial, on: node)
                let own = try await fixture.ownToken(of: registered.id, key, on: node)
                let tokens = try await fixture.userTokens(of: registered.id, key, on: node)
                let assertion = try await key.assertion(of: registered.id, now: fixture.clock)
                let next = try await fixture.refresh(tokens.refreshToken, AssertionKey.form(assertion), on: node)
                for token in [own, next] {
                    #expect(try await node.access(token: token.accessToken) != nil)
                }
                let (instance, app) = try await node.registration.instance(registered.id, token: registered.token)
                let metadata = try InstanceMetadata(
                    ProviderFixture.request(key, ["client_id": .string(registered.id)]), of: app, as: registered.id,
                    clock: fixture.clock)
                _ = try await node.registration.change(instance, of: app, to: metadata, token: registered.token)
            }
        }
        for _ in 0..<8 { _ = try await fixture.instance() }
        // The first ones read the keys.
        _ = try await requests()
        let amongFew = try await requests()
        let now = fixture.clock.epochSeconds
        _ = try await fixture.database.run(
            SQLStatement(
                """
                INSERT INTO client_instances (id, realm, app, key_thumbprint, metadata, token_hash, created_at, used_at,
                    expires_at)
                WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
                SELECT 'pay~' || n, '/alpha', 'pay', 'key-' || n, '{}', 'hash-' || n, \(now), \(now), \(now + 86_400)
                FROM numbers
                """))
        _ = try await fixture.database.run(SQLStatement("ANALYZE client_instances"))
        let amongMany = try await requests()
        #expect(amongMany.map { $0.sql.text() } == amongFew.map { $0.sql.text() })
        let about = amongMany.map(\.sql).filter { $0.text().contains("client_instances") }
        #expect(about.count >= 6)
        for sql in about { #expect(try await !database.walksAll(sql), "\(sql.text())") }
        // The control: what no index is for.
        #expect(try await database.walksAll("SELECT i.id FROM client_instances i WHERE i.token_hash = 'hash-7'"))
        #expect(try await database.walksAll("SELECT id FROM client_instances WHERE token_hash = 'hash-7'"))
    }
}
