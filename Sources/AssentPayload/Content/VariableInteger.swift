/// The integers of Binary HTTP (RFC 9000 §16): the first two bits say how many bytes.
enum VariableInteger {
    static let limit: UInt64 = 1 << 62

    static func encode(_ value: Int) -> [UInt8] {
        let value = UInt64(clamping: value)
        return switch value {
        case ..<(1 << 6): [UInt8(truncatingIfNeeded: value)]
        case ..<(1 << 14): bigEndian(UInt16(truncatingIfNeeded: value) | 0x4000)
        case ..<(1 << 30): bigEndian(UInt32(truncatingIfNeeded: value) | 0x8000_0000)
        default: bigEndian(value | 0xC000_0000_0000_0000)
        }
    }

    /// The integer at the start of `bytes`, which are dropped; `nil` when bytes are missing. Longer forms of small
    /// numbers are read as well, as RFC 9000 wants.
    static func read(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        guard let first = bytes.first else { return nil }
        let length = 1 << Int(first >> 6)
        guard bytes.count >= length else { return nil }
        let rest = bytes.dropFirst().prefix(length - 1)
        bytes = bytes.dropFirst(length)
        return rest.reduce(UInt64(first & 0x3F)) { $0 << 8 | UInt64($1) }
    }

    private static func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
}
