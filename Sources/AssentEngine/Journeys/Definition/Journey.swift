package import AssentCore

/// A journey that can run: its definition without issues, its nodes made.
package struct Journey: Sendable {
    /// What the operator wrote.
    package let definition: JourneyDefinition

    let nodes: [String: any RunnableNode]

    /// Makes the nodes.
    ///
    /// - Throws: the first issue of ``JourneyDefinition/validate(_:)``.
    package init(_ definition: JourneyDefinition, catalog: NodeCatalog = .standard) throws(SettingsIssue) {
        let (nodes, issues) = definition.made(catalog)
        if let issue = issues.first { throw issue }
        self.definition = definition
        self.nodes = nodes
    }
}

extension JourneyDefinition {
    /// Everything that keeps the journey from running as it is written, with paths such as `nodes.code.config.prompt`;
    /// empty when nothing does.
    package func validate(_ catalog: NodeCatalog = .standard) -> [SettingsIssue] {
        made(catalog).issues
    }

    /// Whether nobody comes to its success without a code of an authenticator. A code of a signing device is another.
    package var needsAuthenticator: Bool {
        var withoutCodes = self
        for (id, node) in nodes where Self.asksForCode(node) {
            withoutCodes.nodes[id]?.outcomes["successOutcome"] = .failure
        }
        return !withoutCodes.leadsToSuccess
    }

    /// Also as the last node of a page, which has that one's outcomes.
    private static func asksForCode(_ node: NodeDefinition) -> Bool {
        [node.type, node.config["nodes"]?.array?.last?["type"]?.string].contains(OathTokenVerifierNode.name)
    }

    fileprivate func made(_ catalog: NodeCatalog) -> (nodes: [String: any RunnableNode], issues: [SettingsIssue]) {
        var issues: [SettingsIssue] = []
        if name.isEmpty || name.utf8.count > 100 || name.contains(where: { "<>|:&\"".contains($0) || $0.isNewline }) {
            issues.append(SettingsIssue(path: "", "a journey's name is a text without any of < > | : & \""))
        }
        if !(10...86_400).contains(timeout) {
            issues.append(SettingsIssue(path: "timeoutSeconds", "must be from 10 to 86400 seconds"))
        }
        if !(0...1_000).contains(authLevel) {
            issues.append(SettingsIssue(path: "authLevel", "must be from 0 to 1000"))
        }
        if nodes[entry] == nil {
            issues.append(SettingsIssue(path: "entry", entry.isEmpty ? "is missing" : "there is no node \(entry)"))
        }
        var made: [String: any RunnableNode] = [:]
        for (id, node) in nodes.sorted(by: { $0.key < $1.key }) {
            if id.isEmpty || JourneyTarget(id) != .node(id) {
                issues.append(SettingsIssue(path: "nodes.\(id)", "a node cannot be called \"\(id)\""))
            }
            let settings = NodeSettings(
                SettingsValue(.object(node.config)), at: "nodes.\(id).config", context: catalog)
            if let type = catalog.make(node.type, settings) {
                made[id] = type
                if settings.issues.isEmpty { issues += check(node, id: id, outcomes: type.outcomes) }
            } else {
                issues.append(SettingsIssue(path: "nodes.\(id).type", catalog.unknown(node.type)))
            }
            issues += settings.issues
            issues += missingTargets(of: node, id: id)
        }
        if nodes[entry] != nil {
            let reached = reachable()
            for id in nodes.keys.sorted() where !reached.contains(id) {
                issues.append(SettingsIssue(path: "nodes.\(id)", "no way leads to this node"))
            }
            if !leadsToSuccess {
                issues.append(SettingsIssue(path: "entry", "no way leads to success"))
            }
        }
        return (made, issues)
    }

    private func check(_ node: NodeDefinition, id: String, outcomes: [String]) -> [SettingsIssue] {
        var issues: [SettingsIssue] = []
        for outcome in outcomes where node.outcomes[outcome] == nil {
            issues.append(SettingsIssue(path: "nodes.\(id)", "the outcome \(outcome) leads nowhere"))
        }
        for outcome in node.outcomes.keys.sorted() where !outcomes.contains(outcome) {
            let list = outcomes.joined(separator: ", ")
            issues.append(SettingsIssue(path: "nodes.\(id)", "\(node.type) has no outcome \(outcome); it has: \(list)"))
        }
        return issues
    }

    private func missingTargets(of node: NodeDefinition, id: String) -> [SettingsIssue] {
        node.outcomes.sorted { $0.key < $1.key }.compactMap { outcome, target in
            guard case .node(let next) = target, nodes[next] == nil else { return nil }
            return SettingsIssue(
                path: "nodes.\(id)", "the outcome \(outcome) leads to \(next), which is not a node of the journey")
        }
    }

    private var leadsToSuccess: Bool {
        let reached = reachable()
        return nodes.contains { reached.contains($0.key) && $0.value.outcomes.values.contains(.success) }
    }

    private func reachable() -> Set<String> {
        var reached: Set<String> = [entry]
        var open = [entry]
        while let id = open.popLast() {
            for case .node(let next) in nodes[id].map({ Array($0.outcomes.values) }) ?? []
            where reached.insert(next).inserted {
                open.append(next)
            }
        }
        return reached
    }
}
