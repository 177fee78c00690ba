/// Base 16 (RFC 4648 §8), lower case when written, either case when read.
public enum Hex {
    /// Two lower-case digits for each byte.
    public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        let digits: StaticString = "0123456789abcdef"
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.underestimatedCount)
        for byte in bytes {
            text.append(digits.utf8Start[Int(byte >> 4)])
            text.append(digits.utf8Start[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes, or `nil` when `text` has an odd length or anything but hexadecimal digits.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let digits = text.utf8.map(\.hexDigitValue)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}
