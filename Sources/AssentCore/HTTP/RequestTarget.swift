/// A query string whose items keep the text they were sent as, so that removing one changes nothing else.
public struct QueryString: Hashable, Sendable {
    /// One element between two `&`.
    public struct Item: Hashable, Sendable {
        /// The element as it was sent.
        public let text: String

        init(_ text: some StringProtocol) { self.text = String(text) }

        /// The decoded name, or `nil` when its escapes are broken.
        public var name: String? {
            PercentEncoding.decode(parts[0], plusIsSpace: true)
        }

        /// The decoded value, empty when there is no `=`; `nil` when its escapes are broken.
        public var value: String? {
            parts.count > 1 ? PercentEncoding.decode(parts[1], plusIsSpace: true) : ""
        }

        private var parts: [Substring] {
            text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        }
    }

    /// All elements in their order, empty ones too.
    public let items: [Item]

    /// Takes the query apart; `text` is what stands behind the `?`.
    public init(_ text: some StringProtocol) {
        items = text.isEmpty ? [] : text.split(separator: "&", omittingEmptySubsequences: false).map { Item($0) }
    }

    private init(items: [Item]) { self.items = items }

    /// The query as it was sent, without the `?`.
    public var text: String { items.map(\.text).joined(separator: "&") }

    /// Whether the names and values of all items can be decoded. Somebody behind us may read broken ones differently.
    public var isWellFormed: Bool { items.allSatisfy { $0.name != nil && $0.value != nil } }

    /// The decoded values of all items called `name`; those that cannot be decoded are left out.
    public subscript(all name: String) -> [String] {
        matching(name).compactMap(\.value)
    }

    /// The value of the item called `name`, or `nil` when there is none.
    ///
    /// - Throws: ``WireError``: `duplicate` when there are several, `malformed` when it cannot be decoded.
    public func single(_ name: String) throws(WireError) -> String? {
        let found = matching(name)
        guard found.count <= 1 else { throw WireError(.duplicate, "a parameter occurs \(found.count) times") }
        guard let item = found.first else { return nil }
        guard let value = item.value else { throw WireError(.malformed, "a parameter has a broken escape") }
        return value
    }

    /// The query without the items called `name`, however that name was encoded; the others exactly as they were.
    public func removing(_ name: String) -> QueryString {
        QueryString(items: items.filter { !Self.isCalled(name, $0) })
    }

    private func matching(_ name: String) -> [Item] { items.filter { Self.isCalled(name, $0) } }

    private static func isCalled(_ name: String, _ item: Item) -> Bool {
        item.name.map { $0.utf8.elementsEqual(name.utf8) } ?? false
    }
}

/// The path and query of a request in origin form (RFC 9112 §3.2.1), not normalised in any way.
public struct RequestTarget: Hashable, Sendable {
    /// The path as it was sent; begins with `/`.
    public let path: String

    /// The query; `nil` when there was no `?`.
    public let query: QueryString?

    /// A path with a query. The path is taken as it is.
    public init(path: String, query: QueryString?) {
        self.path = path
        self.query = query
    }

    /// Reads `path?query`.
    ///
    /// - Throws: ``WireError``: `tooLarge` beyond `limit` bytes; `malformed` when it does not begin with `/`, or has control
    ///   characters, spaces, a fragment or bytes beyond ASCII.
    public init(_ text: String, limit: Int = 8 << 10) throws(WireError) {
        guard text.utf8.count <= limit else {
            throw WireError(.tooLarge, "a request target has more than \(limit) bytes")
        }
        guard text.utf8.first == UInt8(ascii: "/"),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") })
        else { throw WireError(.malformed, "a request target is not a path with an optional query in printable ASCII") }
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(parts[0])
        query = parts.count > 1 ? QueryString(parts[1]) : nil
    }

    /// The target as it was sent.
    public var text: String { query.map { "\(path)?\($0.text)" } ?? path }

    /// The target without the query items called `name`; the `?` goes with the last of them.
    public func removing(_ name: String) -> RequestTarget {
        guard let query else { return self }
        let rest = query.removing(name)
        return RequestTarget(path: path, query: rest.items.isEmpty && !query.items.isEmpty ? nil : rest)
    }
}

/// Changes of URLs as texts, which leave everything else as it is: nothing is decoded, normalised or encoded again.
public enum URLText {
    /// `url` with one more query item at the end of its query and before its fragment. Name and value are percent-encoded.
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
