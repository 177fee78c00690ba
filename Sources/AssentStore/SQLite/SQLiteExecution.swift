import Foundation
import GRDB
import GRDBSQLite

extension Statement {
    /// Runs the statement and returns its rows, if it has any.
    ///
    /// It calls SQLite's own functions: each request comes by here, and GRDB's way, which keeps the arguments and names
    /// the columns of each row, costs more than a look-up itself.
    ///
    /// - Throws: `DatabaseError`; with code `SQLITE_MISUSE` when the statement wants other arguments.
    func rows(with arguments: [SQLValue], in database: Database) throws -> [SQLRow] {
        guard sqlite3_bind_parameter_count(sqliteStatement) == arguments.count else {
            throw DatabaseError(resultCode: .SQLITE_MISUSE, message: "the statement wants other arguments")
        }
        // A statement that is not reset keeps its lock on the file, and one whose arguments stay keeps secrets.
        defer {
            sqlite3_reset(sqliteStatement)
            sqlite3_clear_bindings(sqliteStatement)
        }
        for (index, argument) in arguments.enumerated() {
            let code = bind(argument, at: CInt(index + 1))
            guard code == SQLITE_OK else { throw failure(code, in: database) }
        }
        let names = columnNames
        var rows: [SQLRow] = []
        while true {
            switch sqlite3_step(sqliteStatement) {
            case SQLITE_ROW:
                rows.append(SQLRow(names: names, values: (0..<CInt(names.count)).map(value)))
            case SQLITE_DONE: return rows
            case let code: throw failure(code, in: database)
            }
        }
    }

    private func failure(_ code: CInt, in database: Database) -> DatabaseError {
        DatabaseError(resultCode: ResultCode(rawValue: code), message: database.lastErrorMessage)
    }

    private func bind(_ value: SQLValue, at index: CInt) -> CInt {
        // SQLite copies what it is given (`SQLITE_TRANSIENT`, a macro that Swift does not import).
        let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value {
        case .null: return sqlite3_bind_null(sqliteStatement, index)
        case .integer(let value): return sqlite3_bind_int64(sqliteStatement, index, value)
        case .text(var text):
            return text.withUTF8 { bytes in
                // An empty text may have no address, which would be NULL.
                guard let start = bytes.baseAddress else {
                    return sqlite3_bind_text(sqliteStatement, index, "", 0, copied)
                }
                return start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
                    sqlite3_bind_text64(
                        sqliteStatement, index, $0, sqlite3_uint64(bytes.count), copied, UInt8(SQLITE_UTF8))
                }
            }
        case .blob(let bytes):
            guard !bytes.isEmpty else { return sqlite3_bind_zeroblob(sqliteStatement, index, 0) }
            return sqlite3_bind_blob64(sqliteStatement, index, bytes, sqlite3_uint64(bytes.count), copied)
        }
    }

    private func value(at column: CInt) -> SQLValue {
        switch sqlite3_column_type(sqliteStatement, column) {
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(sqliteStatement, column))
        case SQLITE_FLOAT: return .text("\(sqlite3_column_double(sqliteStatement, column))")
        case SQLITE_TEXT:
            let start = sqlite3_column_text(sqliteStatement, column)
            let count = Int(sqlite3_column_bytes(sqliteStatement, column))
            return .text(String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self))
        case SQLITE_BLOB:
            let start = sqlite3_column_blob(sqliteStatement, column)
            let count = Int(sqlite3_column_bytes(sqliteStatement, column))
            return .blob([UInt8](UnsafeRawBufferPointer(start: start, count: count)))
        default: return .null
        }
    }
}
