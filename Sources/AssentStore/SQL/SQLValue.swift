/// A value of a column or of a parameter.
package enum SQLValue: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByNilLiteral
{
    /// No value.
    case null
    /// A whole number; also truth values, 0 and 1.
    case integer(Int64)
    /// Text.
    case text(String)
    /// Bytes.
    case blob([UInt8])

    /// Text.
    package init(stringLiteral value: String) { self = .text(value) }
    /// A whole number.
    package init(integerLiteral value: Int64) { self = .integer(value) }
    /// No value.
    package init(nilLiteral: ()) { self = .null }

    /// Text, or `null`.
    package init(_ text: String?) { self = text.map(SQLValue.text) ?? .null }
    /// A whole number, or `null`.
    package init(_ integer: (some BinaryInteger)?) { self = integer.map { .integer(Int64(clamping: $0)) } ?? .null }
    /// Bytes, or `null`.
    package init(_ bytes: [UInt8]?) { self = bytes.map(SQLValue.blob) ?? .null }
    /// 1 or 0.
    package init(_ flag: Bool) { self = .integer(flag ? 1 : 0) }

    var isNull: Bool { if case .null = self { true } else { false } }

    /// Whether this is a text that databases cut or refuse. Each argument of each statement is asked twice, and the
    /// text's own view takes several times as long as its bytes.
    package var hasNUL: Bool {
        guard case .text(let value) = self else { return false }
        return value.utf8.withContiguousStorageIfAvailable { $0.contains(0) } ?? value.utf8.contains(0)
    }
}

/// One row of a result. Reading a column that is missing or of another type throws ``StoreError`` with code `corrupt`.
package struct SQLRow: Sendable, Hashable {
    /// The names of the columns, in the order of the values.
    package let names: [String]
    private let values: [SQLValue]

    /// A row from its columns.
    package init(_ columns: [String: SQLValue]) {
        names = columns.keys.sorted()
        values = names.map { columns[$0] ?? .null }
    }

    /// A row from the names of its columns and as many values. Comparing a few short names is cheaper than hashing all
    /// of them.
    init(names: [String], values: [SQLValue]) {
        self.names = names
        self.values = values
    }

    /// The value of a column, whatever it is; `nil` if there is no such column.
    func value(_ name: String) -> SQLValue? {
        // Most columns have a name of another length, and need no comparison. All names are ASCII.
        let length = name.utf8.count
        return names.firstIndex { $0.utf8.count == length && $0 == name }.map { values[$0] }
    }

    /// Rows are equal when they have the same columns with the same values, in whatever order.
    package static func == (left: Self, right: Self) -> Bool { left.columns == right.columns }

    /// Hashes names and values.
    package func hash(into hasher: inout Hasher) { hasher.combine(columns) }

    private var columns: [String: SQLValue] {
        Dictionary(zip(names, values)) { $1 }
    }

    /// A whole number that must be there.
    package func integer(_ name: String) throws(StoreError) -> Int64 {
        guard let value = try optionalInteger(name) else { throw .missing(name) }
        return value
    }

    /// The server writes no larger number into a column, and none below its negative: in microseconds it is the year
    /// 2255. So what is computed with numbers of rows always fits, even a thousand times one, and no number that was
    /// written by hand ends the process.
    private static let largest: UInt64 = 1 << 53

    /// A whole number, or `nil` for NULL. One that is beyond all that a server writes is reported as `corrupt`.
    package func optionalInteger(_ name: String) throws(StoreError) -> Int64? {
        switch value(name) {
        case .some(.integer(let value)) where value.magnitude <= Self.largest: value
        case .some(.null): nil
        default: throw .missing(name)
        }
    }

    /// A truth value that must be there.
    package func bool(_ name: String) throws(StoreError) -> Bool { try integer(name) != 0 }

    /// Text that must be there.
    package func text(_ name: String) throws(StoreError) -> String {
        guard let value = try optionalText(name) else { throw .missing(name) }
        return value
    }

    /// Text, or `nil` for NULL.
    package func optionalText(_ name: String) throws(StoreError) -> String? {
        switch value(name) {
        case .some(.text(let value)): value
        case .some(.null): nil
        default: throw .missing(name)
        }
    }

    /// Bytes that must be there.
    package func blob(_ name: String) throws(StoreError) -> [UInt8] {
        guard let value = try optionalBlob(name) else { throw .missing(name) }
        return value
    }

    /// Bytes, or `nil` for NULL.
    package func optionalBlob(_ name: String) throws(StoreError) -> [UInt8]? {
        switch value(name) {
        case .some(.blob(let value)): value
        case .some(.null): nil
        default: throw .missing(name)
        }
    }
}
