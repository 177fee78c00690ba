/// Reads a mapping of settings strictly. It knows which keys were asked for, so that ``finish()`` refuses the others: a
/// misspelled setting cannot silently fall back to a default.
///
/// Something wrong is noted with its place and reading goes on with a substitute, so that all mistakes are found at
/// once. Look at ``issues`` before you use what was read. A reader and the readers inside of it share their issues.
///
/// `Context` is what a kind of settings needs beside the values, for example the known types of node; `Void` for none.
package struct SettingsReader<Context> {
    /// Where the mapping stands, for example `tls` or `gateway.routes[0]`; empty for the outermost one.
    package let path: String

    /// What this kind of settings needs beside the values.
    package let context: Context

    private let members: [SettingsValue.Member]
    private let notes: Notes
    private let asked = AskedKeys()

    /// What was noted. It is shared by the readers of one file, which are used one after the other.
    private final class Notes {
        var issues: [SettingsIssue] = []
        var mappings: [Mapping] = []
    }

    private final class AskedKeys {
        var names: Set<String> = []
    }

    /// What one reader has, and what it was asked for so far.
    private struct Mapping {
        let path: String
        let names: [String]
        let asked: AskedKeys
    }

    /// A reader of `value`, which must be a mapping and stands at `path`.
    package init(_ value: SettingsValue, at path: String = "", context: Context) {
        self.init(value, at: path, context: context, notes: Notes())
    }

    private init(_ value: SettingsValue?, at path: String, context: Context, notes: Notes) {
        self.path = path
        self.context = context
        if case .mapping(let members) = value {
            self.members = members
            self.notes = notes
            notes.mappings.append(Mapping(path: path, names: members.map(\.name), asked: asked))
        } else {
            if value != nil { notes.issues.append(SettingsIssue(path: path, "must be a mapping")) }
            // That one issue is enough: not that everything in it is missing as well.
            members = []
            self.notes = Notes()
        }
    }

    /// Everything that was found wrong so far, here and in the readers that share this one's issues.
    package var issues: [SettingsIssue] { notes.issues }

    /// The first key in here, or in the readers that share this one's issues, that nobody has asked for and that is
    /// spelled like an asked one. Where reading ends because a key is missing, this is the cause.
    package var misspelling: SettingsIssue? {
        for mapping in notes.mappings {
            for name in mapping.names where !mapping.asked.names.contains(name) {
                guard let meant = mapping.asked.names.filter({ Self.isSpelled(name, like: $0) }).min() else { continue }
                return Self.misspelling(name, of: meant, in: mapping.path)
            }
        }
        return nil
    }

    /// All keys in their order. It counts as asking for each.
    package var keys: [String] {
        asked.names.formUnion(members.map(\.name))
        return members.map(\.name)
    }

    /// An issue with the value of `key`, or with all of the mapping, to be thrown.
    package func issue(_ key: String?, _ message: String) -> SettingsIssue {
        SettingsIssue(path: key.map { SettingsIssue.join(path, $0) } ?? path, message)
    }

    /// Notes that something is wrong with the value of `key`, or with all of the mapping.
    package func refuse(_ key: String?, _ message: String) {
        notes.issues.append(issue(key, message))
    }

    /// Accepts keys without reading them.
    package func ignore(_ keys: String...) { asked.names.formUnion(keys) }

    /// Notes the keys that were never asked for, and those that occur twice.
    package func finish() {
        var seen: Set<String> = []
        for member in members {
            if !seen.insert(member.name).inserted { refuse(member.name, "occurs twice") }
            guard !asked.names.contains(member.name) else { continue }
            if let meant = asked.names.filter({ Self.isSpelled(member.name, like: $0) }).min() {
                refuseMisspelling(member.name, of: meant)
                continue
            }
            let known = asked.names.sorted().joined(separator: ", ")
            refuse(member.name, "unknown key; " + (known.isEmpty ? "no settings belong here" : "known here: \(known)"))
        }
    }

    /// Notes that a key is missing. If the file has one that differs only in case, hyphens or underscores, that one is
    /// noted instead: it is the mistake, and its line is known.
    private func refuseMissing(_ key: String) {
        guard let other = members.first(where: { Self.isSpelled($0.name, like: key) }) else {
            return refuse(key, "is missing")
        }
        refuseMisspelling(other.name, of: key)
    }

    /// Notes that a key is misspelled, and how it is written. The same issue is noted once.
    private func refuseMisspelling(_ name: String, of key: String) {
        let misspelling = Self.misspelling(name, of: key, in: path)
        if !notes.issues.contains(misspelling) { notes.issues.append(misspelling) }
    }

    private static func misspelling(_ name: String, of key: String, in path: String) -> SettingsIssue {
        SettingsIssue(path: SettingsIssue.join(path, name), "unknown key; write \(key)")
    }

    private static func isSpelled(_ name: String, like key: String) -> Bool {
        func letters(_ text: String) -> String { text.lowercased().filter { $0 != "-" && $0 != "_" } }
        return letters(name) == letters(key)
    }

    // MARK: - Values

    /// Whether the key is there, whatever its value is.
    package func has(_ key: String) -> Bool { value(of: key) != nil }

    /// A text; `nil` when the key is missing.
    package func optionalString(_ key: String) -> String? {
        guard let found = value(of: key) else { return nil }
        if let text = found.text { return text }
        refuse(key, "must be a text")
        return nil
    }

    /// A text that must be there, unless it has a default.
    package func string(_ key: String, default fallback: String? = nil) -> String {
        guard has(key) else {
            if fallback == nil { refuseMissing(key) }
            return fallback ?? ""
        }
        return optionalString(key) ?? fallback ?? ""
    }

    /// A truth value; `nil` when the key is missing.
    package func optionalBool(_ key: String) -> Bool? {
        guard let found = value(of: key) else { return nil }
        if let value = found.json.bool { return value }
        refuse(key, "must be true or false")
        return nil
    }

    /// A truth value.
    package func bool(_ key: String, default fallback: Bool) -> Bool { optionalBool(key) ?? fallback }

    /// A whole number; `nil` when the key is missing.
    package func optionalInteger(_ key: String, in range: ClosedRange<Int>) -> Int? {
        guard let found = value(of: key) else { return nil }
        if let value = found.json.integer.flatMap({ Int(exactly: $0) }), range.contains(value) { return value }
        refuse(key, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        return nil
    }

    /// A whole number.
    package func integer(_ key: String, default fallback: Int, in range: ClosedRange<Int>) -> Int {
        optionalInteger(key, in: range) ?? fallback
    }

    /// A list of texts; `nil` when the key is missing.
    package func optionalStrings(_ key: String, allowingEmpty: Bool = false) -> [String]? {
        guard let found = value(of: key) else { return nil }
        if case .list(let elements) = found {
            let texts = elements.compactMap { $0.text ?? (allowingEmpty ? $0.json.string : nil) }
            if texts.count == elements.count { return texts }
        }
        refuse(key, "must be a list of texts")
        return []
    }

    /// A list of texts; empty when the key is missing.
    package func strings(_ key: String) -> [String] { optionalStrings(key) ?? [] }

    /// Texts by name; empty when the key is missing.
    package func stringsByName(_ key: String) -> [String: String] {
        guard let found = value(of: key) else { return [:] }
        var texts: [String: String] = [:]
        guard case .mapping(let members) = found else {
            refuse(key, "must be a mapping of texts")
            return [:]
        }
        for member in members {
            guard case .scalar(_, let text?) = member.value else {
                refuse(key, "must be a mapping of texts")
                return [:]
            }
            texts[member.name] = text
        }
        return texts
    }

    /// A value of any shape as JSON, for settings that another part understands; `nil` when the key is missing.
    package func json(_ key: String) -> JSONValue? { value(of: key)?.json }

    // MARK: - Readers inside of this one

    /// A mapping; `nil` when the key is missing.
    package func optionalMapping(_ key: String) -> SettingsReader? {
        guard let found = value(of: key) else { return nil }
        return SettingsReader(found, at: SettingsIssue.join(path, key), context: context, notes: notes)
    }

    /// A mapping that must be there.
    package func mapping(_ key: String) -> SettingsReader {
        if let reader = optionalMapping(key) { return reader }
        refuseMissing(key)
        return SettingsReader(nil, at: SettingsIssue.join(path, key), context: context, notes: notes)
    }

    /// The mappings under a mapping's keys, in their order.
    package func mappings(_ key: String) -> [(key: String, value: SettingsReader)] {
        guard let outer = optionalMapping(key) else { return [] }
        return outer.keys.map { ($0, outer.mapping($0)) }
    }

    /// The mappings of a list.
    package func list(_ key: String) -> [SettingsReader] {
        guard let found = value(of: key) else { return [] }
        guard case .list(let elements) = found else {
            refuse(key, "must be a list")
            return []
        }
        let place = SettingsIssue.join(path, key)
        return elements.enumerated().map {
            SettingsReader($1, at: "\(place)[\($0)]", context: context, notes: notes)
        }
    }

    private func value(of key: String) -> SettingsValue? {
        asked.names.insert(key)
        return members.first { $0.name == key }?.value
    }
}

extension SettingsReader<Void> {
    /// A reader of settings that need nothing beside their values.
    package init(_ value: SettingsValue, at path: String = "") {
        self.init(value, at: path, context: ())
    }
}
