import AssentCore
import AssentStore

/// A node's way to the database, on which its writes fail as they are told to, one after the other.
final class NodeDatabase: SQLDatabase {
    enum Fault: CaseIterable {
        case none
        /// Nothing has happened, and the node knows.
        case undone
        /// It has happened, and the node cannot find out.
        case doneUnknown
        case crashBefore
        case crashAfter
    }

    private struct State {
        var writes = 0
        var isDead = false
    }

    private let database: any SQLDatabase
    private let faults: [Fault]
    /// Whether it says that nodes share it, as PostgreSQL does.
    let isShared: Bool
    private let beforeWrite: @Sendable (Int) async -> Void
    private let state = Locked(State())

    init(
        _ database: any SQLDatabase, _ faults: [Fault], isShared: Bool = false,
        beforeWrite: @escaping @Sendable (Int) async -> Void = { _ in }
    ) {
        self.database = database
        self.faults = faults
        self.isShared = isShared
        self.beforeWrite = beforeWrite
    }

    var isDead: Bool { state.withLock { $0.isDead } }

    /// How many writes have come, whatever became of them.
    var writeCount: Int { state.withLock { $0.writes } }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await run([statement]).first ?? [] }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        if isDead { throw StoreError(.unavailable, "dead") }
        if statements.allSatisfy(\.isRead) { return try await database.run(statements) }
        let write = state.withLock { state in
            defer { state.writes += 1 }
            return state.writes
        }
        await beforeWrite(write)
        let fault = faults.indices.contains(write) ? faults[write] : .none
        switch fault {
        case .none: return try await database.run(statements)
        case .undone: throw StoreError(.unavailable, "undone")
        case .doneUnknown:
            _ = try await database.run(statements)
            throw StoreError(.outcomeUnknown, "unknown")
        case .crashBefore, .crashAfter:
            if fault == .crashAfter { _ = try? await database.run(statements) }
            state.withLock { $0.isDead = true }
            throw StoreError(.unavailable, "dead")
        }
    }

    func checkHealth() async throws { try await database.checkHealth() }

    func close() async throws {}
}
