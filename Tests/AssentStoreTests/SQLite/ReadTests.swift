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
}
