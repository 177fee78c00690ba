import Foundation
import GRDB

extension DatabaseLocation {
    /// Writes all that the database holds at one moment into a file, also while servers use it.
    ///
    /// - Parameter path: a file that is there, empty, and readable by its owner alone. When this throws, its content
    ///   is of no use.
    /// - Throws: ``StoreError``: `unavailable` when the database or the file cannot be used.
    package func backUp(to path: String) async throws {
        switch self {
        case .sqlite(let source): try await Self.onThread { try Self.copy(source, to: path) }
        case .postgresql(let configuration):
            #if PostgreSQL && os(Linux)
            try await PostgreSQLDump(configuration).write(to: path)
            #else
            throw Self.notBuilt(configuration)
            #endif
        }
    }

    /// Reads a backup of this kind of database as a whole.
    ///
    /// - Parameters:
    ///   - path: the file that ``backUp(to:)`` has written.
    ///   - statements: what else is read from the copy of a SQLite file.
    /// - Returns: the rows of the statements; nothing for PostgreSQL, whose dump is only read from end to end.
    /// - Throws: ``StoreError``: `corrupt` when it could not be restored.
    package func checkBackup(at path: String, reading statements: [SQLStatement]) async throws -> [[SQLRow]] {
        switch self {
        case .sqlite:
            let found = try await SQLiteExamination(
                path: path, schema: .current, statements: statements, isFresh: true
            ).run()
            guard found.isWhole, found.schema != .missing, found.schema != .foreign else {
                throw StoreError(.corrupt, "the backup is not whole")
            }
            return found.rows
        case .postgresql(let configuration):
            #if PostgreSQL && os(Linux)
            try await PostgreSQLDump(configuration).check(path)
            return []
            #else
            throw Self.notBuilt(configuration)
            #endif
        }
    }

    private static func copy(_ source: String, to target: String) throws {
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(10)
            let file = try DatabaseQueue(path: source, configuration: configuration)
            defer { try? file.close() }
            try file.writeWithoutTransaction { try $0.execute(sql: "VACUUM INTO ?", arguments: [target]) }
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    /// Runs `body`, which blocks, on a thread of its own.
    static func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
        }
    }
}
