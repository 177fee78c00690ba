import Foundation
import HTTPTypes

/// A language of the hosted pages: what each English text is in it. What it does not have stays English.
struct PageLanguage: Sendable, Hashable {
    /// Its tag, for example `de` (RFC 5646).
    let tag: String

    private let table: [String: String]

    /// A language; the operator's own texts come before the ones that are built in.
    init(_ tag: String, _ texts: [String: String] = [:]) {
        self.tag = tag
        table = (tag == "de" ? Self.german : [:]).merging(texts) { _, own in own }
    }

    /// English, as it is built in.
    static let english = PageLanguage("en")

    /// A text of the pages' own.
    subscript(text: PageText) -> String { table[text.rawValue] ?? text.rawValue }

    /// A text of a journey, a policy or a scope.
    subscript(text: String) -> String { table[text] ?? text }

    /// A date as readers of the language write it, in UTC: a page without scripts does not know their own time.
    func text(_ date: Date, withTime: Bool) -> String {
        let locale = Locale(identifier: tag == "en" ? "en_GB" : tag)
        let style = Date.FormatStyle(
            date: .long, time: withTime ? .shortened : .omitted, locale: locale, timeZone: .gmt)
        return date.formatted(style) + (withTime ? " UTC" : "")
    }

    /// A text whose words in braces are filled in.
    func html(_ text: PageText, _ parts: [String: HTML]) -> HTML {
        var html: HTML = ""
        var rest = Substring(self[text])
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}"),
            let part = parts[String(rest[rest.index(after: open)..<close])]
        {
            html = "\(html)\(rest[..<open])\(part)"
            rest = rest[rest.index(after: close)...]
        }
        return "\(html)\(rest)"
    }

    /// The same as text.
    func text(_ text: PageText, _ parts: [String: String]) -> String {
        parts.reduce(self[text]) { $0.replacing("{\($1.key)}", with: $1.value) }
    }
}

/// The languages that there are, and which one a browser gets.
struct PageLanguages: Sendable, Hashable {
    private let languages: [String: PageLanguage]
    private let fallback: PageLanguage

    /// The languages that are looked at in what a browser asks for.
    private static let limit = 32

    /// English, German and what the operator adds; `fallback` is for browsers that ask for none of them.
    init(adding own: [String: [String: String]] = [:], fallback: String = "en") {
        var languages: [String: PageLanguage] = [:]
        for tag in Set(["en", "de"]).union(own.keys) { languages[tag] = PageLanguage(tag, own[tag] ?? [:]) }
        self.languages = languages
        self.fallback = languages[fallback] ?? .english
    }

    /// Whether there is one with this tag.
    func contains(_ tag: String) -> Bool { languages[tag] != nil }

    /// The first that there is of the tags in a list with spaces; `nil` when there is none of them.
    func language(wished list: String) -> PageLanguage? {
        list.split(separator: " ").prefix(Self.limit).lazy.compactMap { find($0.lowercased()) }.first
    }

    /// The language of a tag. `de-AT` is given `de`.
    private func find(_ tag: String) -> PageLanguage? {
        languages[tag] ?? languages[String(tag.prefix { $0 != "-" })]
    }

    /// The one that a browser asks for most (RFC 9110 §12.5.4).
    func language(for fields: HTTPFields) -> PageLanguage {
        let wished = AcceptedLanguages(fields).tags
        return wished.lazy.compactMap { $0 == "*" ? fallback : find($0) }.first ?? fallback
    }
}
