/// Base 64 with the URL and file name safe alphabet and without padding (RFC 4648 §5, RFC 7515 §2).
public enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The unpadded text for `bytes`.
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        bytes.withContiguousStorageIfAvailable { encode(contiguous: $0) }
            ?? Array(bytes).withUnsafeBufferPointer { encode(contiguous: $0) }
    }

    private static func encode(contiguous bytes: UnsafeBufferPointer<UInt8>) -> String {
        String(unsafeUninitializedCapacity: (bytes.count * 4 + 2) / 3) { text in
            alphabet.withUnsafeBufferPointer { alphabet in
                var (buffer, bits, end) = (UInt32(0), 0, 0)
                for byte in bytes {
                    buffer = (buffer & 0xFFFF) << 8 | UInt32(byte)
                    bits += 8
                    while bits >= 6 {
                        bits -= 6
                        text[end] = alphabet[Int(buffer >> UInt32(bits) & 0x3F)]
                        end += 1
                    }
                }
                guard bits > 0 else { return end }
                text[end] = alphabet[Int(buffer << UInt32(6 - bits) & 0x3F)]
                return end + 1
            }
        }
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
        var bytes: [UInt8] = []
        guard utf8.count % 4 != 1 else { return nil }
        bytes.reserveCapacity(utf8.count * 3 / 4)
        var buffer: UInt32 = 0
        var bits = 0
        for character in utf8 {
            guard let value = value(of: character) else { return nil }
            buffer = (buffer & 0xFFFF) << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
            }
        }
        guard buffer & ((1 << UInt32(bits)) - 1) == 0 else { return nil }
        return bytes
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
