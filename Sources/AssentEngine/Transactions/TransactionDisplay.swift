import AssentCore

/// Makes what the user is shown out of the request's own body.
enum TransactionDisplay {
    /// The most lines that a policy may show.
    static let maximumLines = 16

    /// The longest label, in characters.
    static let maximumLabel = 40

    /// The longest value, in characters.
    static let maximumValue = 200

    /// How much JSON a body to be shown may be.
    static let limits = JSONLimits(bytes: 256 << 10, depth: 16, values: 10_000)

    /// The lines that `rules` ask for.
    ///
    /// - Throws: ``EngineError``: `tooLarge`, `unsupportedMediaType` for a body that is not JSON by its media type,
    ///   `invalidRequest` for one that cannot be shown as it is: broken, ambiguous, a field missing, or one with
    ///   characters that could mislead.
    static func render(_ rules: [DisplayRule], of content: RequestContent?) throws(EngineError) -> [DisplayField] {
        guard !rules.isEmpty else { return [] }
        guard let bytes = content?.body, content?.mediaType.flatMap(BoundMediaType.init)?.isJSON == true else {
            throw BoundMediaType.refusal(of: "application/json")
        }
        let body = try BoundJSON.parse(bytes, limits: limits)
        var lines: [DisplayField] = []
        for rule in rules {
            var value = try text(rule.field, in: body)
            if let suffix = rule.suffix { value += " " + (try text(suffix, in: body)) }
            // More than this no client shows.
            guard isShowable(value, limit: DisplayText.defaultLimit) else { throw unshowable(rule.field) }
            lines.append(DisplayField(label: rule.label, value: value))
        }
        return lines
    }

    /// Whether `label` can be shown.
    static func isLabel(_ label: String) -> Bool { isShowable(label, limit: maximumLabel) }

    private static func text(_ field: String, in body: JSONValue) throws(EngineError) -> String {
        let text: String? =
            switch value(field, in: body) {
            case .string(let text): text
            case .number(let number): number.description
            case .bool(let value): value ? "true" : "false"
            default: nil
            }
        guard let text else {
            throw .invalidRequest(
                "The request cannot be shown for approval: \(field) is missing, or not a single value.")
        }
        guard isShowable(text, limit: maximumValue) else { throw unshowable(field) }
        return text
    }

    private static func unshowable(_ field: String) -> EngineError {
        .invalidRequest(
            "The request cannot be shown for approval: \(field) is empty, too long or has forbidden characters.")
    }

    /// The value at a JSON Pointer (RFC 6901), or of a member of the outermost object.
    static func value(_ field: String, in body: JSONValue) -> JSONValue? {
        guard field.hasPrefix("/") else { return body[field] }
        var current = body
        for token in field.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            let name = String(token.replacing("~1", with: "/").replacing("~0", with: "~"))
            let next: JSONValue? =
                if let elements = current.array {
                    element(name, of: elements)
                } else {
                    current[name]
                }
            guard let next else { return nil }
            current = next
        }
        return current
    }

    private static func element(_ name: String, of elements: [JSONValue]) -> JSONValue? {
        guard let index = Int(name), name == "\(index)", elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// Not blank, and nothing in it that a screen would obey instead of show.
    private static func isShowable(_ text: String, limit: Int) -> Bool {
        guard let shown = try? DisplayText(text, limit: limit) else { return false }
        return shown.text.unicodeScalars.contains { !$0.properties.isWhitespace }
    }
}
