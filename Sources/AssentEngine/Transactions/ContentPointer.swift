import AssentCore

/// Where a value stands in what is asked for: in the body, or in the query.
package struct ContentPointer: Sendable, Hashable {
    /// A part of a request that has names and values.
    enum Part: Sendable, Hashable {
        case body, query
    }

    let part: Part

    /// The names and numbers on the way to it; empty for the whole part.
    let tokens: [String]

    /// A JSON Pointer (RFC 6901) into a body; the empty text is the whole body.
    init(json text: String) {
        part = .body
        tokens = text.isEmpty ? [] : Self.tokens(text)
    }

    /// What a line to be shown names: a JSON Pointer, `?name` for a parameter of the query, or the name of a member of
    /// the outermost object.
    init(field text: String) {
        if text.hasPrefix("?") {
            part = .query
            tokens = [String(text.dropFirst())]
        } else {
            part = .body
            tokens = text.hasPrefix("/") ? Self.tokens(text) : [text]
        }
    }

    /// What is left out by name: a JSON Pointer, in which `*` is each element of a list, or `?name`. `/` is the whole
    /// body, and `?` the whole query. `nil` for any other text.
    package init?(leftOut text: String) {
        guard let first = text.first, first == "/" || first == "?" else { return nil }
        part = first == "/" ? .body : .query
        if text.utf8.count == 1 {
            tokens = []
        } else {
            tokens = part == .body ? Self.tokens(text) : [String(text.dropFirst())]
        }
    }

    /// The list that a line is shown for each element of: as ``init(leftOut:)``, but neither a pattern nor a whole
    /// query.
    init?(list text: String) {
        guard let pointer = ContentPointer(leftOut: text), pointer.isInBody || !pointer.isWhole else { return nil }
        self = pointer
    }

    /// A place in a part.
    init(_ part: Part, _ tokens: [String]) {
        self.part = part
        self.tokens = tokens
    }

    /// An element of the list that is here.
    func element(_ index: Int) -> ContentPointer { ContentPointer(part, tokens + ["\(index)"]) }

    /// What a line names below here; the empty text is what is here.
    func appending(field: String) -> ContentPointer {
        field.isEmpty ? self : ContentPointer(part, tokens + ContentPointer(field: field).tokens)
    }

    /// As a JSON Pointer, or with the question mark of a query.
    var text: String {
        let names = tokens.map { $0.replacing("~", with: "~0").replacing("/", with: "~1") }
        return part == .query ? "?" + tokens.joined(separator: "/") : names.map { "/" + $0 }.joined()
    }

    /// Whether it is a whole body, or a whole query.
    package var isWhole: Bool { tokens.isEmpty }

    /// Whether it points into a body.
    var isInBody: Bool { part == .body }

    private static func tokens(_ pointer: String) -> [String] {
        pointer.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
            .map { String($0).replacing("~1", with: "/").replacing("~0", with: "~") }
    }
}
