/// Base 32 (RFC 4648 §6), the form in which OATH secrets are shown and typed.
public enum Base32 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    /// The text for `bytes`, in upper case.
    public static func encode(_ bytes: some Collection<UInt8>, padded: Bool = false) -> String {
        var text: [UInt8] = []
        var buffer: UInt32 = 0
        var bits: UInt32 = 0
        for byte in bytes {
            buffer = (buffer & 0xFF) << 8 | UInt32(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                text.append(alphabet[Int(buffer >> bits & 0x1F)])
            }
        }
        if bits > 0 { text.append(alphabet[Int(buffer << (5 - bits) & 0x1F)]) }
        while padded, !text.count.isMultiple(of: 8) { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes, or `nil` when `text` has characters outside of the alphabet, an impossible length, non-zero spare
    /// bits, or padding that is not exactly what belongs there. Either case is read; padding may be left out.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let characters = Array(text.utf8)
        let digits = characters.prefix { $0 != UInt8(ascii: "=") }
        let padding = characters.count - digits.count
        guard padding == 0 || (characters.count.isMultiple(of: 8) && padding < 8) else { return nil }
        guard characters.dropFirst(digits.count).allSatisfy({ $0 == UInt8(ascii: "=") }) else { return nil }
        guard let (bytes, spare) = read(digits), spare == 0 else { return nil }
        return bytes
    }

    /// As ``decode(_:)``, but takes any number of `=` at the end and ignores the spare bits: authenticator apps do, so
    /// secrets of this form are about.
    package static func decodeLeniently(_ text: some StringProtocol) -> [UInt8]? {
        let characters = Array(text.utf8)
        let digits = characters.prefix { $0 != UInt8(ascii: "=") }
        guard characters.dropFirst(digits.count).allSatisfy({ $0 == UInt8(ascii: "=") }) else { return nil }
        return read(digits)?.bytes
    }

    private static func read(_ digits: ArraySlice<UInt8>) -> (bytes: [UInt8], spare: UInt32)? {
        guard ![1, 3, 6].contains(digits.count % 8) else { return nil }
        var bytes: [UInt8] = []
        var buffer: UInt32 = 0
        var bits: UInt32 = 0
        for digit in digits {
            guard let value = value(of: digit) else { return nil }
            buffer = (buffer & 0xFF) << 5 | UInt32(value)
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> bits))
            }
        }
        return (bytes, buffer & ((1 << bits) - 1))
    }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a")
        case UInt8(ascii: "2")...UInt8(ascii: "7"): digit - UInt8(ascii: "2") + 26
        default: nil
        }
    }
}
