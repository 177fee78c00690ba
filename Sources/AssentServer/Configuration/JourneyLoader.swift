import AssentConfiguration
import AssentCore
import AssentEngine

extension RealmLoader {
    /// Reads the journeys of a realm and checks that each can run.
    func journeys() throws -> [JourneyDefinition] {
        try reader.mappings("journeys").map { name, journey in
            let definition = try definition(name, journey)
            if let issue = definition.validate().first {
                let path = issue.node.map { "nodes.\($0)" } ?? "entry"
                throw ConfigurationError(
                    file: reader.file, line: journey.line(below: path), "journey \(name): \(issue)")
            }
            return definition
        }
    }

    private func definition(_ name: String, _ journey: YAMLReader) throws -> JourneyDefinition {
        var nodes: [String: NodeDefinition] = [:]
        for (id, node) in try journey.mappings("nodes") {
            let outcomes = try node.optionalMapping("outcomes")
            var targets: [String: JourneyTarget] = [:]
            for outcome in outcomes?.keys ?? [] {
                targets[outcome] = JourneyTarget(try outcomes?.string(outcome) ?? "")
            }
            guard let config = (try node.json("config") ?? [:]).object else {
                throw node.error("config", "config must be a mapping")
            }
            nodes[id] = NodeDefinition(try node.string("type"), config: config, outcomes: targets)
            try node.finish()
        }
        let definition = JourneyDefinition(
            name: name, entry: try journey.string("entry"), nodes: nodes,
            transactionalOnly: try journey.bool("transactionalOnly", default: false),
            noSession: try journey.bool("noSession", default: false),
            mustRun: try journey.bool("mustRun", default: false),
            timeout: Int64(try journey.integer("timeoutSeconds", default: 300, in: 10...86_400)),
            authLevel: try journey.integer("authLevel", default: 0, in: 0...1000))
        try journey.finish()
        return definition
    }
}
