import AssentCore
import AssentStore

/// What a call writes, statement by statement.
final class WrittenStatements: SQLDatabase {
    private let database: any SQLDatabase
    private let written = Locked<[[String]]>([])

    init(_ database: any SQLDatabase) { self.database = database }

    /// The transactions that write, and what: the word that begins the statement, and its table.
    func taken() -> [[String]] {
        written.withLock { written in
            defer { written = [] }
            return written
        }
    }

    var isShared: Bool { database.isShared }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await run([statement]).first ?? [] }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        if !statements.allSatisfy(\.isRead) {
            written.withLock { $0.append(statements.map { Self.brief($0.sql.text()) }) }
        }
        return try await database.run(statements)
    }

    private static func brief(_ sql: String) -> String {
        let words = sql.split(whereSeparator: \.isWhitespace).map(String.init)
        guard let verb = words.first else { return "" }
        return verb + " " + (words.dropFirst().first { $0 != "INTO" && $0 != "FROM" } ?? "")
    }

    func checkHealth() async throws { try await database.checkHealth() }

    func close() async throws {}
}
