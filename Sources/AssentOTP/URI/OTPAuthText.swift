import AssentCore

/// What may stand in an `otpauth` URI and how it is written there.
enum OTPAuthText {
    static let uriLimit = 4096
    private static let textLimit = 1024

    /// Refuses what would lie about itself on a screen, or is not a name: control characters, marks that turn the
    /// direction of text around, script, and markup unless `allowsMarkup`.
    static func check(_ text: String, allowsMarkup: Bool = false) throws(OTPError) {
        guard text.utf8.count <= textLimit else {
            throw OTPError(.tooLarge, "A text of the URI has more than \(textLimit) bytes.")
        }
        for scalar in text.unicodeScalars {
            if allowsMarkup, scalar == "<" || scalar == ">" { continue }
            switch scalar.value {
            case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0x3C, 0x3E:
                throw OTPError(
                    .invalidURI,
                    "The URI has characters that deceive on a screen: control characters, marks that turn text around, < or >."
                )
            default: break
            }
        }
        guard !text.lowercased().contains("javascript:") else {
            throw OTPError(.invalidURI, "The URI has script in it.")
        }
    }

    static func percentEncoded(_ text: String) -> String {
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            if byte.isURIUnreserved || byte == UInt8(ascii: "@") {
                encoded.append(byte)
            } else {
                encoded += Array("%\(Hex.encode([byte]).uppercased())".utf8)
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// `nil` for a broken escape or for bytes that are not UTF-8.
    static func percentDecoded(_ text: some StringProtocol) -> String? {
        var decoded: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard rest.count >= 2, let value = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self))?.first else {
                return nil
            }
            decoded.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: decoded, as: UTF8.self)
    }

    /// The bytes of base 64 in either alphabet, padded or not.
    static func base64(_ text: String) -> [UInt8]? {
        let urlSafe = String(text.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
        return Base64URL.decode(urlSafe.prefix { $0 != "=" })
    }

    /// The text that `text` is base 64 of, or `text` itself when it is not base 64 of anything that could be shown.
    static func decoded(_ text: String) -> String {
        guard let bytes = base64(text), let decoded = String(validating: bytes, as: UTF8.self),
            !decoded.isEmpty, (try? check(decoded)) != nil
        else { return text }
        return decoded
    }
}
