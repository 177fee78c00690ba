#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: what stands in the way of opening is said, with what to do")
struct PostgreSQLOpeningTests {
    let place: PostgreSQLPlace

    init() async throws { place = try await PostgreSQLPlace() }

    private func failure(_ configuration: PostgreSQLConfiguration, schema: Schema = .current) async throws -> StoreError
    {
        let location = DatabaseLocation.postgresql(configuration)
        let error = await #expect(throws: StoreError.self) {
            try await location.open(schema: schema, clock: SystemClock())
        }
        return try #require(error)
    }

    @Test("A database that does not exist, a role that does not, and a server that is not there")
    func missing() async throws {
        var configuration = place.configuration
        configuration.database = "nowhere"
        var error = try await failure(configuration)
        #expect(
            error.code == .unavailable && error.detail.contains("3D000") && error.detail.contains("CREATE DATABASE"))
        await #expect(throws: StoreError(.unavailable, "")) {
            try await DatabaseLocation.postgresql(configuration).examine()
        }
        configuration = place.configuration
        configuration.user = "nobody at all"
        error = try await failure(configuration)
        #expect(error.code == .unavailable && error.detail.contains("28000"))
        configuration = place.configuration
        configuration.hosts = [.init("/tmp/missing"), .init("127.0.0.1", port: 1)]
        error = try await failure(configuration)
        #expect(error.code == .unavailable && error.detail.contains("127.0.0.1:1"))
        #expect(error.detail.contains("/tmp/missing") && error.detail.contains("that the server runs"))
        // A database whose name looks like a connection string is still a name.
        configuration = place.configuration
        configuration.database = "host=/tmp/missing dbname=\(place.configuration.database)"
        #expect(try await failure(configuration).detail.contains("3D000"))
    }

    @Test("Of several servers the first that can be used is used")
    func several() async throws {
        var configuration = place.configuration
        configuration.hosts.insert(.init("/tmp/missing"), at: 0)
        let database = try await DatabaseLocation.postgresql(configuration).open(clock: SystemClock())
        try await database.checkHealth()
    }

    @Test("A role that may make no tables, another program's tables, a newer schema, and a language without Unicode")
    func contents() async throws {
        let server = place.server
        var foreign = try await offPool { try server.makeDatabase(options: "TEMPLATE template0") }
        // Else what a busy machine is late with is the reason that is given.
        foreign.bePatient(seconds: Patience.seconds)
        let foreignName = foreign.database
        try await offPool {
            try server.sql("ALTER SCHEMA public OWNER TO postgres", in: foreignName)
        }
        var error = try await failure(foreign)
        #expect(error.code == .unavailable && error.detail.contains("42501") && error.detail.contains("Give the role"))
        try await place.sql("CREATE TABLE letters (id TEXT)")
        error = try await failure(place.configuration)
        #expect(error.code == .corrupt && error.detail.contains("another program"))
        try await place.sql("DROP TABLE letters")
        try await place.open().close()
        error = try await failure(place.configuration, schema: Schema([]))
        #expect(error.code == .newerSchema)
        var latin = try await offPool {
            try server.makeDatabase(options: "TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
        }
        latin.bePatient(seconds: Patience.seconds)
        error = try await failure(latin)
        #expect(error.code == .unavailable && error.detail.contains("ENCODING 'UTF8'"))
    }

    @Test("An older server is refused, and one that never answers is given up in time")
    func others() async throws {
        let old = try FakeServer(greeting: FakeServer.greeting(version: "13.9"))
        var configuration = place.configuration
        configuration.hosts = [old.host]
        var error = try await failure(configuration)
        #expect(error.code == .unavailable && error.detail.contains("is PostgreSQL 13; version 14"))
        let silent = try FakeServer(greeting: nil)
        configuration.hosts = [silent.host]
        configuration.connectLimit = 100
        error = try await failure(configuration)
        #expect(error.code == .unavailable && error.detail.contains("within 100 ms"))
    }

    @Test("Servers that start on one empty database at the same moment share one schema")
    func parallel() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { [place] in
                    let database = try await place.location.open(clock: SystemClock())
                    #expect(try await database.count("schema_steps") == Int64(Schema.current.steps.count))
                    try await database.close()
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("A step that fails leaves the schema as it was")
    func failedStep() async throws {
        try await place.open().close()
        let broken = Schema(
            SQLDatabaseContract.schema.steps
                + [Migration("broken", ["CREATE TABLE half (id TEXT)", "CREATE TABLE half (id TEXT)"])])
        #expect(try await failure(place.configuration, schema: broken).code == .statement)
        #expect(try await place.sql("SELECT to_regclass('half') IS NULL") == "t")
        #expect(try await place.open().count("schema_steps") == 1)
    }

    @Test(
        "Every text is compared by its bytes, numbers have 64 bits, and a commit that is not on the disk is overruled")
    func settings() async throws {
        try await place.sql("ALTER DATABASE \(place.configuration.database) SET synchronous_commit = off")
        let database = try await place.location.open(clock: SystemClock())
        let others = try await place.sql(
            """
            SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
            WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT (
                (a.atttypid = 'text'::regtype AND a.attcollation = '"C"'::regcollation)
                OR a.atttypid IN ('bigint'::regtype, 'bytea'::regtype)
                OR (c.relname = 'payload_sessions' AND a.attname IN ('spent', 'spent_highest')))
            """)
        #expect(others == "0")
        let level = try await database.run(.read("SELECT current_setting('synchronous_commit') AS level"))
        #expect(level == [SQLRow(["level": "on"])])
    }
}

@Suite("PostgreSQL: a look that changes nothing")
struct PostgreSQLExaminationTests {
    private let more = Schema(SQLDatabaseContract.schema.steps + [Migration("more", ["CREATE TABLE more (id TEXT)"])])

    @Test("A missing, an older, the same, a newer and another program's schema are told apart")
    func states() async throws {
        let place = try await PostgreSQLPlace()
        #expect(try await place.location.examine().schema == .missing)
        #expect(try await place.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == "0")
        try await place.open().close()
        #expect(try await place.location.examine(schema: more).schema == .older(step: 1, known: 2))
        #expect(try await place.location.examine(schema: SQLDatabaseContract.schema).schema == .current(step: 1))
        #expect(try await place.location.examine(schema: Schema([])).schema == .newer(step: 1, known: 0))
        try await place.sql("DROP TABLE schema_steps")
        #expect(try await place.location.examine().schema == .foreign)
    }

    @Test("A server in order is named, and nothing is wrong with it")
    func findings() async throws {
        let place = try await PostgreSQLPlace()
        let findings = try await place.location.examine().findings
        #expect(findings.first?.text.contains("PostgreSQL \(place.server.version).") == true)
        #expect(findings.allSatisfy { !$0.isProblem })
    }

    @Test("What is wrong is found: rights, clocks, the number of connections")
    func problems() async throws {
        var place = try await PostgreSQLPlace()
        try await place.sql(
            """
            ALTER SCHEMA public OWNER TO postgres;
            ALTER DATABASE \(place.configuration.database) SET synchronous_commit = off
            """
        )
        place.configuration.connections = 1_000
        let found = try await place.location.examine(clock: LateClock()).findings
        for text in ["may make no tables", "clock", "allows 200 connections"] {
            #expect(found.contains { $0.isProblem && $0.text.contains(text) }, "\(text)")
        }
        #expect(found.contains { !$0.isProblem && $0.text.contains("synchronous_commit is off") })
    }

    @Test("A question that takes long is not taken for a difference of the clocks")
    func lateAnswer() async throws {
        let place = try await PostgreSQLPlace()
        let found = try await place.location.examine(clock: SlowClock()).findings
        #expect(!found.contains { $0.text.contains("clock") }, "\(found)")
    }

    @Test("A standby is found and refused; when it is the primary, it knows what became of a lost COMMIT")
    func standby() async throws {
        let server = try await offPool { try PostgreSQLServer(settings: ["fsync = off"]) }
        let place = try await PostgreSQLPlace(server)
        let proxy = try PostgreSQLProxy(place.configuration)
        var configuration = proxy.configuration
        // Its mark is a commit, too, and would be the one that is cut.
        configuration.watchInterval = 3_600_000
        let database = try await DatabaseLocation.postgresql(configuration).open(
            schema: SQLDatabaseContract.schema, clock: SystemClock())
        _ = try await database.run(insertNote("a"))
        #expect(try await place.location.examine().findings.contains { $0.isProblem && $0.text.contains("fsync") })
        proxy.cutNextCommit(.after, refusing: true)
        let lost = Task { try await database.run(insertNote("b")) }
        while proxy.cuts == 0 { await Task.yield() }
        try await offPool {
            try server.stop()
            try server.write("", "standby.signal")
            try server.start()
        }
        #expect(try await place.location.examine().findings.contains { $0.isProblem && $0.text.contains("standby") })
        let refused = await #expect(throws: StoreError(.unavailable, "")) { try await place.open() }
        #expect(refused?.detail.contains("is a standby") == true)
        try await offPool { try server.sql("SELECT pg_promote()") }
        proxy.accept()
        #expect(try await lost.value == [])
        try await PostgreSQLTroubleTests.untilItAnswers(database)
        _ = try await database.run(insertNote("c"))
        #expect(try await database.count("notes") == 3)
    }
}

/// The clock of somebody for whom half a minute passes between two looks at it.
private final class SlowClock: WallClock {
    private let looks = Locked(0)

    var now: Date {
        let number = looks.withLock { looks in
            looks += 1
            return looks
        }
        return Date().addingTimeInterval(number == 1 ? -15 : 15)
    }

    func sleep(until deadline: Date) async throws {}
}

private struct LateClock: WallClock {
    var now: Date { Date().addingTimeInterval(-60) }
    func sleep(until deadline: Date) async throws {}
}
#endif
