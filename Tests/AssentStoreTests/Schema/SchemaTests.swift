import AssentCore
import StoreTesting
import Testing

@testable import AssentStore

@Suite("Bringing a schema up to date")
struct SchemaTests {
    let place: TemporaryDirectory
    private let sample = SQLDatabaseContract.schema
    private let clock = SystemClock()
    private static let more = Migration("more", ["ALTER TABLE notes ADD COLUMN title TEXT"])
    private static let broken = Migration("broken", ["CREATE TABLE half (id TEXT)", "CREATE TABLE half (id TEXT)"])

    init() throws { place = try TemporaryDirectory() }

    private func with(_ steps: Migration...) -> Schema { Schema(sample.steps + steps) }

    @Test("Opening again applies no step twice and keeps what is there")
    func once() async throws {
        for round in 1...3 {
            let database = try await place.location.open(clock: clock)
            #expect(try await database.count("schema_steps") == Int64(Schema.current.steps.count))
            _ = try await database.run(
                SQLStatement(
                    "INSERT INTO attempts (counter, window_start, count) VALUES ('a', \(round), 1)"))
            #expect(try await database.count("attempts") == Int64(round))
            try await database.close()
        }
    }

    @Test("An older schema is brought up to date, step by step, and each step is recorded with its name and time")
    func further() async throws {
        let old = try await place.open()
        _ = try await old.run(insertNote("kept"))
        try await old.close()
        let later = Migration("later", ["UPDATE notes SET title = 'from the step before'"])
        let new = try await place.location.open(schema: with(Self.more, later), clock: clock)
        let rows = try await new.run(.read("SELECT id, title FROM notes"))
        #expect(rows == [SQLRow(["id": "kept", "title": "from the step before"])])
        let steps = try await new.run(
            .read("SELECT step, name, applied_at > 0 AS timed FROM schema_steps ORDER BY step"))
        #expect(
            steps
                == ["sample", "more", "later"].enumerated().map {
                    SQLRow(["step": SQLValue($0 + 1), "name": .text($1), "timed": 1])
                })
    }

    @Test("A schema that a newer version made is refused and left alone")
    func newer() async throws {
        try await place.location.open(schema: with(Self.more), clock: clock).close()
        let error = await #expect(throws: StoreError(.newerSchema, "")) { try await place.open() }
        #expect(error?.detail.contains("schema step 2, this version knows 1") == true)
        let again = try await place.location.open(schema: with(Self.more), clock: clock)
        #expect(try await again.count("schema_steps") == 2)
    }

    @Test("A step that fails leaves the schema as it was: the steps before it are taken back as well")
    func failedStep() async throws {
        try await place.open().close()
        await #expect(throws: StoreError.self) {
            try await place.location.open(schema: with(Self.more, Self.broken), clock: clock)
        }
        let database = try await place.open()
        #expect(try await database.run(.read("SELECT name FROM sqlite_master WHERE name = 'half'")).isEmpty)
        #expect(try await database.count("schema_steps") == 1)
        #expect(try await database.run(.read("SELECT name FROM pragma_table_info('notes')")).count == 6)
    }

    @Test("Servers that start on one empty database at the same moment share one schema")
    func parallel() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    let database = try await place.location.open(clock: clock)
                    #expect(try await database.count("schema_steps") == Int64(Schema.current.steps.count))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("A server that another one overtakes between its look and its steps finds them applied")
    func overtaken() async throws {
        let database = try await place.open()
        let slow = Overtaken(database: database) { [schema = with(Self.more)] in
            try await schema.apply(to: database, clock: SystemClock())
        }
        try await with(Self.more).apply(to: slow, clock: clock)
        #expect(slow.isOver.withLock { $0 })
        #expect(try await database.count("schema_steps") == 2)
        // One that knows fewer steps than the other now finds a newer schema.
        let older = Overtaken(database: database) { [schema = with(Self.more, Self.later(1), Self.later(2))] in
            try await schema.apply(to: database, clock: SystemClock())
        }
        await #expect(throws: StoreError(.newerSchema, "")) {
            try await with(Self.more, Self.later(1)).apply(to: older, clock: clock)
        }
    }

    private static func later(_ number: Int) -> Migration {
        Migration("later \(number)", ["CREATE TABLE later\(number) (id TEXT)"])
    }
}

/// Lets something else happen after the first call, which is the look at the steps.
private final class Overtaken: SQLDatabase {
    let isOver = Locked(false)
    private let database: any SQLDatabase
    private let others: @Sendable () async throws -> Void

    init(database: any SQLDatabase, others: @escaping @Sendable () async throws -> Void) {
        self.database = database
        self.others = others
    }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await database.run(statement) }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        let rows = try await database.run(statements)
        let isFirst = isOver.withLock { isOver in
            defer { isOver = true }
            return !isOver
        }
        if isFirst { try await others() }
        return rows
    }

    func checkHealth() async throws {}
    func close() async throws {}
}
