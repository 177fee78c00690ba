/// The `Content-Type` of a request whose body is bound: one that every program reads in the same way.
package struct BoundMediaType: Sendable, Hashable {
    /// Type and subtype in lower case, for example `application/json`.
    package let essence: String

    /// The whole in the form in which two are compared.
    package let normalised: String

    /// Whether the body is JSON (RFC 8259, RFC 6839 §3.1).
    package var isJSON: Bool { essence == "application/json" || essence.hasSuffix("+json") }

    /// Reads a field's value; `nil` for what is not a media type (RFC 9110 §8.3.1), names several, or a character set
    /// other than UTF-8: what is shown to the user was read as UTF-8, and the service would read other text in the same
    /// bytes.
    package init?(_ text: String) {
        guard text.utf8.count <= 256, text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F || $0 == 0x09 }),
            !text.utf8.contains(UInt8(ascii: ","))
        else { return nil }
        normalised = MediaType.normalised(text)
        let parts = normalised.split(separator: ";", omittingEmptySubsequences: false)
        guard let first = parts.first, Self.isTypeAndSubtype(first) else { return nil }
        essence = String(first)
        var hasCharset = false
        for parameter in parts.dropFirst() {
            let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            // White space around the equals sign is not allowed, and overlooked by some.
            guard pair.count == 2, !pair[0].isEmpty, pair[0].utf8.allSatisfy(Self.isToken) else { return nil }
            // JSON has no other parameter (RFC 8259 §11), and one with an extended or odd name may be read as a
            // character set.
            guard isJSON || pair[0].hasPrefix("charset") else { continue }
            guard !hasCharset, pair[0] == "charset", pair[1] == "utf-8" || pair[1] == "\"utf-8\"" else { return nil }
            hasCharset = true
        }
    }

    private static func isTypeAndSubtype(_ text: Substring) -> Bool {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(isToken) }
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
