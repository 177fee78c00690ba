import AssentCore
import AssentStore

@testable import AssentEngine

/// A database in which something else happens first, once, when a certain statement comes.
final class InterruptedDatabase: SQLDatabase {
    private let database: any SQLDatabase
    private let interruption: @Sendable (SQLStatement) async throws -> Bool
    private let interrupted = Locked(false)

    /// Whether it has happened.
    var wasInterrupted: Bool { interrupted.withLock { $0 } }

    /// `interruption` sees each statement, and tells whether it has done what it is there for.
    init(_ database: any SQLDatabase, _ interruption: @escaping @Sendable (SQLStatement) async throws -> Bool) {
        self.database = database
        self.interruption = interruption
    }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        try await interrupt([statement])
        return try await database.run(statement)
    }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        try await interrupt(statements)
        return try await database.run(statements)
    }

    func checkHealth() async throws { try await database.checkHealth() }

    func close() async throws { try await database.close() }

    private func interrupt(_ statements: [SQLStatement]) async throws {
        for statement in statements where !wasInterrupted {
            if try await interruption(statement) { interrupted.withLock { $0 = true } }
        }
    }
}
