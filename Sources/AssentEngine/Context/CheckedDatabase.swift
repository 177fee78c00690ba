import AssentStore

/// A database whose texts have no U+0000, which no database keeps: whatever input it came from, the request is
/// malformed.
struct CheckedDatabase: SQLDatabase {
    let base: any SQLDatabase

    func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        try Self.check(statement)
        return try await base.run(statement)
    }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        for statement in statements { try Self.check(statement) }
        return try await base.run(statements)
    }

    func checkHealth() async throws { try await base.checkHealth() }

    func time() async throws -> Int64? { try await base.time() }

    var notices: DatabaseNotices { base.notices }

    var isShared: Bool { base.isShared }

    func close() async throws { try await base.close() }

    func abandon() { base.abandon() }

    private static func check(_ statement: SQLStatement) throws(EngineError) {
        guard !statement.sql.arguments.contains(where: \.hasNUL) else {
            throw EngineError.invalidRequest("A text must not have the character U+0000.")
        }
    }
}
