import AssentCore

/// The types of node that journeys may use.
package struct NodeCatalog: Sendable {
    private let types: [String: any RunnableNode.Type]

    /// The types that this server has.
    package static let standard = NodeCatalog([
        UsernameCollectorNode.self, PasswordCollectorNode.self, PageNode.self, ZeroPageLoginNode.self,
        DataStoreDecisionNode.self, AccountActiveDecisionNode.self, RetryLimitDecisionNode.self, MessageNode.self,
        ChoiceCollectorNode.self, OathTokenVerifierNode.self, TransactionApprovalNode.self, SignTransactionNode.self,
        DeviceCodeVerifierNode.self,
        ModifyAuthLevelNode.self, SetSessionPropertiesNode.self,
    ])

    /// A catalog of these types.
    package init(_ types: [any RunnableNode.Type]) {
        var byName: [String: any RunnableNode.Type] = [:]
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
    func make(_ type: String, _ settings: NodeSettings) -> (any RunnableNode)? {
        guard let node = types[type]?.init(settings) else { return nil }
        settings.finish()
        return node
    }
}
