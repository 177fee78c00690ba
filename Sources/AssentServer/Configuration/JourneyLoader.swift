import AssentConfiguration
import AssentCore
import AssentEngine

extension RealmLoader {
    /// Reads the journeys of a realm and checks that each can run.
    func journeys() -> [JourneyDefinition] {
        reader.mappings("journeys").map { name, journey in
            let definition = definition(name, journey)
            for issue in definition.validate() { journey.refuse(issue.path, issue.message) }
            return definition
        }
    }

    private func definition(_ name: String, _ journey: SettingsReader<Void>) -> JourneyDefinition {
        var nodes: [String: NodeDefinition] = [:]
        for (id, node) in journey.mappings("nodes") {
            let outcomes = node.optionalMapping("outcomes")
            var targets: [String: JourneyTarget] = [:]
            for outcome in outcomes?.keys ?? [] {
                targets[outcome] = JourneyTarget(outcomes?.string(outcome) ?? "")
            }
            let config = (node.json("config") ?? [:]).object
            if config == nil { node.refuse("config", "must be a mapping") }
            nodes[id] = NodeDefinition(node.string("type"), config: config ?? [:], outcomes: targets)
            node.finish()
        }
        let definition = JourneyDefinition(
            name: name, entry: journey.string("entry"), nodes: nodes,
            transactionalOnly: journey.bool("transactionalOnly", default: false),
            noSession: journey.bool("noSession", default: false),
            mustRun: journey.bool("mustRun", default: false),
            timeout: Int64(journey.integer("timeoutSeconds", default: 300, in: 10...86_400)),
            authLevel: journey.integer("authLevel", default: 0, in: 0...1000))
        journey.finish()
        return definition
    }
}
