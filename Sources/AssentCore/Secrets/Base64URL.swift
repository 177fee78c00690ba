/// Base 64 with the URL and file name safe alphabet and without padding (RFC 4648 §5, RFC 7515 §2).
public enum Base64URL {
    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    /// The unpadded text for `bytes`.
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        bytes.withContiguousStorageIfAvailable { encode(contiguous: $0) }
            ?? Array(bytes).withUnsafeBufferPointer { encode(contiguous: $0) }
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

    private static func decode(utf8: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard utf8.count % 4 != 1 else { return nil }
        var isCanonical = false
        let bytes = [UInt8](unsafeUninitializedCapacity: utf8.count * 3 / 4) { bytes, end in
            var buffer: UInt32 = 0
            var bits = 0
            for character in utf8 {
                guard let six = value(of: character) else { return }
                buffer = (buffer & 0xFFFF) << 6 | UInt32(six)
                bits += 6
                if bits >= 8 {
                    bits -= 8
                    bytes[end] = UInt8(truncatingIfNeeded: buffer >> UInt32(bits))
                    end += 1
                }
            }
            isCanonical = buffer & ((1 << UInt32(bits)) - 1) == 0
        }
        return isCanonical ? bytes : nil
    }

    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
