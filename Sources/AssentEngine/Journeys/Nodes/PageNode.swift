import AssentCore

/// Shows several nodes as one page. Only the last of them may have more than one outcome, and the page has its
/// outcomes.
struct PageNode: RunnableNode {
    static let name = "PageNode"
    let outcomes: [String]
    private let presentation: PagePresentation
    private let nodes: [any RunnableNode]

    init(_ settings: NodeSettings) {
        nodes = settings.nodes("nodes")
        presentation = PagePresentation(
            stage: settings.optionalString("stage"), header: settings.optionalText("header"),
            description: settings.optionalText("description"))
        outcomes = nodes.last?.outcomes ?? []
        if nodes.contains(where: { $0 is PageNode }) { settings.refuse("nodes", "a page cannot hold a page") }
        if nodes.dropLast().contains(where: { $0.outcomes.count != 1 }) {
            settings.refuse("nodes", "only the last node of a page may have more than one outcome")
        }
        if nodes.count > 16 { settings.refuse("nodes", "at most 16 nodes on a page") }
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        var prompts: [CallbackPrompt] = []
        var counts: [JSONValue] = []
        var outcome = outcomes.first ?? ""
        let memory = context.progress.memory
        let previous = (memory["counts"]?.array ?? []).map { Int($0.integer ?? 0) }
        let memories = memory["nodes"]?.array ?? []
        let before = context
        let answers = context.answers
        var kept: [JSONValue] = []
        var rest = answers.map { $0[...] }
        for (index, node) in nodes.enumerated() {
            let count = previous.indices.contains(index) ? previous[index] : 0
            context.answers = rest.flatMap { count > 0 ? Array($0.prefix(count)) : nil }
            context.progress.memory = (memories.indices.contains(index) ? memories[index].object : nil) ?? JSONObject()
            rest = rest?.dropFirst(count)
            switch try await node.process(&context) {
            case .ask(let asked, _):
                prompts += asked
                counts.append(.integer(asked.count))
            case .outcome(let name):
                counts.append(0)
                outcome = name
            }
            kept.append(.object(context.progress.memory))
        }
        context.answers = answers
        guard prompts.isEmpty else {
            // All nodes of the page run again when it is answered: what they did now must not happen twice.
            context = before
            context.progress.memory = ["counts": .array(counts), "nodes": .array(kept)]
            return .ask(prompts, presentation: presentation)
        }
        return .outcome(outcome)
    }
}
