import AssentCore

/// A line that the user is shown: what it is called, maybe in several languages, and the value as it was sent.
package struct DisplayLine: Sendable, Hashable {
    /// What it is called.
    package let label: LocalizedText

    /// The value.
    package let value: String

    /// A line.
    package init(label: LocalizedText, value: String) {
        self.label = label
        self.value = value
    }

    /// The line in one language.
    func field(in language: String) -> DisplayField { DisplayField(label: label.text(language), value: value) }

    /// The line as it is stored. Earlier versions read `label`.
    var json: JSONValue {
        var object: JSONObject = ["label": .string(label.fallback), "value": .string(value)]
        if !label.byLanguage.isEmpty { object["labels"] = label.json }
        return .object(object)
    }

    /// Reads what ``json`` has written.
    init(stored json: JSONValue) {
        var labels: [String: String] = [:]
        for member in json["labels"]?.object?.members ?? [] { labels[member.name] = member.value.string }
        self.init(
            label: LocalizedText(json["label"]?.string ?? "", byLanguage: labels), value: json["value"]?.string ?? "")
    }
}

/// What the user was first shown of a transaction, in the language that was chosen then. It stays so on every later
/// page, and is what a device signs.
package struct ShownLines: Sendable, Hashable {
    /// The language's tag.
    let language: String

    /// The lines.
    let fields: [DisplayField]

    /// What is shown to somebody with these wishes, the dearest first.
    init(_ lines: [DisplayLine], languages: [String]) {
        let texts = lines.isEmpty ? PendingApproval.unshownBody : lines.map(\.label)
        let language = LocalizedText.language(of: texts, wished: languages)
        self.language = language
        fields = lines.map { $0.field(in: language) }
    }

    /// As it is stored.
    var stored: String {
        JSONValue.object(["language": .string(language), "lines": .array(fields.map(\.json))]).serialized()
    }

    /// Reads what ``stored`` has written; `nil` for anything else.
    init?(stored text: String) {
        guard let json = try? JSONValue.parse(text), let language = json["language"]?.string,
            let lines = json["lines"]?.array
        else { return nil }
        self.language = language
        fields = lines.map { DisplayField(label: $0["label"]?.string ?? "", value: $0["value"]?.string ?? "") }
    }
}
