import AssentCore
import AssentStore

/// A node's way to the database, on which its connection is lost within each transaction of several statements, when
/// the database has run so many of them.
final class CutDatabase: SQLDatabase {
    private let database: any SQLDatabase
    private let cut: Int
    private let longest = Locked(0)

    init(_ database: any SQLDatabase, after cut: Int) {
        self.database = database
        self.cut = cut
    }

    /// How many statements the longest transaction had.
    var statementCount: Int { longest.withLock { $0 } }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await database.run(statement) }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        if statements.count == 1 || statements.allSatisfy(\.isRead) { return try await database.run(statements) }
        longest.withLock { $0 = max($0, statements.count) }
        // The database takes a transaction back whose statement fails, as it does one whose connection is lost.
        let impossible = SQLStatement("DELETE FROM registered_apps WHERE realm = 'none'", expecting: .exactly(1))
        _ = try? await database.run(Array(statements.prefix(cut)) + [impossible])
        throw StoreError(.unavailable, "cut")
    }

    func checkHealth() async throws { try await database.checkHealth() }

    func close() async throws {}
}
