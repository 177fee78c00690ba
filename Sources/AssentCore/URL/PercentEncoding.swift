/// Percent-encoding (RFC 3986 §2.1).
public enum PercentEncoding {
    /// `text` for use as one component of a URL or a form: everything but the unreserved characters is encoded.
    public static func encode(_ text: some StringProtocol) -> String {
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            if byte.isURIUnreserved {
                encoded.append(byte)
            } else {
                encoded.append(UInt8(ascii: "%"))
                encoded.append(hexDigit(byte >> 4))
                encoded.append(hexDigit(byte & 15))
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// What `text` stands for, or `nil` when an escape is not two hexadecimal digits, the bytes are not UTF-8, or there
    /// are more than 64 marks (accents and the like) in a row.
    ///
    /// With `plusIsSpace` a `+` means a space, as in forms and in query strings made from them.
    public static func decode(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String? {
        var decoded: [UInt8] = []
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.next()?.hexDigitValue, let low = rest.next()?.hexDigitValue else { return nil }
                decoded.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: decoded.append(0x20)
            default: decoded.append(byte)
            }
        }
        guard let text = String(utf8: decoded[...]), !MarksInARow.areTooMany(in: text) else {
            return nil
        }
        return text
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
