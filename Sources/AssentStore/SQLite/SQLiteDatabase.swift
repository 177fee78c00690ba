import Foundation
import GRDB

/// The embedded database: one SQLite file in WAL mode, every commit synced to the disk (`synchronous = FULL`).
/// Transactions that wait at the same time share one commit.
///
/// One server process writes one file. A second process may open it (the command line does, for `doctor`), but
/// writers then wait for each other.
package final class SQLiteDatabase: SQLDatabase {
    let pool: DatabasePool
    private let file: SQLiteFile
    private let readers: SQLiteReaders
    private let writer: SQLiteWriter

    /// Opens the database at `path` and makes the file when it is missing. The schema stays as it is:
    /// ``Schema/apply(to:clock:)`` brings it up to date.
    ///
    /// - Throws: ``StoreError``: `unavailable` when the file cannot be opened or written, `corrupt` when it is no
    ///   database.
    init(path: String) async throws {
        // SQLite would open it for reading alone, and leave files beside it that nobody may write either.
        if FileManager.default.fileExists(atPath: path), !FileManager.default.isWritableFile(atPath: path) {
            throw StoreError(.unavailable, "the file can be read, but not be written")
        }
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(10)
            configuration.foreignKeysEnabled = true
            pool = try await Self.openPool(path, configuration)
            file = SQLiteFile(path: path)
            readers = SQLiteReaders(path: path, file: file)
            writer = SQLiteWriter(pool, file: file)
            // GRDB's pool sets `synchronous = NORMAL` when it opens, whatever its configuration says; in WAL mode a
            // power loss could then undo a commit, and a spent transaction would be whole again.
            // What is deleted is a secret now and then: its bytes leave the page with it.
            try await pool.writeWithoutTransaction {
                try $0.execute(sql: "PRAGMA synchronous = FULL")
                try $0.execute(sql: "PRAGMA secure_delete = FAST")
            }
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    /// Opens the file, again while others open it: of two connections that want to bring a file into WAL mode at the
    /// same moment, SQLite refuses one at once, because neither could go on if both waited
    /// (<https://www.sqlite.org/c3ref/busy_handler.html>).
    private static func openPool(_ path: String, _ configuration: Configuration) async throws -> DatabasePool {
        let end = ContinuousClock.now + .seconds(10)
        while true {
            do {
                return try DatabasePool(path: path, configuration: configuration)
            } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY && ContinuousClock.now < end {
                try await Task.sleep(for: .milliseconds(10))
            }
        }
    }

    // The last connection to close must be one that may write: SQLite then takes the write-ahead log away with it.
    deinit { readers.close() }

    /// Runs one statement. One that reads runs on the caller's thread, as long as a connection is free: what it needs
    /// is in memory nearly always, and handing it over to another thread costs more than running it.
    package func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        if statement.isRead {
            return try await translating {
                if let rows = try readers.run(statement) { return rows }
                guard !file.isReplaced else { throw SQLiteFile.replaced }
                return try await pool.unsafeRead { try Self.execute(statement, index: 0, in: $0) }
            }
        }
        return try await run([statement]).first ?? []
    }

    /// Runs statements as one transaction.
    package func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        try await translating { try await writer.run(statements) }
    }

    /// Reads the list of schema steps, and looks whether the file still has its name.
    package func checkHealth() async throws {
        try file.check()
        _ = try await run(.read("SELECT count(*) AS steps FROM schema_steps"))
    }

    /// Closes the file.
    package func close() throws {
        readers.close()
        do {
            try pool.close()
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    /// Runs a `PRAGMA` on the connection that writes, outside any transaction, and returns its rows. `text` is what
    /// follows the word `PRAGMA`, a constant of the program.
    package func pragma(_ text: String) async throws -> [SQLRow] {
        try await translating {
            try await pool.writeWithoutTransaction {
                // Not one that is kept: some pragmas act when they are prepared.
                try $0.makeStatement(sql: "PRAGMA \(text)").rows(with: [], in: $0)
            }
        }
    }

    /// Runs a statement, the one at `index` of a transaction.
    static func execute(_ statement: SQLStatement, index: Int, in database: Database) throws -> [SQLRow] {
        // SQLite's functions and our binding take a text up to its first NUL: it would be another value than was
        // checked.
        guard !statement.sql.arguments.contains(where: \.hasNUL) else {
            throw StoreError(.statement, "a text has a NUL", statement: index)
        }
        let prepared = try database.cachedStatement(sql: statement.sql.text())
        let rows: [SQLRow]
        do {
            rows = try prepared.rows(with: statement.sql.arguments, in: database)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_MISUSE {
            throw StoreError(.statement, "the statement wants other arguments", statement: index)
        }
        if statement.sql.definesSchema { database.clearSchemaCache() }
        let count = prepared.columnCount > 0 ? rows.count : database.changesCount
        guard statement.expected.matches(count) else {
            throw StoreError(.unexpectedCount, "\(count) rows", statement: index)
        }
        return rows
    }

    private func translating<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }
}

extension StoreError {
    /// What an error of SQLite means.
    init(_ error: DatabaseError) {
        let detail = "SQLite \(error.extendedResultCode.rawValue)" + (error.message.map { ", \($0)" } ?? "")
        self =
            switch error.resultCode {
            case .SQLITE_CONSTRAINT: StoreError(.constraint, detail)
            case .SQLITE_ERROR, .SQLITE_RANGE, .SQLITE_MISMATCH, .SQLITE_TOOBIG: StoreError(.statement, detail)
            case .SQLITE_NOTADB, .SQLITE_CORRUPT: StoreError(.corrupt, detail)
            default: StoreError(.unavailable, detail)
            }
    }
}
