/// Reads a table in the order of its primary key, a bounded part at a time.
struct TableScan {
    let table: StoredTable
    private let database: any SQLDatabase
    private var last: [SQLValue]?
    private var limit = 16

    /// The most rows of a part.
    static let mostRows = 500

    /// About how many bytes a part should have: with larger rows it has fewer.
    private static let bytes = 1 << 20

    /// A scan of the rows whose key is greater than `last`, or of all.
    init(_ table: StoredTable, in database: any SQLDatabase, after last: [SQLValue]? = nil) {
        self.table = table
        self.database = database
        self.last = last
    }

    /// The next rows, each with its values in the order of the table's columns; none at the end.
    ///
    /// - Throws: ``StoreError``; `corrupt` when a value is not of its column's type. SQLite keeps such values.
    mutating func next() async throws -> [[SQLValue]] {
        let rows = try await database.run(.read(table.selection(after: last, limit: limit))).map(table.values)
        guard let row = rows.last else { return [] }
        last = table.key(of: row)
        let size = rows.joined().reduce(0) { $0 + $1.byteCount }
        limit = min(max(1, rows.count * Self.bytes / max(1, size)), Self.mostRows)
        return rows
    }

    /// The greatest key that a table has in a database; `nil` when it is empty.
    static func greatestKey(of table: StoredTable, in database: any SQLDatabase) async throws -> [SQLValue]? {
        let descending = SQL(verbatim: table.key.map { "\($0.quoted) DESC" }.joined(separator: ", "))
        let row = try await database.run(
            .read("SELECT * FROM \(table.source) ORDER BY \(descending) LIMIT 1")
        ).first
        return try row.map { table.key(of: try table.values($0)) }
    }
}

extension StoredTable {
    /// The rows as they are selected from: all but the mark of an unfinished copy, which is not data.
    var source: SQL {
        "\(SQL(verbatim: "\"\(name)\"")) WHERE \(name == UnfinishedCopy.table ? UnfinishedCopy.isData : "1 = 1")"
    }

    fileprivate func selection(after last: [SQLValue]?, limit: Int) -> SQL {
        let names = SQL(verbatim: columns.map(\.quoted).joined(separator: ", "))
        let order = SQL(verbatim: key.map(\.quoted).joined(separator: ", "))
        let rest: SQL = last.map { "AND (\(order)) > (\(SQL(list: $0)))" } ?? ""
        return "SELECT \(names) FROM \(source) \(rest) ORDER BY \(order) LIMIT \(limit)"
    }

    /// The statement that adds a row.
    func insertion(_ row: [SQLValue]) -> SQLStatement {
        let names = SQL(verbatim: columns.map(\.quoted).joined(separator: ", "))
        return SQLStatement(
            "INSERT INTO \(SQL(verbatim: "\"\(name)\"")) (\(names)) VALUES (\(SQL(list: row)))", expecting: .exactly(1))
    }

    fileprivate func key(of row: [SQLValue]) -> [SQLValue] {
        zip(columns, row).filter { $0.0.keyPlace > 0 }.sorted { $0.0.keyPlace < $1.0.keyPlace }.map(\.1)
    }

    fileprivate func values(_ row: SQLRow) throws -> [SQLValue] {
        try columns.map { column in
            guard let value = row.value(column.name), column.takes(value) else {
                throw StoreError(.corrupt, "a value in column \(column.name) of \(name) is missing or of another type")
            }
            return value
        }
    }
}

extension StoredTable.Column {
    var quoted: String { "\"\(name)\"" }

    /// Whether a value is what the column is for. SQLite takes any, and a NULL in a key.
    fileprivate func takes(_ value: SQLValue) -> Bool {
        switch (content, value) {
        case (_, .null): keyPlace == 0
        case (.integer, .integer), (.text, .text), (.blob, .blob): true
        default: false
        }
    }
}

extension SQLValue {
    fileprivate var byteCount: Int {
        switch self {
        case .null: 1
        case .integer: 8
        case .text(let value): value.utf8.count
        case .blob(let value): value.count
        }
    }
}
