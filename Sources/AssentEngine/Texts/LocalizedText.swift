package import AssentCore

/// A text, or one for each of several languages.
package struct LocalizedText: Sendable, Hashable, ExpressibleByStringInterpolation {
    /// The text where there is none for the language.
    package let fallback: String

    /// Texts by the language's tag, for example `de`.
    package let byLanguage: [String: String]

    /// A text.
    package init(_ fallback: String, byLanguage: [String: String] = [:]) {
        self.fallback = fallback
        self.byLanguage = byLanguage
    }

    /// A text that is the same in every language.
    package init(stringLiteral text: String) { self.init(text) }

    /// The text for a language tag: of the tag, of its language without a region, or the fallback.
    package func text(_ locale: String) -> String {
        byLanguage[locale] ?? byLanguage[String(locale.prefix { $0 != "-" })] ?? fallback
    }

    /// All texts.
    package var all: [String] { [fallback] + byLanguage.values }

    /// Whether a text is a language's tag as documents have it.
    static func isTag(_ text: String) -> Bool {
        (2...35).contains(text.utf8.count)
            && text.split(separator: "-", omittingEmptySubsequences: false).allSatisfy { part in
                !part.isEmpty && part.utf8.allSatisfy(\.isASCIIAlphanumeric)
            }
    }

    /// The language in which texts are shown together: the first of `wished` that one of them has, else English.
    static func language(of texts: [LocalizedText], wished: [String]) -> String {
        for wish in wished {
            for text in texts {
                if let tag = text.tag(wish) { return tag }
            }
        }
        return "en"
    }

    /// The tag under which there is a text for a wished one, in any case; `de-AT` is given `de`.
    private func tag(_ wish: String) -> String? {
        let wish = wish.lowercased()
        let language = wish.prefix { $0 != "-" }
        let tags = byLanguage.keys.sorted()
        return tags.first { $0.lowercased() == wish } ?? tags.first { $0.lowercased() == language }
    }

    /// One text as a text, several as an object with the languages in order.
    var json: JSONValue {
        guard !byLanguage.isEmpty else { return .string(fallback) }
        let texts = byLanguage.sorted { $0.key < $1.key }
        return .object(JSONObject(texts.map { .init(name: $0.key, value: .string($0.value)) }))
    }
}

extension SettingsReader {
    /// A text, or a mapping of texts by language, whose fallback is the one for `en`, or the first; `nil` when the key
    /// is missing.
    package func localizedText(_ key: String) -> LocalizedText? {
        guard let languages = json(key)?.object else { return optionalString(key).map { LocalizedText($0) } }
        var texts: [String: String] = [:]
        for member in languages.members { texts[member.name] = member.value.string }
        guard texts.count == languages.members.count, !texts.values.contains(""),
            let fallback = texts["en"] ?? languages.members.first?.value.string
        else {
            refuse(key, "must be a text, or texts by language")
            return nil
        }
        return LocalizedText(fallback, byLanguage: texts)
    }
}
