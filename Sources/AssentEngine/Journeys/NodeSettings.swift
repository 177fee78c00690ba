import AssentCore

/// A node's settings while it is made of them: what it asks for is known, what is left over or has the wrong form is an issue.
package struct NodeSettings {
    private let config: JSONObject
    private let catalog: NodeCatalog
    private let place: String
    private var known: Set<String> = []

    /// What is wrong, in the order in which it was found.
    package private(set) var issues: [String] = []

    init(_ config: JSONObject, catalog: NodeCatalog, place: String = "") {
        self.config = config
        self.catalog = catalog
        self.place = place
    }

    /// Notes that something is wrong.
    package mutating func issue(_ message: String) { issues.append(message) }

    /// A text that must be there, unless it has a default.
    package mutating func string(_ key: String, default fallback: String? = nil) -> String {
        guard let found = value(of: key) else {
            if fallback == nil { issue("\(place)\(key) is missing") }
            return fallback ?? ""
        }
        guard let text = found.string, !text.isEmpty else {
            issue("\(place)\(key) must be a text")
            return fallback ?? ""
        }
        return text
    }

    /// A text, or `nil` when there is none.
    package mutating func optionalString(_ key: String) -> String? {
        value(of: key) == nil ? nil : string(key)
    }

    /// A text to be shown: plain, or by language, of which English is taken, else the first.
    package mutating func text(_ key: String, default fallback: String? = nil) -> String {
        guard let languages = value(of: key)?.object else { return string(key, default: fallback) }
        guard !languages.members.isEmpty, languages.members.allSatisfy({ $0.value.string?.isEmpty == false }),
            let text = (languages["en"] ?? languages.members.first?.value)?.string
        else {
            issue("\(place)\(key) must be a text, or texts by language")
            return fallback ?? ""
        }
        return text
    }

    /// A text to be shown, or `nil` when there is none.
    package mutating func optionalText(_ key: String) -> String? {
        value(of: key) == nil ? nil : text(key)
    }

    /// A whole number.
    package mutating func integer(_ key: String, default value: Int, in range: ClosedRange<Int>) -> Int {
        optionalInteger(key, in: range) ?? value
    }

    /// A whole number, or `nil` when there is none.
    package mutating func optionalInteger(_ key: String, in range: ClosedRange<Int>) -> Int? {
        guard let found = value(of: key) else { return nil }
        guard let integer = found.integer.flatMap({ Int(exactly: $0) }), range.contains(integer) else {
            issue("\(place)\(key) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return integer
    }

    /// A truth value.
    package mutating func bool(_ key: String, default value: Bool) -> Bool {
        guard let found = self.value(of: key) else { return value }
        guard let bool = found.bool else {
            issue("\(place)\(key) must be true or false")
            return value
        }
        return bool
    }

    /// A list of texts.
    package mutating func strings(_ key: String) -> [String] {
        guard let found = value(of: key) else { return [] }
        guard let strings = found.strings, strings.allSatisfy({ !$0.isEmpty }) else {
            issue("\(place)\(key) must be a list of texts")
            return []
        }
        return strings
    }

    /// Texts by name.
    package mutating func stringsByName(_ key: String) -> [String: String] {
        guard let found = value(of: key) else { return [:] }
        guard let members = found.object?.members, members.allSatisfy({ $0.value.string != nil }) else {
            issue("\(place)\(key) must be a mapping of texts")
            return [:]
        }
        var strings: [String: String] = [:]
        for member in members { strings[member.name] = member.value.string }
        return strings
    }

    /// Nodes inside of this one: a list of mappings with `type` and the settings of that type.
    package mutating func nodes(_ key: String) -> [any JourneyNodeType] {
        guard let found = value(of: key) else {
            issue("\(place)\(key) is missing")
            return []
        }
        guard let elements = found.array, !elements.isEmpty else {
            issue("\(place)\(key) must be a list of nodes")
            return []
        }
        var nodes: [any JourneyNodeType] = []
        for (index, element) in elements.enumerated() {
            let place = "\(self.place)\(key)[\(index)]"
            guard var config = element.object, let type = config["type"]?.string else {
                issue("\(place) must be a mapping with a type")
                continue
            }
            config["type"] = nil
            let made = catalog.make(type, config: config, place: "\(place).")
            issues += made.issues
            if let node = made.node { nodes.append(node) }
        }
        return nodes
    }

    mutating func finish() {
        for name in config.names where !known.contains(name) {
            let list = known.sorted().joined(separator: ", ")
            issue("unknown key \(place)\(name); " + (list.isEmpty ? "this node has no settings" : "known: \(list)"))
        }
        for name in config.duplicateNames { issue("\(place)\(name) occurs twice") }
    }

    private mutating func value(of key: String) -> JSONValue? {
        known.insert(key)
        return config[key]
    }
}

/// The types of node that journeys may use.
package struct NodeCatalog: Sendable {
    private let types: [String: any JourneyNodeType.Type]

    /// The types that this server has.
    package static let standard = NodeCatalog([
        UsernameCollectorNode.self, PasswordCollectorNode.self, PageNode.self, ZeroPageLoginNode.self,
        DataStoreDecisionNode.self, AccountActiveDecisionNode.self, RetryLimitDecisionNode.self, MessageNode.self,
        ChoiceCollectorNode.self, OathTokenVerifierNode.self, TransactionApprovalNode.self, ModifyAuthLevelNode.self,
        SetSessionPropertiesNode.self,
    ])

    /// A catalog of these types.
    package init(_ types: [any JourneyNodeType.Type]) {
        var byName: [String: any JourneyNodeType.Type] = [:]
        for type in types { byName[type.name] = type }
        self.types = byName
    }

    /// The names of the types.
    package var names: [String] { types.keys.sorted() }

    func make(_ type: String, config: JSONObject, place: String) -> (node: (any JourneyNodeType)?, issues: [String]) {
        guard let found = types[type] else {
            return (nil, ["\(place)type: unknown node type \(type); known: \(names.joined(separator: ", "))"])
        }
        var settings = NodeSettings(config, catalog: self, place: place)
        let node = found.init(&settings)
        settings.finish()
        return (node, settings.issues)
    }
}
