import AssentCore

/// What a table holds, in a few bytes: two databases with the same rows have the same digest, whatever kind they are.
///
/// The digest of no row is the SHA-256 of the table's name and its columns' names. The digest of each further row, in
/// the order of the primary key, is the SHA-256 of the one before and the row's values, each with its type and length.
package struct TableDigest: Sendable, Hashable {
    /// The table's name.
    package let table: String

    /// How many rows it has.
    package private(set) var rows: Int64 = 0

    /// The SHA-256: 32 bytes.
    package private(set) var sha256: [UInt8]

    /// The digest of a table without rows.
    init(_ table: StoredTable) {
        self.table = table.name
        var bytes: [UInt8] = []
        for name in [table.name] + table.columns.map(\.name) { SQLValue.text(name).encode(into: &bytes) }
        sha256 = SHA2.sha256(bytes)
    }

    /// Adds the next row.
    mutating func add(_ row: [SQLValue]) {
        var bytes = sha256
        for value in row { value.encode(into: &bytes) }
        sha256 = SHA2.sha256(bytes)
        rows += 1
    }

    /// Reads a whole table. `report` is told how many rows were read so far.
    static func read(
        _ table: StoredTable, in database: any SQLDatabase, report: @Sendable (Int64) -> Void = { _ in }
    ) async throws -> TableDigest {
        var digest = TableDigest(table)
        var scan = TableScan(table, in: database)
        while true {
            let rows = try await scan.next()
            if rows.isEmpty { return digest }
            for row in rows { digest.add(row) }
            report(digest.rows)
        }
    }
}

extension SQLValue {
    /// Appends a form that no other value has, and no other sequence of values.
    fileprivate func encode(into bytes: inout [UInt8]) {
        func append(_ number: UInt64) { withUnsafeBytes(of: number.bigEndian) { bytes += $0 } }
        switch self {
        case .null: bytes.append(0)
        case .integer(let value):
            bytes.append(1)
            append(UInt64(bitPattern: value))
        case .text(let value):
            bytes.append(2)
            append(UInt64(value.utf8.count))
            bytes += value.utf8
        case .blob(let value):
            bytes.append(3)
            append(UInt64(value.count))
            bytes += value
        }
    }
}
