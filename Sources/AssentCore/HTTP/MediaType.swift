/// Media types as two sides compare them (RFC 9110 §8.3.1).
package enum MediaType {
    /// Type, parameter names and character set in lower case, without white space around the delimiters (RFC 9110
    /// §8.3.1); other values as they are: a multipart boundary is another one in another case.
    package static func normalised(_ mediaType: String) -> String {
        let isSpace: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        var parts: [String] = []
        for part in Array(mediaType.utf8).split(separator: UInt8(ascii: ";")) {
            var trimmed = part.drop(while: isSpace)
            while let last = trimmed.last, isSpace(last) { trimmed.removeLast() }
            guard !trimmed.isEmpty else { continue }
            let split = trimmed.firstIndex(of: UInt8(ascii: "=")) ?? trimmed.endIndex
            let name = String(decoding: trimmed[..<split], as: UTF8.self).lowercased()
            let rest = String(decoding: trimmed[split...], as: UTF8.self)
            let ignoresCase = parts.isEmpty || name == "charset"
            parts.append(name + (ignoresCase ? rest.lowercased() : rest))
        }
        return parts.joined(separator: ";")
    }
}
