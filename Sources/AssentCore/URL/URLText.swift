/// Changes of URLs as texts, which leave everything else as it is: nothing is decoded, normalised or encoded again.
public enum URLText {
    /// `url` with one more query item at the end of its query and before its fragment. Name and value are
    /// percent-encoded.
    public static func appending(_ name: String, _ value: String, to url: String) -> String {
        let bytes = Array(url.utf8)
        let end = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        let head = String(decoding: bytes[..<end], as: UTF8.self)
        let fragment = String(decoding: bytes[end...], as: UTF8.self)
        let separator: String
        if !head.utf8.contains(UInt8(ascii: "?")) {
            separator = "?"
        } else {
            separator = head.hasSuffix("?") || head.hasSuffix("&") ? "" : "&"
        }
        return "\(head)\(separator)\(PercentEncoding.encode(name))=\(PercentEncoding.encode(value))\(fragment)"
    }

    /// The query of `url`, without fragment; `nil` when there is no `?`.
    public static func query(of url: String) -> QueryString? {
        let bytes = Array(url.utf8)
        let end = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        guard let mark = bytes[..<end].firstIndex(of: UInt8(ascii: "?")) else { return nil }
        return QueryString(String(decoding: bytes[(mark + 1)..<end], as: UTF8.self))
    }

    /// `url` without query and fragment.
    public static func withoutQuery(_ url: String) -> String {
        let end = url.utf8.firstIndex { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "?") }
        return end.map { String(url[..<$0]) } ?? url
    }
}
