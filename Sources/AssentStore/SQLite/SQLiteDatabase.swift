package import AssentCore
import Foundation
import GRDB

/// The embedded database: one SQLite file in WAL mode, every commit synced to the disk (`synchronous = FULL`).
///
/// One server process writes one file. A second process may open it (the command line does, for `doctor`), but writers
/// then wait for each other.
package final class SQLiteDatabase: SQLDatabase {
    private let pool: DatabasePool
    private let readers: SQLiteReaders

    /// Opens the database at `path`, makes it when it is missing, and brings its schema up to date.
    ///
    /// - Parameters:
    ///   - path: the database file; its directory must exist.
    ///   - migrations: the whole schema, oldest step first.
    ///   - clock: the time noted beside each step.
    /// - Throws: ``StoreError``: `unavailable` when the file cannot be opened or written, `newerSchema` when a later
    ///   version of the server made it, `corrupt` when it is no database.
    package init(path: String, migrations: [Migration] = Migration.all, clock: any WallClock) async throws {
        // SQLite would open it for reading alone, and leave files beside it that nobody may write either.
        if FileManager.default.fileExists(atPath: path), !FileManager.default.isWritableFile(atPath: path) {
            throw StoreError(.unavailable, "the file can be read, but not be written")
        }
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(10)
            configuration.foreignKeysEnabled = true
            pool = try DatabasePool(path: path, configuration: configuration)
            readers = SQLiteReaders(path: path)
            // GRDB's pool sets `synchronous = NORMAL` when it opens, whatever its configuration says; in WAL mode a
            // power loss could then undo a commit, and a spent transaction would be whole again.
            try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
        } catch let error as DatabaseError {
            throw Self.storeError(error)
        }
        try await migrate(migrations, now: clock.epochSeconds)
    }

    // The last connection to close must be one that may write: SQLite then takes the write-ahead log away with it.
    deinit { readers.close() }

    /// Runs one statement. One that reads runs on the caller's thread, as long as a connection is free: what it needs
    /// is in memory nearly always, and handing it over to another thread costs more than running it.
    package func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        if statement.isRead {
            return try await translating {
                if let rows = try readers.run(statement) { return rows }
                return try await pool.unsafeRead { try Self.execute(statement, index: 0, in: $0) }
            }
        }
        return try await run([statement]).first ?? []
    }

    /// Runs statements as one transaction.
    package func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        try await translating {
            try await pool.write { database in
                try statements.enumerated().map { try Self.execute($1, index: $0, in: database) }
            }
        }
    }

    /// Closes the file. Calls that come later fail.
    package func close() throws {
        readers.close()
        try pool.close()
    }

    /// The value of `PRAGMA synchronous` on the writing connection; 2 is FULL.
    package func synchronousLevel() async throws -> Int {
        try await pool.writeWithoutTransaction { try Int.fetchOne($0, sql: "PRAGMA synchronous") } ?? -1
    }

    /// Limits the file to `pages` database pages: what a full disk looks like.
    package func limitSize(pages: Int) async throws {
        try await pool.writeWithoutTransaction { database in
            _ = try Int.fetchOne(database, sql: "PRAGMA max_page_count = \(pages)")
        }
    }

    /// Refuses every change, or takes them again: what a file looks like that may only be read (`SQLITE_READONLY`).
    package func setReadOnly(_ isReadOnly: Bool) async throws {
        try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA query_only = \(isReadOnly ? 1 : 0)") }
    }

    static func execute(_ statement: SQLStatement, index: Int, in database: Database) throws -> [SQLRow] {
        // SQLite's functions and our binding take a text up to its first NUL: it would be another value than was
        // checked.
        guard !statement.arguments.contains(where: \.hasNUL) else {
            throw StoreError(.statement, "a text has a NUL", statement: index)
        }
        let prepared = try database.cachedStatement(sql: statement.sql)
        do {
            try prepared.setArguments(StatementArguments(statement.arguments.map(\.binding)))
        } catch let error as DatabaseError where error.resultCode == .SQLITE_MISUSE {
            throw StoreError(.statement, "the statement wants other arguments", statement: index)
        }
        let rows: [SQLRow]
        let count: Int
        if prepared.columnCount > 0 {
            let names = prepared.columnNames
            rows = try Array(
                Row.fetchCursor(prepared).map { SQLRow(names: names, values: $0.databaseValues.map(SQLValue.init)) })
            count = rows.count
        } else {
            try prepared.execute()
            rows = []
            count = database.changesCount
        }
        guard statement.expected.matches(count) else {
            throw StoreError(.unexpectedCount, "\(count) rows", statement: index)
        }
        return rows
    }

    private func translating<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as DatabaseError {
            throw Self.storeError(error)
        }
    }

    private static func storeError(_ error: DatabaseError) -> StoreError {
        let detail = "SQLite \(error.extendedResultCode.rawValue)" + (error.message.map { ", \($0)" } ?? "")
        return switch error.resultCode {
        case .SQLITE_CONSTRAINT: StoreError(.constraint, detail)
        case .SQLITE_ERROR, .SQLITE_RANGE, .SQLITE_MISMATCH, .SQLITE_TOOBIG: StoreError(.statement, detail)
        case .SQLITE_NOTADB, .SQLITE_CORRUPT: StoreError(.corrupt, detail)
        default: StoreError(.unavailable, detail)
        }
    }

    private func migrate(_ migrations: [Migration], now: Int64) async throws {
        try await translating {
            try await pool.write { database in
                try database.execute(
                    sql: """
                        CREATE TABLE IF NOT EXISTS schema_steps (
                            step INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)
                        """)
                let applied = try Int.fetchOne(database, sql: "SELECT count(*) FROM schema_steps") ?? 0
                guard applied <= migrations.count else {
                    throw StoreError(
                        .newerSchema,
                        "the database has schema step \(applied), this version knows \(migrations.count): use a newer assent"
                    )
                }
                for (index, migration) in migrations.enumerated().dropFirst(applied) {
                    for sql in migration.statements { try database.execute(sql: sql) }
                    try database.execute(
                        sql: "INSERT INTO schema_steps (step, name, applied_at) VALUES (?, ?, ?)",
                        arguments: [index + 1, migration.name, now])
                }
            }
        }
    }
}

extension SQLValue {
    fileprivate var hasNUL: Bool { if case .text(let value) = self { value.utf8.contains(0) } else { false } }

    /// As an existential: GRDB's way for a sequence of one type makes a key path for each statement.
    fileprivate var binding: (any DatabaseValueConvertible)? {
        switch self {
        case .null: nil
        case .integer(let value): value
        case .text(let value): value
        case .blob(let value): Data(value)
        }
    }
}

extension SQLValue {
    fileprivate init(_ value: DatabaseValue) {
        self =
            switch value.storage {
            case .null: .null
            case .int64(let value): .integer(value)
            case .double(let value): .text("\(value)")
            case .string(let value): .text(value)
            case .blob(let value): .blob([UInt8](value))
            }
    }
}
