import AssentCore
import StoreTesting
import Testing

@testable import AssentStore

@Suite("Reading on the caller's thread")
struct ReadTests {
    @Test("More readers than there are connections go another way; a connection that came back serves again")
    func moreThanConnections() async throws {
        let place = try TemporaryDirectory()
        let database = try await place.open()
        let readers = SQLiteReaders(path: place.databasePath, limit: 0)
        #expect(try readers.run(.read("SELECT 1 AS one")) == nil)
        let one = SQLiteReaders(path: place.databasePath, limit: 1)
        for _ in 0..<3 { #expect(try one.run(.read("SELECT 1 AS one")) == [SQLRow(["one": 1])]) }
        one.close()
        try await database.close()
    }

    @Test("Arguments of every kind arrive as they are, and what comes back is told apart by its kind")
    func values() async throws {
        let place = try TemporaryDirectory()
        let database = try await place.open()
        let (empty, none): ([UInt8], [UInt8]?) = ([], nil)
        let read = SQLStatement.read(
            """
            SELECT typeof(\(empty)) AS a, length(\(empty)) AS b, typeof(\(none)) AS c, typeof(\("")) AS d,
                hex(\([0, 255] as [UInt8])) AS e, \(Int64.min) AS f, \("ä€") AS g, \(true) AS h, 1.5 AS i,
                \(empty) AS j, NULL AS k
            """)
        let expected: [String: SQLValue] = [
            "a": "blob", "b": 0, "c": "null", "d": "text", "e": "00FF", "f": .integer(.min), "g": "ä€", "h": 1,
            "i": "1.5", "j": .blob([]), "k": .null,
        ]
        for _ in 0..<2 { #expect(try await database.run(read) == [SQLRow(expected)]) }
        try await database.close()
    }

    @Test("A read that fails says why, and its connection serves the next one, which sees what was written since")
    func failing() async throws {
        let place = try TemporaryDirectory()
        let database = try await place.open()
        _ = try await database.run(SQLStatement("CREATE TABLE numbers (number INTEGER)"))
        let readers = SQLiteReaders(path: place.databasePath, limit: 1)
        let overflow: SQL = "SELECT abs(number) AS number FROM numbers"
        let failing: [SQL] = ["SELECT * FROM nothing", "SELECT ?1 AS one", overflow, "SELECT \("a\0b") AS text"]
        for (index, sql) in failing.enumerated() {
            _ = try await database.run(SQLStatement("INSERT INTO numbers VALUES (1), (\(Int64.min))"))
            // What SQLite says itself is translated further out.
            #expect(throws: (any Error).self) { _ = try readers.run(.read(sql)) }
            await #expect(throws: StoreError(.statement, "")) { _ = try await database.run(.read(sql)) }
            let count = SQLValue(2 * (index + 1))
            #expect(try readers.run(.read("SELECT count(*) AS count FROM numbers")) == [SQLRow(["count": count])])
        }
        let few = SQLStatement.read("SELECT number FROM numbers", expecting: .exactly(1))
        await #expect(throws: StoreError(.unexpectedCount, "")) { _ = try await database.run(few) }
        readers.close()
        try await database.close()
    }
}
