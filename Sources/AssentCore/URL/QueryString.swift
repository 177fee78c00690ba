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
