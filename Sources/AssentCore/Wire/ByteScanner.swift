/// Reads ASCII grammars byte by byte. Every look is bounds-checked, so that no input can make it trap.
struct ByteScanner {
    let bytes: [UInt8]
    var offset = 0

    init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

    var current: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    var isAtEnd: Bool { offset >= bytes.count }

    mutating func skip(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        offset += 1
        return true
    }

    mutating func skip(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard bytes.count - offset >= count else { return false }
        for index in 0..<count where bytes[offset + index] != text.utf8Start[index] { return false }
        offset += count
        return true
    }

    mutating func skip(while condition: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = offset
        while let byte = current, condition(byte) { offset += 1 }
        return bytes[start..<offset]
    }

    /// Optional white space of RFC 9110 §5.6.3; tells whether there was any.
    @discardableResult
    mutating func skipBlanks() -> Bool {
        !skip { $0 == 0x20 || $0 == 0x09 }.isEmpty
    }

    var malformed: WireError {
        WireError(.malformed, isAtEnd ? "it ends in the middle" : "unexpected byte at offset \(offset)")
    }
}
