/// Base 64 with the URL and file name safe alphabet and without padding (RFC 4648 §5, RFC 7515 §2).
public enum Base64URL {
    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    /// The unpadded text for `bytes`.
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        bytes.withContiguousStorageIfAvailable { encode(contiguous: $0) }
            ?? Array(bytes).withUnsafeBufferPointer { encode(contiguous: $0) }
    }

    /// The unpadded text for the bytes of a digest: the same, without the price of a generic function.
    package static func encode(_ bytes: UnsafeRawBufferPointer) -> String {
        bytes.withMemoryRebound(to: UInt8.self) { encode(contiguous: $0) }
    }

    /// Appends the unpadded text for `bytes`.
    package static func append(_ bytes: [UInt8], to text: inout [UInt8]) {
        let start = text.count
        text += repeatElement(0, count: length(of: bytes.count))
        bytes.withUnsafeBufferPointer { bytes in
            text.withUnsafeMutableBufferPointer { text in
                _ = write(bytes, to: UnsafeMutableBufferPointer(rebasing: text[start...]))
            }
        }
    }

    /// How many characters stand for so many bytes.
    package static func length(of count: Int) -> Int { (count * 4 + 2) / 3 }

    private static func encode(contiguous bytes: UnsafeBufferPointer<UInt8>) -> String {
        String(unsafeUninitializedCapacity: length(of: bytes.count)) { write(bytes, to: $0) }
    }

    /// Three bytes at a time: tokens, digests and the proof of each call are written by it. `text` has room for as many
    /// characters as ``length(of:)`` says; returns how many it has written.
    private static func write(
        _ bytes: UnsafeBufferPointer<UInt8>, to text: UnsafeMutableBufferPointer<UInt8>
    ) -> Int {
        let letters = alphabet.utf8Start
        var (index, end) = (0, 0)
        while bytes.count - index >= 3 {
            let three = Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
            text[end] = letters[three >> 18]
            text[end + 1] = letters[three >> 12 & 0x3F]
            text[end + 2] = letters[three >> 6 & 0x3F]
            text[end + 3] = letters[three & 0x3F]
            index += 3
            end += 4
        }
        let rest = bytes.count - index
        guard rest > 0 else { return end }
        let last = Int(bytes[index]) << 8 | (rest == 2 ? Int(bytes[index + 1]) : 0)
        text[end] = letters[last >> 10]
        text[end + 1] = letters[last >> 4 & 0x3F]
        guard rest == 2 else { return end + 2 }
        text[end + 2] = letters[last << 2 & 0x3F]
        return end + 3
    }

    /// The bytes that `text` stands for, or `nil` when it has padding, white space, another alphabet's characters, an
    /// impossible length or non-zero trailing bits. So each value has exactly one text.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        // A token is decoded at every request: byte by byte through the protocol, that takes longer than anything else
        // here.
        text.utf8.withContiguousStorageIfAvailable { decode(utf8: $0) }
            ?? Array(text.utf8).withUnsafeBufferPointer { decode(utf8: $0) }
    }

    /// The bytes that `text` stands for. Other modules would call the generic function without a version for the type,
    /// which takes longer.
    package static func decode(_ text: String) -> [UInt8]? {
        text.utf8.withContiguousStorageIfAvailable { decode(utf8: $0) }
            ?? Array(text.utf8).withUnsafeBufferPointer { decode(utf8: $0) }
    }

    /// The bytes that a part of a text stands for.
    package static func decode(_ text: Substring) -> [UInt8]? {
        text.utf8.withContiguousStorageIfAvailable { decode(utf8: $0) }
            ?? Array(text.utf8).withUnsafeBufferPointer { decode(utf8: $0) }
    }

    /// Four characters at a time, and without a branch that depends on what they are, which no processor can guess.
    private static func decode(utf8: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard utf8.count % 4 != 1 else { return nil }
        // Negative once a character is not of the alphabet, or the last one has bits that no byte has.
        var faults: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: utf8.count * 3 / 4) { bytes, end in
            var index = 0
            while utf8.count - index >= 4 {
                let (first, second) = (value(of: utf8[index]), value(of: utf8[index + 1]))
                let (third, fourth) = (value(of: utf8[index + 2]), value(of: utf8[index + 3]))
                faults |= first | second | third | fourth
                let (upper, lower) = (first << 6 | second, third << 6 | fourth)
                let three = upper << 12 | lower
                bytes[end] = UInt8(truncatingIfNeeded: three >> 16)
                bytes[end + 1] = UInt8(truncatingIfNeeded: three >> 8)
                bytes[end + 2] = UInt8(truncatingIfNeeded: three)
                index += 4
                end += 3
            }
            let rest = utf8.count - index
            guard rest > 0 else { return }
            let (first, second) = (value(of: utf8[index]), value(of: utf8[index + 1]))
            let third = rest == 3 ? value(of: utf8[index + 2]) : 0
            let last = (first << 6 | second) << 6 | third
            let left = last & (rest == 3 ? 0x3 : 0x3FF)
            faults |= first | second | third | -left
            bytes[end] = UInt8(truncatingIfNeeded: last >> 10)
            end += 1
            guard rest == 3 else { return }
            bytes[end] = UInt8(truncatingIfNeeded: last >> 2)
            end += 1
        }
        return faults < 0 ? nil : bytes
    }

    /// The six bits that a character stands for; -1 for one that is not of the alphabet.
    private static func value(of character: UInt8) -> Int32 {
        let code = Int32(character)
        // At most one of these is not zero: a character's bits and one more.
        let upper = between(code, 0x40, 0x5B) & (code - 0x40)
        let lower = between(code, 0x60, 0x7B) & (code - 0x46)
        let digit = between(code, 0x2F, 0x3A) & (code + 5)
        let minus = between(code, 0x2C, 0x2E) & 63
        let underscore = between(code, 0x5E, 0x60) & 64
        return (upper | lower | digit | minus | underscore) - 1
    }

    /// All bits where a code lies between two others, and none where it does not: by the sign of two differences.
    private static func between(_ code: Int32, _ below: Int32, _ above: Int32) -> Int32 {
        ((below - code) & (code - above)) >> 8
    }
}
