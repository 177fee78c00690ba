import AssentCore
package import AssentSigningProtocol

/// How the server makes a document from what somebody asks for. Who asks names a template, and never writes what is
/// shown.
package struct SigningTemplate: Sendable, Hashable {
    /// A typed value, and where it is taken from.
    package struct Field: Sendable, Hashable {
        /// Its name, by which texts refer to it.
        package let id: String
        /// What the user sees before the value.
        package let label: LocalizedText
        /// What kind of value it is.
        package let type: FieldType
        /// A JSON Pointer (RFC 6901) into what was asked for.
        package let pointer: String

        package init(id: String, label: LocalizedText, type: FieldType, pointer: String) {
            (self.id, self.label, self.type, self.pointer) = (id, label, type, pointer)
        }
    }

    /// What the user can answer.
    package struct Status: Sendable, Hashable {
        package let name: String
        package let label: LocalizedText
        package let effect: DecisionEffect
        /// The labels of the keys that may sign it; empty: all that may by their usage.
        package let keys: [String]
        /// Whether the user may or must give a reason.
        package let reason: ReasonRule

        package init(
            name: String, label: LocalizedText, effect: DecisionEffect, keys: [String] = [],
            reason: ReasonRule = .none
        ) {
            (self.name, self.label, self.effect, self.keys, self.reason) = (name, label, effect, keys, reason)
        }
    }

    package var kind: DocumentKind
    package var title: LocalizedText
    /// What is asked; `{id}` stands for a field's value as it is shown.
    package var text: LocalizedText?
    package var warning: LocalizedText?
    /// For how many seconds it is open.
    package var lifetime: Int64
    /// Whether the user must type a number.
    package var matchesNumber: Bool
    package var fields: [Field]
    /// What is not shown of what is asked for, as JSON Pointers. Whatever is neither here nor in ``fields`` is refused.
    package var notShown: [String]
    package var statuses: [Status]

    package init(
        kind: DocumentKind = .transaction, title: LocalizedText, text: LocalizedText? = nil,
        warning: LocalizedText? = nil, lifetime: Int64 = 180, matchesNumber: Bool = false, fields: [Field] = [],
        notShown: [String] = [], statuses: [Status] = SigningTemplate.standardStatuses
    ) {
        (self.kind, self.title, self.text, self.warning, self.lifetime) = (kind, title, text, warning, lifetime)
        (self.matchesNumber, self.fields, self.notShown, self.statuses) = (matchesNumber, fields, notShown, statuses)
    }

    /// The places of ``notShown``.
    package var leftOut: [ContentPointer] { notShown.compactMap(ContentPointer.init(leftOut:)) }

    /// What the user can answer where a template says nothing else.
    package static let standardStatuses = [
        Status(name: "accept", label: LocalizedText("Approve"), effect: .approve),
        Status(name: "deny", label: LocalizedText("Decline"), effect: .deny),
        Status(name: "report", label: LocalizedText("That was not me"), effect: .report, reason: .optional),
    ]

    /// What is wrong with it, one sentence each; empty when nothing is.
    package func faults(keys: [OfferedKey]) -> [String] {
        var faults: [String] = []
        if !(10...3600).contains(lifetime) { faults.append("a transaction is open for 10 to 3600 seconds") }
        if kind == .record { faults.append("only devices begin a record") }
        let ids = fields.map(\.id)
        if fields.count > 16 || Set(ids).count != ids.count || !ids.allSatisfy(SigningLabel.isValid) {
            faults.append("it has at most 16 fields, each with a name of its own of a–z, 0–9 and -")
        }
        if notShown.count > TransactionDisplay.maximumLeftOut
            || !notShown.allSatisfy({ ContentPointer(leftOut: $0)?.isInBody == true })
        {
            faults.append(
                "notShown has at most \(TransactionDisplay.maximumLeftOut) JSON Pointers, for example /0/type")
        }
        for each in title.all where !Self.isShowable(each, 100) {
            faults.append(Self.rule("a title", 100))
        }
        for label in fields.flatMap(\.label.all) where !Self.isShowable(label, 40) {
            faults.append(Self.rule("a field's label", 40))
        }
        return faults + textFaults() + statusFaults(keys: keys)
    }

    private func textFaults() -> [String] {
        var faults: [String] = []
        // What a value reads as is known when something is asked for; it has a character at least.
        let shortest = fields.map { DocumentField(id: $0.id, label: "x", value: .text("x")) }
        for (texts, what, limit) in [(text, "a text", 1000), (warning, "a warning", 200)] {
            for text in texts?.all ?? [] {
                for name in Self.placeholders(of: text) where !fields.contains(where: { $0.id == name }) {
                    faults.append("{\(name)} is not one of its fields")
                }
                if !Self.isShowable(Self.filled(text, shortest), limit) { faults.append(Self.rule(what, limit)) }
            }
        }
        return faults
    }

    private func statusFaults(keys: [OfferedKey]) -> [String] {
        var faults: [String] = []
        let names = statuses.map(\.name)
        if !(2...8).contains(statuses.count) || Set(names).count != names.count
            || !names.allSatisfy(SigningLabel.isValid)
        {
            faults.append("it has 2 to 8 statuses, each with a name of its own of a–z, 0–9 and -")
        }
        for label in statuses.flatMap(\.label.all) where !Self.isShowable(label, 40) {
            faults.append(Self.rule("a status' label", 40))
        }
        let locales = Set(statuses.flatMap(\.label.byLanguage.keys)).union(["en"])
        for locale in locales {
            let labels = statuses.map { NameFolding.fold($0.label.text(locale)) }
            if Set(labels).count != labels.count {
                faults.append("two statuses have the same label, or labels that look alike (\(locale))")
            }
        }
        func count(_ effect: DecisionEffect) -> Int { statuses.count { $0.effect == effect } }
        if count(.approve) == 0 || count(.deny) == 0 { faults.append("a user must be able to approve and to deny") }
        if count(.cancel) > 1 { faults.append("at most one status cancels") }
        let usable = keys.filter { $0.usage == kind.approvingUsage }.map(\.label)
        for status in statuses where status.effect == .approve {
            if usable.isEmpty || !status.keys.allSatisfy(usable.contains) {
                faults.append("\(status.name) needs keys of usage \(kind.approvingUsage.rawValue) that devices have")
            }
        }
        return faults
    }

    static func isShowable(_ text: String, _ limit: Int) -> Bool {
        (try? ShownText.check(text, 1...limit, at: "text")) != nil
    }

    /// What ``isShowable(_:_:)`` asks, as a sentence about a text that breaks it.
    static func rule(_ text: String, _ limit: Int) -> String {
        "\(text) has 1 to \(limit) characters, none of which is a control character or changes the direction of text"
    }

    /// The names in braces in a text.
    static func placeholders(of text: String) -> [String] {
        text.split(separator: "{", omittingEmptySubsequences: false).dropFirst()
            .compactMap { part in part.firstIndex(of: "}").map { String(part[..<$0]) } }
    }

    /// A text with each `{id}` replaced by what is shown of that field. What is put in is not read again.
    static func filled(_ text: String, _ fields: [DocumentField]) -> String {
        var result = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            result += rest[..<open]
            let name = rest[rest.index(after: open)..<close]
            let value = fields.first { $0.id.utf8.elementsEqual(name.utf8) }?.display
            result += value ?? String(rest[open...close])
            rest = rest[rest.index(after: close)...]
        }
        return result + rest
    }
}
