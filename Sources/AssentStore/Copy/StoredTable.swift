import AssentCore
import GRDB

/// A table of a schema, as far as one must know it to copy its rows.
package struct StoredTable: Sendable, Hashable {
    /// What a column holds, apart from NULL.
    package enum Content: Sendable, Hashable {
        /// Whole numbers.
        case integer
        /// Text.
        case text
        /// Bytes.
        case blob
    }

    /// One column.
    package struct Column: Sendable, Hashable {
        /// Its name.
        package let name: String

        /// What it holds.
        package let content: Content

        /// Its place in the primary key, from 1; 0 when it is not part of it.
        package let keyPlace: Int
    }

    /// Its name.
    package let name: String

    /// Its columns, in their order.
    package let columns: [Column]

    /// The tables that its rows refer to.
    package let parents: Set<String>

    /// The columns of the primary key, in its order.
    package var key: [Column] { columns.filter { $0.keyPlace > 0 }.sorted { $0.keyPlace < $1.keyPlace } }
}

extension Schema {
    /// All tables that the steps make, those before others that are referred to by their rows.
    ///
    /// They are read from a database in memory that has the steps, so that no list can forget one.
    ///
    /// - Throws: ``StoreError`` with code `statement` for a table that cannot be copied: without a primary key, with a
    ///   column of another type, or with references in a circle.
    package func tables() throws -> [StoredTable] {
        if let known = knownTables.withLock(\.self) { return known }
        do {
            let tables = try Self.ordered(
                DatabaseQueue().write { database in
                    for statement in steps.flatMap(\.statements) { try database.execute(sql: statement) }
                    let names = try String.fetchAll(
                        database, sql: "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
                    return try names.map { try Self.table($0, in: database) }
                })
            knownTables.withLock { $0 = tables }
            return tables
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    private static func table(_ name: String, in database: Database) throws -> StoredTable {
        let rows = try Row.fetchAll(
            database, sql: "SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", arguments: [name])
        let columns = try rows.map { row in
            let (column, type): (String, String) = (row["name"], row["type"])
            guard let content = contents[type] else {
                throw StoreError(.statement, "column \(column) of \(name) has the type \(type): it cannot be copied")
            }
            return StoredTable.Column(name: column, content: content, keyPlace: row["pk"])
        }
        guard columns.contains(where: { $0.keyPlace > 0 }) else {
            throw StoreError(.statement, "\(name) has no primary key: it cannot be copied")
        }
        let parents = try String.fetchSet(
            database, sql: "SELECT \"table\" FROM pragma_foreign_key_list(?)", arguments: [name])
        return StoredTable(name: name, columns: columns, parents: parents)
    }

    private static let contents: [String: StoredTable.Content] = [
        "BIGINT": .integer, "INTEGER": .integer, "TEXT": .text, "BLOB": .blob,
    ]

    private static func ordered(_ tables: [StoredTable]) throws -> [StoredTable] {
        var (rest, ordered) = (tables, [StoredTable]())
        while !rest.isEmpty {
            let known = Set(ordered.map(\.name))
            guard let index = rest.firstIndex(where: { $0.parents.isSubset(of: known) }) else {
                throw StoreError(.statement, "\(rest[0].name) refers to itself in a circle: it cannot be copied")
            }
            ordered.append(rest.remove(at: index))
        }
        return ordered
    }
}
