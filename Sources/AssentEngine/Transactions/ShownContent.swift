import AssentCore

/// What is asked for, as its user can see it: the members of a body and the parameters of a query.
///
/// This is the one place that says whether a user sees all of it. A service acts on every member that it knows, so
/// that one that is neither shown nor left out by name would be approved unseen.
struct ShownContent {
    /// How much a body to be shown may be.
    static let limits = JSONLimits(bytes: 256 << 10, depth: 16, values: 10_000)

    private static let formLimits = FormEncoding.Limits(bytes: limits.bytes, items: 256)

    private let body: JSONValue
    private let query: JSONValue
    private let isForm: Bool

    /// What is shown of a document that is not a request.
    init(details: JSONValue) {
        body = details
        isForm = false
        query = .object(JSONObject())
    }

    /// What can be shown of a request's body and query.
    ///
    /// - Parameters:
    ///   - shown: the body.
    ///   - query: the query as it is forwarded.
    ///   - needsBody: whether something in the body is to be shown.
    /// - Throws: ``EngineError``: what ``ShownBody/value(isNeeded:)`` throws; `invalidRequest` for a query that two
    ///   programs could read differently.
    init(_ shown: ShownBody, query: String?, needsBody: Bool) throws(EngineError) {
        isForm = shown.isForm
        body = try shown.value(isNeeded: needsBody)
        self.query =
            try query.map { query throws(EngineError) in
                try Self.parameters(query, of: "query")
            } ?? .object(JSONObject())
    }

    /// The value there; `nil` when there is none.
    func value(at pointer: ContentPointer) -> JSONValue? {
        var current = pointer.part == .body ? body : query
        for token in pointer.tokens {
            let next =
                if let elements = current.array { Self.element(token, of: elements) } else { current[token] }
            guard let next else { return nil }
            current = next
        }
        return current
    }

    /// The elements of the list there; `nil` when there is none, or an empty one. A parameter of a form or a query that
    /// comes once is a list of one.
    func elements(at list: ContentPointer) -> [ContentPointer]? {
        switch value(at: list) {
        case .array(let elements) where !elements.isEmpty: elements.indices.map(list.element)
        case .string where isForm || !list.isInBody: [list]
        default: nil
        }
    }

    /// The first place that the user does not see: neither shown nor left out, nor below such a place; `nil` when the
    /// user sees all.
    func firstUnseen(shown: [ContentPointer], leftOut: [ContentPointer]) -> String? {
        func rules(_ part: ContentPointer.Part) -> [Rule] {
            shown.filter { $0.part == part }.map { Rule(rest: $0.tokens[...], isPattern: false) }
                + leftOut.filter { $0.part == part }.map { Rule(rest: $0.tokens[...], isPattern: true) }
        }
        if let place = Self.unseen(body, at: [], rules(.body)) {
            let pointer = ContentPointer(.body, place).text
            return pointer.isEmpty ? "the body" : Self.printable(pointer)
        }
        return Self.unseen(query, at: [], rules(.query)).map { Self.printable("?" + ($0.first ?? "")) }
    }

    /// One thing that is covered, as far as the way to it is not yet gone.
    private struct Rule {
        var rest: ArraySlice<String>
        /// Whether `*` is each element of a list.
        let isPattern: Bool

        func stepped(into name: String) -> Rule? {
            guard let first = rest.first, first.utf8.elementsEqual(name.utf8) else { return nil }
            return Rule(rest: rest.dropFirst(), isPattern: isPattern)
        }

        func stepped(into index: Int) -> Rule? {
            guard let first = rest.first, first == "\(index)" || isPattern && first == "*" else { return nil }
            return Rule(rest: rest.dropFirst(), isPattern: isPattern)
        }
    }

    private static func unseen(_ value: JSONValue, at place: [String], _ rules: [Rule]) -> [String]? {
        if rules.contains(where: \.rest.isEmpty) { return nil }
        // Below here nothing is covered. Of the whole, the first member says more.
        if rules.isEmpty, !place.isEmpty { return place }
        switch value {
        case .object(let object):
            for member in object.members {
                let deeper = rules.compactMap { $0.stepped(into: member.name) }
                if let found = unseen(member.value, at: place + [member.name], deeper) { return found }
            }
            return object.members.isEmpty && !place.isEmpty ? place : nil
        case .array(let elements):
            for (index, element) in elements.enumerated() {
                let deeper = rules.compactMap { $0.stepped(into: index) }
                if let found = unseen(element, at: place + ["\(index)"], deeper) { return found }
            }
            return elements.isEmpty && !place.isEmpty ? place : nil
        default: return place
        }
    }

    private static func element(_ token: String, of elements: [JSONValue]) -> JSONValue? {
        guard let index = Int(token), token == "\(index)", elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// A place that a client has named, short and as it can be printed.
    private static func printable(_ place: String) -> String {
        let start = place.unicodeScalars.prefix(80)
        let text = DisplayText.escapedForTerminal(String(start))
        return start.endIndex < place.unicodeScalars.endIndex ? text + "…" : text
    }

    /// A form's or a query's parameters as members; the values of one that comes several times as a list.
    static func parameters(_ text: String, of part: String) throws(EngineError) -> JSONValue {
        func refusal(_ why: String) -> EngineError {
            .invalidRequest("The request's \(part) cannot be shown for approval. \(why)")
        }
        // Some programs take it for another `&`.
        guard !text.utf8.contains(UInt8(ascii: ";")) else { throw refusal("It has a semicolon that is not escaped.") }
        let items: FormItems
        do {
            items = try FormEncoding.parse(text, limits: formLimits)
        } catch {
            throw refusal("It is not a form that all programs read in the same way: \(error.detail)")
        }
        var object = JSONObject()
        var names: [String: String] = [:]
        for item in items.items {
            guard !item.name.isEmpty, !item.name.unicodeScalars.contains(where: BoundJSON.isControl) else {
                throw refusal("A parameter has no name, or one with a control character.")
            }
            let other = names.updateValue(item.name, forKey: NameFolding.fold(item.name))
            guard other.map({ $0.utf8.elementsEqual(item.name.utf8) }) ?? true else {
                throw refusal("Two parameters have names that some programs take for one.")
            }
            switch object[item.name] {
            case nil: object[item.name] = .string(item.value)
            case .array(let values): object[item.name] = .array(values + [.string(item.value)])
            case .some(let value): object[item.name] = .array([value, .string(item.value)])
            }
        }
        return .object(object)
    }
}
