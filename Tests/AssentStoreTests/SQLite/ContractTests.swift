import AssentCore
import StoreTesting
import Testing

@testable import AssentStore

@Suite("The contract of a database")
struct DatabaseContractTests {
    @Test("SQLite keeps it", arguments: SQLDatabaseContract.rules)
    func sqlite(_ rule: SQLDatabaseContract.Rule) async throws {
        let directory = try TemporaryDirectory()
        try await rule.check {
            try await directory.location.open(schema: SQLDatabaseContract.schema, clock: SystemClock())
        }
    }

    @Test("A database that keeps what it should take back, and one that never closes, do not keep it")
    func catches() async throws {
        let directory = try TemporaryDirectory()
        var broken: Set<String> = []
        for rule in SQLDatabaseContract.rules {
            let place = DatabaseLocation.sqlite(path: directory.databasePath + SystemRandom().uuid())
            do {
                try await rule.check {
                    Careless(try await place.open(schema: SQLDatabaseContract.schema, clock: SystemClock()))
                }
            } catch is SQLDatabaseContract.Violation {
                broken.insert(rule.description)
            } catch is StoreError {
                broken.insert(rule.description)
            }
        }
        #expect(broken.count >= 6)
        #expect(broken.contains { $0.contains("takes all others back") })
        #expect(broken.contains { $0.contains("closed database") })
        #expect(broken.contains { $0.contains("half of a transaction") || $0.contains("spend one thing") })
    }
}

/// Runs each statement by itself, and does not close.
private struct Careless: SQLDatabase {
    let database: any SQLDatabase

    init(_ database: any SQLDatabase) { self.database = database }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await database.run(statement) }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        var results: [[SQLRow]] = []
        for statement in statements { results.append(try await database.run(statement)) }
        return results
    }

    func checkHealth() async throws {}

    func close() async throws {}
}
