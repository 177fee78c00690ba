import AssentCore
import StoreTesting
import Testing

@testable import AssentStore

/// A database of one test with the schema of this version, of either kind.
struct CopyPlace: Sendable {
    let location: DatabaseLocation
    private let directory: TemporaryDirectory?

    static func sqlite() async throws -> CopyPlace {
        let directory = try TemporaryDirectory()
        return CopyPlace(location: try await TestDatabase.sqlite(directory.databasePath), directory: directory)
    }

    #if PostgreSQL && os(Linux)
    static func postgreSQL() async throws -> CopyPlace {
        CopyPlace(location: try await PostgreSQLPlace().location, directory: nil)
    }
    #endif

    func open() async throws -> any SQLDatabase { try await location.open(clock: SystemClock()) }
}

/// From which kind of database to which.
enum CopyDirection: String, Sendable, CaseIterable, CustomTestStringConvertible {
    case within = "SQLite to SQLite"
    #if PostgreSQL && os(Linux)
    case up = "SQLite to PostgreSQL"
    case down = "PostgreSQL to SQLite"
    case across = "PostgreSQL to PostgreSQL"
    #endif

    var testDescription: String { rawValue }

    func places() async throws -> (source: CopyPlace, target: CopyPlace) {
        switch self {
        case .within: (try await .sqlite(), try await .sqlite())
        #if PostgreSQL && os(Linux)
        case .up: (try await .sqlite(), try await .postgreSQL())
        case .down: (try await .postgreSQL(), try await .sqlite())
        case .across: (try await .postgreSQL(), try await .postgreSQL())
        #endif
        }
    }
}

/// Rows for every table of a schema: with NULL wherever it may be, the largest numbers, empty and long texts and
/// bytes.
struct SampleRows {
    private let tables: [StoredTable]
    private let required: [String: Set<String>]
    /// The columns that name rows of other tables.
    let references: [String: Set<String>]

    private static let texts = [
        "", "text", "Ärger, naïveté, 日本語, 𝄞, e\u{301}", "'; DROP TABLE users; --", "a\nb\tc\u{7F}",
        String(repeating: "long ", count: 500), "1", "NULL", "\u{FFFD}\u{200B}",
    ]

    /// The rows of a schema's tables; which columns must not be NULL is asked from a SQLite database that has them.
    init(_ schema: Schema = .current, reading database: any SQLDatabase) async throws {
        tables = try schema.tables()
        var required: [String: Set<String>] = [:]
        var references: [String: Set<String>] = [:]
        for table in tables {
            let rows = try await database.run(
                .read("SELECT name, \"notnull\" AS required FROM pragma_table_info(\(table.name))"))
            required[table.name] = Set(try rows.filter { try $0.bool("required") }.map { try $0.text("name") })
            let keys = try await database.run(
                .read("SELECT \"from\" AS name FROM pragma_foreign_key_list(\(table.name))"))
            references[table.name] = Set(try keys.map { try $0.text("name") })
        }
        self.required = required
        self.references = references
    }

    /// The statements that fill all tables with so many rows, all or of one table more.
    func insertions(_ count: Int, of table: String? = nil) -> [SQLStatement] {
        tables.filter { table == nil || $0.name == table }.flatMap { table in
            (0..<count).map { table.insertion(row(table, $0)) }
        }
    }

    private func row(_ table: StoredTable, _ index: Int) -> [SQLValue] {
        table.columns.enumerated().map { place, column in
            if column.keyPlace > 0 { return column.content == .integer ? number(index) : key(index) }
            if references[table.name]?.contains(column.name) == true {
                let mayBeNull = required[table.name]?.contains(column.name) != true
                return mayBeNull && index % 3 == 0 ? .null : key(index)
            }
            // Of these one at most is not used yet.
            let isFilled = table.name == "bootstrap_tokens" && column.name == "used_at"
            if !isFilled, required[table.name]?.contains(column.name) != true, (index + place) % 3 == 0 {
                return .null
            }
            switch column.content {
            case .integer: return number(index + place)
            case .text: return .text(Self.texts[(index + place) % Self.texts.count] + " \(index)")
            case .blob: return .blob(index % 2 == 0 ? [] : Array(0...255) + [UInt8](repeating: 0, count: index % 100))
            }
        }
    }

    /// Keys in no order that their numbers have.
    private func key(_ index: Int) -> SQLValue {
        .text(["a", "Z", "ä", "é", "𝄞", " ", "~", "_", "z"][index % 9] + "\(index)")
    }

    private func number(_ index: Int) -> SQLValue {
        let number = Int64(index)
        return .integer([.max - number, .min + number, number, -number][index % 4])
    }
}

extension SQLDatabase {
    /// Runs statements in transactions of a bounded size.
    func fill(_ statements: [SQLStatement]) async throws {
        for start in stride(from: 0, to: statements.count, by: 500) {
            _ = try await run(Array(statements[start..<min(start + 500, statements.count)]))
        }
    }

    /// Whether a row has the mark of an unfinished copy.
    func isMarked() async throws -> Bool { try await UnfinishedCopy.isThere(in: self) }
}

/// A database that a test watches and lets fail.
final class WatchedDatabase: SQLDatabase {
    /// What happens to the transaction with a number, from 1, of those that write.
    typealias Intervention = @Sendable (_ number: Int, _ statements: [SQLStatement]) async throws -> Void

    private struct State {
        var writes = 0
        var mostRows = 0
        var mostStatements = 0
    }

    private let base: any SQLDatabase
    private let before: Intervention
    private let after: Intervention
    private let state = Locked(State())

    init(
        _ base: any SQLDatabase, before: @escaping Intervention = { _, _ in },
        after: @escaping Intervention = { _, _ in }
    ) {
        self.base = base
        self.before = before
        self.after = after
    }

    /// The most rows that a call has returned.
    var mostRows: Int { state.withLock { $0.mostRows } }

    /// The most statements of a call.
    var mostStatements: Int { state.withLock { $0.mostStatements } }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await run([statement]).first ?? [] }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        let number = state.withLock { state -> Int? in
            state.mostStatements = max(state.mostStatements, statements.count)
            if statements.allSatisfy(\.isRead) { return nil }
            state.writes += 1
            return state.writes
        }
        if let number { try await before(number, statements) }
        let rows = try await base.run(statements)
        if let number { try await after(number, statements) }
        let most = rows.map(\.count).max() ?? 0
        state.withLock { $0.mostRows = max($0.mostRows, most) }
        return rows
    }

    func checkHealth() async throws { try await base.checkHealth() }

    func close() async throws { try await base.close() }
}
