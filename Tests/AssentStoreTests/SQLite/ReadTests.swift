import AssentCore
import Foundation
import Testing

@testable import AssentStore

@Suite("Reading on the caller's thread")
struct ReadTests {
    let directory = try? TemporaryDirectory()

    @Test("What was written is read at once, by as many as want to")
    func readsOwnWrites() async throws {
        let database = try await SQLiteDatabase.sample(in: try #require(directory))
        for round in 1...20 {
            _ = try await database.run(
                SQLStatement("INSERT INTO notes (id, count) VALUES (?1, ?2)", [.text("\(round)"), SQLValue(round)]))
            try await withThrowingTaskGroup { group in
                for _ in 0..<40 { group.addTask { try await database.count("notes") } }
                for try await count in group { #expect(count == Int64(round)) }
            }
        }
    }

    @Test("More readers than there are connections go another way; a connection that came back serves again")
    func moreThanConnections() async throws {
        let place = try #require(directory)
        let database = try await SQLiteDatabase.sample(in: place)
        let readers = SQLiteReaders(path: place.databasePath, limit: 0)
        #expect(try readers.run(.read("SELECT 1 AS one")) == nil)
        let one = SQLiteReaders(path: place.databasePath, limit: 1)
        for _ in 0..<3 { #expect(try one.run(.read("SELECT 1 AS one")) == [SQLRow(["one": 1])]) }
        try database.close()
    }

    @Test("A statement that writes is refused on such a connection")
    func readOnly() async throws {
        let place = try #require(directory)
        let database = try await SQLiteDatabase.sample(in: place)
        let disguised = SQLStatement.read("INSERT INTO owners (id) VALUES ('a') RETURNING id")
        await #expect(throws: StoreError.self) { try await database.run(disguised) }
        #expect(try await database.count("owners") == 0)
    }

    @Test("A read that fails says so, and the next one succeeds")
    func failure() async throws {
        let database = try await SQLiteDatabase.sample(in: try #require(directory))
        for _ in 0..<40 {
            await #expect(throws: StoreError.self) { try await database.run(.read("SELECT nothing FROM notes")) }
        }
        #expect(try await database.count("notes") == 0)
    }

    @Test("After the end reads fail as unavailable")
    func closed() async throws {
        let database = try await SQLiteDatabase.sample(in: try #require(directory))
        #expect(try await database.count("notes") == 0)
        try database.close()
        await #expect(throws: StoreError(.unavailable, "")) { try await database.run(.read("SELECT 1")) }
    }
}
