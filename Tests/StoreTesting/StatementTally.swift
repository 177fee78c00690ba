import AssentCore
package import AssentStore

/// Counts what is run on a database.
package final class StatementTally: SQLDatabase {
    private let base: any SQLDatabase
    private let runs = Locked(0)

    package var count: Int { runs.withLock { $0 } }

    package init(_ base: any SQLDatabase) { self.base = base }

    package var isShared: Bool { base.isShared }

    package func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        runs.withLock { $0 += 1 }
        return try await base.run(statement)
    }

    package func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        runs.withLock { $0 += statements.count }
        return try await base.run(statements)
    }

    package func time() async throws -> Int64? { try await base.time() }
    package func checkHealth() async throws { try await base.checkHealth() }
    package func close() async throws { try await base.close() }
}
