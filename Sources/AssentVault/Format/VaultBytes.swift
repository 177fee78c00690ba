/// Appends the fields of the vault's binary format: integers big-endian, byte strings with their length in front.
package struct VaultWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func raw(_ value: some Sequence<UInt8>) {
        bytes.append(contentsOf: value)
    }

    package mutating func integer(_ value: some FixedWidthInteger & UnsignedInteger) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func counted(_ value: some Collection<UInt8>) {
        integer(UInt32(clamping: value.count))
        raw(value)
    }
}

/// Reads those fields back. Every read is bounded by what is there.
package struct VaultReader {
    package struct Malformed: Error {}

    private var rest: ArraySlice<UInt8>

    package init(_ bytes: some Collection<UInt8>) {
        rest = ArraySlice(bytes)
    }

    package var isAtEnd: Bool { rest.isEmpty }

    package mutating func raw(_ count: Int) throws(Malformed) -> [UInt8] {
        guard count >= 0, count <= rest.count else { throw Malformed() }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    package mutating func integer<Value: FixedWidthInteger & UnsignedInteger>(_ type: Value.Type) throws(Malformed)
        -> Value
    {
        try raw(Value.bitWidth / 8).reduce(0) { $0 << 8 | Value($1) }
    }

    package mutating func counted(limit: Int) throws(Malformed) -> [UInt8] {
        let count = Int(try integer(UInt32.self))
        guard count <= limit else { throw Malformed() }
        return try raw(count)
    }

    package mutating func remainder() -> [UInt8] {
        defer { rest = [] }
        return Array(rest)
    }
}
