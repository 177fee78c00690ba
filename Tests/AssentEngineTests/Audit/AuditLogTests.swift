import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("The audit log")
struct AuditLogTests {
    private let record = AuditRecord(
        .transactionTake, .refused, reason: "body", realm: "/alpha", userID: "u", sessionAuditID: "s",
        transactionID: "t", detail: JSONObject([.init(name: "client", value: "bank-app")]))

    @Test("A record comes back as it went in")
    func roundTrip() async throws {
        let fixture = try await ProviderFixture()
        let log = AuditLog(fixture.context)
        fixture.clock.advance(by: 0.789)
        try await log.write(record)
        try await log.number()
        let read = try #require(try await log.records(transactionID: "t").first)
        #expect(
            [read.event.rawValue, read.reason, read.realm, read.userID, read.sessionAuditID, read.transactionID]
                == [
                    record.event.rawValue, record.reason, record.realm, record.userID, record.sessionAuditID,
                    record.transactionID,
                ])
        #expect(read.outcome == record.outcome && read.detail == record.detail && read.sequence == 1)
        #expect(read.node == fixture.context.auditSeries.node)
        #expect(read.json["at"]?.string?.hasSuffix(":00.789Z") == true, "\(read.json)")
        #expect(record.json["at"] == nil && record.json["sequence"] == nil)
        #expect(try await log.newest(5) == [read])
        #expect(try await log.records(transactionID: "u").isEmpty)
    }

    @Test("The newest come first, and no more than are asked for")
    func order() async throws {
        let fixture = try await ProviderFixture()
        let log = AuditLog(fixture.context)
        for index in 0..<5 {
            try await log.write(AuditRecord(AuditEvent(rawValue: "event-\(index)"), .success, transactionID: "t"))
            fixture.clock.advance(by: 1)
        }
        #expect(try await log.newest(2).map(\.event.rawValue) == ["event-4", "event-3"])
        #expect(try await log.records(transactionID: "t").map(\.event.rawValue) == (0..<5).map { "event-\($0)" })
    }

    @Test(
        "Records of one millisecond, of one transaction of the database and of a clock that was put back keep their order"
    )
    func sameTime() async throws {
        let fixture = try await ProviderFixture()
        let log = AuditLog(fixture.context)
        for index in 0..<20 {
            try await log.write(AuditRecord(AuditEvent(rawValue: "\(index)"), .success, transactionID: "t"))
        }
        let together = (20..<40).map {
            log.statement(AuditRecord(AuditEvent(rawValue: "\($0)"), .success, transactionID: "t"))
        }
        _ = try await fixture.database.run(together)
        fixture.clock.advance(by: -3600)
        try await log.write(AuditRecord(AuditEvent(rawValue: "40"), .success, transactionID: "t"))
        let events = (0...40).map { "\($0)" }
        #expect(try await log.records(transactionID: "t").map(\.event.rawValue) == events)
        #expect(try await log.newest(100).map(\.event.rawValue) == events.reversed())
        #expect(try await log.newest(100).compactMap(\.sequence).isEmpty)
        try await log.number()
        #expect(try await log.newest(100).compactMap(\.sequence) == (1...41).reversed())
    }

    @Test("What one user did is found without a look at what all others did")
    func ofUser() async throws {
        let fixture = try await ProviderFixture()
        let log = AuditLog(fixture.context)
        // So many, since PostgreSQL reads small tables whole whatever indices there are.
        _ = try await fixture.database.run(
            SQLStatement(
                """
                INSERT INTO audit (id, at, event, outcome, user_id, detail, node, position)
                WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
                SELECT 'r' || n, n, 'e', 'success', 'u' || (n % 10000), '{}', 'other', n FROM numbers
                """))
        _ = try await fixture.database.run(SQLStatement("ANALYZE audit"))
        let isPostgreSQL = TestDatabase.isPostgreSQL
        let explain: SQL = isPostgreSQL ? "EXPLAIN" : "EXPLAIN QUERY PLAN"
        let filter = AuditFilter(user: "u7")
        for query in [AuditQuery.newest(limit: 50, filter: filter), .after(position: 5, limit: 50, filter: filter)] {
            for users in [["u7"], ["u7", "u8"]] {
                let sql = AuditLog.reading(query, about: users, ofRealm: nil)
                let rows = try await fixture.database.run(SQLStatement("\(explain) \(sql)"))
                let plan = try rows.map { try $0.text(isPostgreSQL ? "QUERY PLAN" : "detail") }
                #expect(plan.contains { $0.contains("audit_user") }, "\(plan)")
            }
        }
        #expect(try await log.records(.newest(limit: 50, filter: filter)).map(\.position) == [10_007, 7])
        #expect(try await log.records(.after(position: 7, limit: 50, filter: filter)).map(\.position) == [10_007])
    }

    @Test("Records of earlier versions are in the order of their time, and new ones come after them")
    func numbered() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-audit-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "assent.sqlite").path
        let steps = Schema.current.steps
        let older = try #require(steps.firstIndex { $0.name == "audit sequence" })
        let clock = ManualClock()
        let place = try await TestDatabase.location(path, isEmpty: true)
        let old = try await place.open(schema: Schema(Array(steps[..<older])), clock: clock)
        for (id, at) in [("a", 3000), ("b", 1000), ("c", 2000)] {
            _ = try await old.run(
                SQLStatement(
                    "INSERT INTO audit (id, at, event, outcome, detail) VALUES (\(id), \(at), \(id), 'success', '{}')"))
        }
        try await old.close()
        let new = try await place.open(clock: clock)
        let log = AuditLog(try TransactionFixture.context(new, clock: clock))
        try await log.write(record)
        #expect(try await log.newest(9).map(\.event.rawValue) == ["transaction.take", "a", "c", "b"])
        try await new.close()
    }

    @Test("A record is written with what it tells of, or neither is")
    func together() async throws {
        let fixture = try await ProviderFixture()
        let log = AuditLog(fixture.context)
        let impossible = SQLStatement("UPDATE users SET active = 1 WHERE id = 'nobody'", expecting: .exactly(1))
        for statements in [[log.statement(record), impossible], [impossible, log.statement(record)]] {
            await #expect(throws: StoreError.self) { try await fixture.database.run(statements) }
        }
        #expect(try await log.newest(5).isEmpty)
    }

    /// The logs of two nodes on the fixture's database.
    private func logs(_ fixture: ProviderFixture) -> [AuditLog] {
        ["a", "b"].map { node in
            AuditLog(
                EngineContext(
                    database: fixture.database, clock: fixture.clock, random: SystemRandom(),
                    masterKey: fixture.context.masterKey, node: node, logger: fixture.context.logger))
        }
    }

    /// The nodes and numbers of the records of transaction `t`, oldest first.
    private func numbers(_ log: AuditLog) async throws -> [String] {
        try await log.records(transactionID: "t").map { "\($0.node ?? "-")\($0.sequence ?? 0)" }
    }

    private func write(_ name: String, to log: AuditLog) async throws {
        try await log.write(AuditRecord(AuditEvent(rawValue: name), .success, transactionID: "t"))
    }

    @Test(
        "Each node numbers its own records without gaps, also when some were taken back, and all are in order of time")
    func nodes() async throws {
        let fixture = try await ProviderFixture()
        let logs = logs(fixture)
        let impossible = SQLStatement("UPDATE users SET active = 1 WHERE id = 'nobody'", expecting: .exactly(1))
        for index in 0..<6 {
            try await write("\(index)", to: logs[index % 2])
            _ = try? await fixture.database.run([logs[0].statement(record), impossible])
            if index == 2 { try await logs[0].number() }
            fixture.clock.advance(by: 1)
        }
        for log in logs { try await log.number() }
        let records = try await logs[0].records(transactionID: "t")
        #expect(records.map(\.event.rawValue) == (0..<6).map { "\($0)" })
        #expect(try await numbers(logs[0]) == ["a1", "b1", "a2", "b2", "a3", "b3"])
    }

    @Test("What deletes old records by the page for operators leaves each node's newest, from which its numbers go on")
    func deleted() async throws {
        let fixture = try await ProviderFixture()
        let logs = logs(fixture)
        for index in 0..<6 {
            try await write("\(index)", to: logs[index % 2])
            fixture.clock.advance(by: 1)
        }
        for log in logs { try await log.number() }
        // The page goes by the clock of the database: one record is of a time to come, all others are of 1970.
        _ = try await fixture.database.run(
            SQLStatement("UPDATE audit SET at = CASE WHEN event = '2' THEN 99999999999999 ELSE 0 END"))
        let commands = try OperatingPage.section("## Deleting old data").components(separatedBy: "\"")
            .filter { $0.hasPrefix("DELETE FROM audit") }
        try #require(commands.count == 2)
        _ = try await fixture.database.run(
            SQLStatement(SQL(verbatim: commands[TestDatabase.isPostgreSQL ? 1 : 0])))
        #expect(try await numbers(logs[0]) == ["a2", "a3", "b3"])
        for log in logs {
            try await write("later", to: log)
            fixture.clock.advance(by: 1)
            try await log.number()
        }
        #expect(try await numbers(logs[0]) == ["a2", "a3", "b3", "a4", "b4"])
    }

    @Test("A node that is started again goes on with its series, also when its clock was put back")
    func restarted() async throws {
        let fixture = try await ProviderFixture()
        for name in ["0", "1"] {
            let log = AuditLog(
                EngineContext(
                    database: fixture.database, clock: fixture.clock, random: SystemRandom(),
                    masterKey: fixture.context.masterKey, node: "a", logger: fixture.context.logger))
            try await log.resume()
            try await write(name, to: log)
            fixture.clock.advance(by: -3600)
        }
        let log = AuditLog(fixture.context)
        #expect(try await log.records(transactionID: "t").map(\.event.rawValue) == ["0", "1"])
    }

    @Test("Records that are written and numbered in parallel get each number once")
    func parallel() async throws {
        let fixture = try await ProviderFixture()
        let log = AuditLog(fixture.context)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<60 {
                group.addTask { try await write("\(index)", to: log) }
                if index.isMultiple(of: 3) { group.addTask { try await log.number() } }
            }
            try await group.waitForAll()
        }
        try await log.number()
        #expect(try await log.newest(100).compactMap(\.sequence).sorted() == Array(1...60))
    }

    @Test("An outcome that nobody knows is reported, not guessed")
    func unknownOutcome() async throws {
        let fixture = try await ProviderFixture()
        let log = AuditLog(fixture.context)
        try await log.write(record)
        _ = try await fixture.database.run(SQLStatement("UPDATE audit SET outcome = 'maybe'"))
        await #expect(throws: StoreError(.corrupt, "")) { try await log.newest(1) }
    }
}
