package import AssentCore

/// The settings of a node, read with the types of node that may stand inside of it. Whatever is wrong is noted in them.
package typealias NodeSettings = SettingsReader<NodeCatalog>

extension SettingsReader<NodeCatalog> {
    /// A text to be shown: plain, or by language, of which English is taken, else the first.
    package func text(_ key: String, default fallback: String? = nil) -> String {
        guard let languages = json(key)?.object else { return string(key, default: fallback) }
        guard !languages.members.isEmpty, languages.members.allSatisfy({ $0.value.string?.isEmpty == false }),
            let text = (languages["en"] ?? languages.members.first?.value)?.string
        else {
            refuse(key, "must be a text, or texts by language")
            return fallback ?? ""
        }
        return text
    }

    /// A text to be shown, or `nil` when there is none.
    package func optionalText(_ key: String) -> String? { has(key) ? text(key) : nil }

    /// Nodes inside of this one: a list of mappings with `type` and the settings of that type.
    package func nodes(_ key: String) -> [any JourneyNodeType] {
        guard has(key) else {
            refuse(key, "is missing")
            return []
        }
        let readers = list(key)
        if json(key)?.array?.isEmpty == true { refuse(key, "must be a list of nodes") }
        return readers.compactMap { reader in
            let type = reader.string("type")
            if !type.isEmpty, !context.has(type) { reader.refuse("type", context.unknown(type)) }
            return context.make(type, reader)
        }
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

    func has(_ type: String) -> Bool { types[type] != nil }

    /// What to say of a type that is not here.
    func unknown(_ type: String) -> String {
        "unknown node type \(type); known: \(names.joined(separator: ", "))"
    }

    /// Makes a node of its settings, and notes in them what is wrong; `nil` when there is no such type.
    func make(_ type: String, _ settings: NodeSettings) -> (any JourneyNodeType)? {
        guard let node = types[type]?.init(settings) else { return nil }
        settings.finish()
        return node
    }
}
