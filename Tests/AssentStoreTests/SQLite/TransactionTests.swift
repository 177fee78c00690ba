import AssentCore
import Foundation
import Testing

@testable import AssentStore

@Suite("Running statements on SQLite")
struct TransactionTests {
    let directory: TemporaryDirectory
    let database: SQLiteDatabase

    init() async throws {
        directory = try TemporaryDirectory()
        database = try await SQLiteDatabase.sample(in: directory)
    }

    private static let touchMissing = SQLStatement(
        "UPDATE notes SET count = 1 WHERE id = 'missing'", expecting: .exactly(1))

    @Test("A statement that does not affect what it must takes all others back, whichever it is", arguments: 0...2)
    func mismatchRollsBack(position: Int) async throws {
        var statements = [insertNote("a"), insertNote("b")]
        statements.insert(Self.touchMissing, at: position)
        let error = await #expect(throws: StoreError(.unexpectedCount, "")) { try await database.run(statements) }
        #expect(error?.statement == position)
        #expect(try await database.count("notes") == 0)
    }

    @Test("A text with a NUL, which SQLite would cut there, reaches no statement", arguments: [true, false])
    func nul(reads: Bool) async throws {
        _ = try await database.run(insertNote("a"))
        let statement =
            reads
            ? SQLStatement.read("SELECT id FROM notes WHERE id = ?1", [.text("a\0x")])
            : SQLStatement("UPDATE notes SET count = 1 WHERE id = ?1", [.text("a\0x")])
        await #expect {
            try await database.run(statement)
        } throws: {
            ($0 as? StoreError)?.code == .statement
        }
    }

    @Test("A single statement that changes too much is taken back as well")
    func singleMismatch() async throws {
        _ = try await database.run([insertNote("a"), insertNote("b")])
        await #expect(throws: StoreError(.unexpectedCount, "")) {
            try await database.run(SQLStatement("DELETE FROM notes", expecting: .exactly(1)))
        }
        await #expect(throws: StoreError(.unexpectedCount, "")) {
            try await database.run(SQLStatement("DELETE FROM notes RETURNING id", expecting: .exactly(1)))
        }
        #expect(try await database.count("notes") == 2)
    }

    @Test("Rows come back in the order of the statements")
    func results() async throws {
        let results = try await database.run([
            insertNote("a", body: [0, 255]),
            SQLStatement("UPDATE notes SET count = count + 41 WHERE id = 'a' RETURNING count", expecting: .exactly(1)),
            .read("SELECT id, owner_id, body FROM notes"),
        ])
        #expect(
            results == [
                [], [SQLRow(["count": 41])], [SQLRow(["id": "a", "owner_id": .null, "body": .blob([0, 255])])],
            ])
    }

    @Test("A taken key and a missing parent are constraint errors, and nothing of the transaction stays")
    func constraints() async throws {
        _ = try await database.run(insertNote("a"))
        await #expect(throws: StoreError(.constraint, "")) {
            try await database.run([insertNote("b"), insertNote("a")])
        }
        await #expect(throws: StoreError(.constraint, "")) { try await database.run(insertNote("c", owner: "nobody")) }
        #expect(try await database.count("notes") == 1)
    }

    @Test("Increments in parallel are all counted", arguments: [300])
    func parallelIncrements(count: Int) async throws {
        _ = try await database.run(insertNote("a"))
        let database = database
        let seen = try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<count {
                group.addTask {
                    let sql = "UPDATE notes SET count = count + 1 WHERE id = 'a' RETURNING count"
                    return try await database.run(SQLStatement(sql, expecting: .exactly(1))).first?.integer("count")
                        ?? -1
                }
            }
            return try await group.reduce(into: Set<Int64>()) { $0.insert($1) }
        }
        #expect(seen == Set(1...Int64(count)))
    }

    @Test("Of many that spend one thing, one succeeds, over two instances on one file")
    func parallelSpending() async throws {
        _ = try await database.run(insertNote("a"))
        let second = try await SQLiteDatabase.sample(in: directory)
        let first = database
        let won = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<100 {
                group.addTask {
                    let spend = SQLStatement(
                        "UPDATE notes SET count = 1 WHERE id = 'a' AND count = 0", expecting: .exactly(1))
                    let note = insertNote("by-\(index)")
                    return (try? await (index.isMultiple(of: 2) ? first : second).run([note, spend])) != nil
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(won == 1)
        #expect(try await database.count("notes") == 2)
    }

    @Test("A full disk is unavailable, changes nothing, and passes")
    func fullDisk() async throws {
        _ = try await database.run(insertNote("a"))
        let pages = try await database.run(.read("PRAGMA page_count")).first?.integer("page_count") ?? 0
        try await database.limitSize(pages: Int(pages))
        let big = [UInt8](repeating: 7, count: 100_000)
        await #expect(throws: StoreError(.unavailable, "")) {
            try await database.run([insertNote("b"), insertNote("c", body: big)])
        }
        #expect(try await database.count("notes") == 1)
        try await database.limitSize(pages: 100_000)
        _ = try await database.run([insertNote("b"), insertNote("c", body: big)])
        #expect(try await database.count("notes") == 3)
    }

    @Test("A read-only database is unavailable for writers and serves readers")
    func readOnly() async throws {
        _ = try await database.run(insertNote("a"))
        _ = try await database.run(SQLStatement("PRAGMA query_only = 1"))
        await #expect(throws: StoreError(.unavailable, "")) { try await database.run(insertNote("b")) }
        #expect(try await database.count("notes") == 1)
    }

    @Test("A statement that says it only reads cannot write")
    func readsDoNotWrite() async throws {
        _ = try await database.run(insertNote("a"))
        await #expect(throws: StoreError.self) { try await database.run(.read("DELETE FROM notes")) }
        #expect(try await database.count("notes") == 1)
    }

    @Test("A closed database is an error, not a crash")
    func closed() async throws {
        try database.close()
        await #expect(throws: StoreError(.unavailable, "")) { try await database.count("notes") }
    }

    @Test(
        "A statement that cannot be run is this program's fault: not one that another try would help",
        arguments: ["SELEC 1", "SELECT * FROM nothing", "SELECT ?2", "UPDATE notes SET nothing = 1"])
    func faultyStatement(_ sql: String) async throws {
        await #expect(throws: StoreError(.statement, "")) { try await database.run(SQLStatement(sql, [.integer(1)])) }
    }

    @Test("Errors never show the values that were to be stored")
    func errorsShowNoValues() async throws {
        _ = try await database.run(insertNote("hunter2hunter2"))
        let error = await #expect(throws: StoreError.self) { try await database.run(insertNote("hunter2hunter2")) }
        #expect(error.map { !"\($0)".contains("hunter2") } == true)
    }
}
