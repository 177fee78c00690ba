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
    /// - Throws: ``WireError``: `tooLarge` beyond `limit` bytes; `malformed` when it does not begin with `/`, or has
    ///   control characters, spaces, a fragment or bytes beyond ASCII.
    public init(_ text: String, limit: Int = 8 << 10) throws(WireError) {
        guard text.utf8.count <= limit else {
            throw WireError(.tooLarge, "a request target has more than \(limit) bytes")
        }
        guard text.utf8.first == UInt8(ascii: "/"),
            text.utf8.allSatisfy({ $0.isASCIIVisible && $0 != UInt8(ascii: "#") })
        else { throw WireError(.malformed, "a request target is not a path with an optional query in printable ASCII") }
        let mark = text.utf8.firstIndex(of: UInt8(ascii: "?"))
        path = String(text[..<(mark ?? text.endIndex)])
        query = mark.map { QueryString(text[text.utf8.index(after: $0)...]) }
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
