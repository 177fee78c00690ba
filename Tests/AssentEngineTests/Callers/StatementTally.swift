import AssentCore
import AssentStore

/// Counts what is run on a database.
final class StatementTally: SQLDatabase {
    private let base: any SQLDatabase
    private let runs = Locked(0)

    var count: Int { runs.withLock { $0 } }

    init(_ base: any SQLDatabase) { self.base = base }

    var isShared: Bool { base.isShared }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        runs.withLock { $0 += 1 }
        return try await base.run(statement)
    }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        runs.withLock { $0 += statements.count }
        return try await base.run(statements)
    }

    func time() async throws -> Int64? { try await base.time() }
    func checkHealth() async throws { try await base.checkHealth() }
    func close() async throws { try await base.close() }
}
