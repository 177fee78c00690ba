/// The names and values of a form or a query, in their order, decoded.
///
/// Lookups tell "not there" from "there twice": two readers of a repeated parameter could see two different values.
public struct FormItems: Hashable, Sendable {
    /// A name and its value.
    public struct Item: Hashable, Sendable {
        /// The name.
        public let name: String
        /// The value; empty when there was no `=`.
        public let value: String

        /// An item.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// All items in their order.
    public private(set) var items: [Item]

    /// These items in this order.
    public init(_ items: [Item] = []) {
        self.items = items
    }

    /// The items of these pairs in this order.
    public init(_ pairs: KeyValuePairs<String, String>) {
        items = pairs.map { Item($0.key, $0.value) }
    }

    /// The values of all items called `name`.
    public subscript(all name: String) -> [String] {
        items.filter { $0.name.utf8.elementsEqual(name.utf8) }.map(\.value)
    }

    /// The value of the item called `name`; `nil` when there is none, and also when there are several.
    public subscript(name: String) -> String? {
        let values = self[all: name]
        return values.count == 1 ? values[0] : nil
    }

    /// The value of the item called `name`, or `nil` when there is none.
    ///
    /// - Throws: ``WireError`` with code `duplicate` when there are several.
    public func single(_ name: String) throws(WireError) -> String? {
        let values = self[all: name]
        guard values.count <= 1 else { throw WireError(.duplicate, "a parameter occurs \(values.count) times") }
        return values.first
    }

    /// The names that occur more than once, each reported once.
    public var duplicateNames: [String] {
        var counts: [[UInt8]: Int] = [:]
        return items.compactMap { item in
            counts[Array(item.name.utf8), default: 0] += 1
            return counts[Array(item.name.utf8)] == 2 ? item.name : nil
        }
    }

    /// Adds an item at the end.
    public mutating func append(_ name: String, _ value: String) {
        items.append(Item(name, value))
    }
}

extension FormItems: CustomStringConvertible {
    /// How many items there are. Not what they are: they may hold secrets, and descriptions reach logs.
    public var description: String { "\(items.count) form items" }
}

/// `application/x-www-form-urlencoded` (WHATWG URL §5, RFC 6749 appendix B).
public enum FormEncoding {
    /// The media type.
    public static let mediaType = "application/x-www-form-urlencoded"

    /// How much of a form is accepted.
    public struct Limits: Hashable, Sendable {
        /// The bytes of the encoded text.
        public var bytes: Int
        /// The number of items.
        public var items: Int

        /// Bounds; the defaults suit OAuth requests.
        public init(bytes: Int = 64 << 10, items: Int = 256) {
            self.bytes = bytes
            self.items = items
        }
    }

    /// The form's text. Everything but unreserved characters is percent-encoded, a space as `%20`, which every reader
    /// of forms and of query strings takes for a space.
    public static func encode(_ form: FormItems) -> String {
        form.items.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }
            .joined(separator: "&")
    }

    /// The text of a form made of these pairs.
    public static func encode(_ pairs: KeyValuePairs<String, String>) -> String {
        encode(FormItems(pairs))
    }

    /// Reads a form, strictly: only printable ASCII, whole escapes, UTF-8, no NUL. Empty elements are skipped.
    ///
    /// - Throws: ``WireError``: `tooLarge`, `tooMany`, `malformed`.
    public static func parse(_ bytes: [UInt8], limits: Limits = Limits()) throws(WireError) -> FormItems {
        guard bytes.count <= limits.bytes else {
            throw WireError(.tooLarge, "a form has more than \(limits.bytes) bytes")
        }
        guard let wrong = bytes.firstIndex(where: { $0 <= 0x20 || $0 >= 0x7F }) else {
            return try items(of: String(decoding: bytes, as: UTF8.self), limit: limits.items)
        }
        throw WireError(.malformed, "unexpected byte in a form at offset \(wrong)")
    }

    /// Reads a form's or a query's text. See ``parse(_:limits:)-([UInt8],_)``.
    public static func parse(_ text: String, limits: Limits = Limits()) throws(WireError) -> FormItems {
        try parse(Array(text.utf8), limits: limits)
    }

    private static func items(of text: String, limit: Int) throws(WireError) -> FormItems {
        var form = FormItems()
        for element in text.split(separator: "&") {
            guard form.items.count < limit else { throw WireError(.tooMany, "more than \(limit) form items") }
            let parts = element.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(parts[0]), let value = decode(parts.count > 1 ? parts[1] : "") else {
                throw WireError(.malformed, "a form item has a broken escape, bytes that are not UTF-8, or NUL")
            }
            form.append(name, value)
        }
        return form
    }

    private static func decode(_ text: Substring) -> String? {
        guard let decoded = PercentEncoding.decode(text, plusIsSpace: true), !decoded.utf8.contains(0) else {
            return nil
        }
        return decoded
    }
}
