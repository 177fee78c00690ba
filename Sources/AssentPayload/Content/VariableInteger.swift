/// The integers of Binary HTTP (RFC 9000 §16): the first two bits say how many bytes.
enum VariableInteger {
    static let limit: UInt64 = 1 << 62

    /// The most bytes of one.
    static let longest = 8

    /// Adds the shortest form of a value.
    static func append(_ value: Int, to bytes: inout [UInt8]) {
        let length = length(of: value)
        // 0, 1, 2 and 3 in the first two bits, for 1, 2, 4 and 8 bytes.
        let form = UInt64(length.trailingZeroBitCount) << UInt64(8 * length - 2)
        let bits = UInt64(clamping: value) | form
        for index in (0..<length).reversed() { bytes.append(UInt8(truncatingIfNeeded: bits >> UInt64(8 * index))) }
    }

    /// How many bytes ``append(_:to:)`` makes of a value.
    static func length(of value: Int) -> Int {
        switch UInt64(clamping: value) {
        case ..<(1 << 6): 1
        case ..<(1 << 14): 2
        case ..<(1 << 30): 4
        default: 8
        }
    }

    /// The integer at the start of `bytes`, which are dropped; `nil` when bytes are missing. Longer forms of small
    /// numbers are read as well, as RFC 9000 wants.
    static func read(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        guard let first = bytes.first else { return nil }
        let length = 1 << Int(first >> 6)
        guard bytes.count >= length else { return nil }
        var value = UInt64(first & 0x3F)
        for byte in bytes.dropFirst().prefix(length - 1) { value = value << 8 | UInt64(byte) }
        bytes = bytes.dropFirst(length)
        return value
    }
}
