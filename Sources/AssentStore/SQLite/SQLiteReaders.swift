import AssentCore
import Foundation
import GRDB

/// Connections on which single statements read, each used by one caller at a time, on the caller's thread.
///
/// Nobody ever waits for one: in WAL mode neither writers nor checkpoints hold readers up, and when all connections are
/// in use the caller must go another way.
final class SQLiteReaders: Sendable {
    private struct State {
        var free: [DatabaseQueue] = []
        var open = 0
        var isClosed = false
    }

    private enum Taken {
        case free(DatabaseQueue)
        case mayOpen
        case none
    }

    private let path: String
    private let file: SQLiteFile?
    private let limit: Int
    private let state = Locked(State())

    /// Connections to a file, which is open as `file`. More threads than `limit` hardly ever read at the same time: a
    /// read takes microseconds.
    init(path: String, file: SQLiteFile? = nil, limit: Int = 16) {
        self.path = path
        self.file = file
        self.limit = limit
    }

    /// Runs a statement that only reads; `nil` when all connections are in use. A single statement sees one state of
    /// the database without a transaction around it.
    func run(_ statement: SQLStatement) throws -> [SQLRow]? {
        guard let connection = try take() else { return nil }
        defer { giveBack(connection) }
        return try connection.unsafeRead { try SQLiteDatabase.execute(statement, index: 0, in: $0) }
    }

    /// Closes the connections; those in use as soon as they are not.
    func close() {
        let free = state.withLock { state in
            state.isClosed = true
            defer { state.free = [] }
            return state.free
        }
        for connection in free { try? connection.close() }
    }

    private func take() throws -> DatabaseQueue? {
        let taken = state.withLock { state -> Taken in
            if state.isClosed { return .none }
            if let connection = state.free.popLast() { return .free(connection) }
            guard state.open < limit else { return .none }
            state.open += 1
            return .mayOpen
        }
        switch taken {
        case .free(let connection): return connection
        case .none: return nil
        case .mayOpen:
            do {
                var configuration = Configuration()
                configuration.readonly = true
                configuration.busyMode = .timeout(10)
                let connection = try DatabaseQueue(path: path, configuration: configuration)
                // Looked at only now: what has the name later is not what this one reads.
                guard file?.isReplaced != true else {
                    try? connection.close()
                    throw SQLiteFile.replaced
                }
                return connection
            } catch {
                state.withLock { $0.open -= 1 }
                throw error
            }
        }
    }

    private func giveBack(_ connection: DatabaseQueue) {
        let isKept = state.withLock { state in
            if !state.isClosed { state.free.append(connection) }
            return !state.isClosed
        }
        if !isKept { try? connection.close() }
    }
}
