#if PostgreSQL && os(Linux)
import CPQ

/// A parameter's type, and how it and the cells of a result are written: PostgreSQL's binary formats.
enum PostgreSQLType {
    static let bool: Oid = 16
    static let bytes: Oid = 17
    static let int8: Oid = 20
    static let int2: Oid = 21
    static let int4: Oid = 23
    static let text: Oid = 25
    static let numeric: Oid = 1700
    /// What PostgreSQL has for texts and names.
    static let texts: Set<Oid> = [text, 18, 19, 1042, 1043, 705]
}

extension SQLValue {
    /// The type of a parameter with this value; 0, for NULL, lets the server find it out.
    var postgreSQLType: Oid {
        switch self {
        case .null: 0
        case .integer: PostgreSQLType.int8
        case .text: PostgreSQLType.text
        case .blob: PostgreSQLType.bytes
        }
    }

    /// Appends the value's bytes; a NULL has none.
    func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: break
        case .integer(let value): withUnsafeBytes(of: value.bigEndian) { bytes += $0 }
        case .text(let value): bytes += value.utf8
        case .blob(let value): bytes += value
        }
    }

    /// A cell of a result; `nil` if it is of a type that no column of this server has.
    init?(postgreSQLType type: Oid, _ bytes: UnsafeRawBufferPointer) {
        switch type {
        // Most are texts, and are not looked for among the other types of texts.
        case PostgreSQLType.text: self = .text(String(decoding: bytes, as: UTF8.self))
        case PostgreSQLType.int8, PostgreSQLType.int4, PostgreSQLType.int2:
            guard let first = bytes.first else { return nil }
            let sign: Int64 = first & 0x80 == 0 ? 0 : -1
            self = .integer(bytes.reduce(sign) { $0 << 8 | Int64($1) })
        case PostgreSQLType.bool: self = .integer(bytes.first == 0 ? 0 : 1)
        case PostgreSQLType.bytes: self = .blob([UInt8](bytes))
        case PostgreSQLType.numeric:
            guard let value = Self.whole(numeric: bytes) else { return nil }
            self = .integer(value)
        case _ where PostgreSQLType.texts.contains(type): self = .text(String(decoding: bytes, as: UTF8.self))
        default: return nil
        }
    }

    /// The whole number in a `numeric`, which is what `sum` gives: the number of its digits to the base of 10000, the
    /// power of the first, the sign, the decimals that are shown, the digits.
    private static func whole(numeric bytes: UnsafeRawBufferPointer) -> Int64? {
        func part(_ index: Int) -> Int64 { Int64(bytes[2 * index]) << 8 | Int64(bytes[2 * index + 1]) }
        guard bytes.count >= 8, part(3) == 0, part(2) == 0 || part(2) == 0x4000 else { return nil }
        let count = Int(part(0))
        guard bytes.count == 8 + 2 * count else { return nil }
        if count == 0 { return 0 }
        let places = Int(part(1)) + 1
        guard places >= count, places <= 5 else { return nil }
        var value: Int64 = 0
        for place in 0..<places {
            let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10_000)
            let (sum, isTooMuch) = product.subtractingReportingOverflow(place < count ? part(4 + place) : 0)
            guard !isTooLarge, !isTooMuch else { return nil }
            value = sum
        }
        if part(2) == 0x4000 { return value }
        return value == .min ? nil : -value
    }
}
#endif
