import AssentCore
import AssentEngine

extension PolicyDecision {
    /// The decision as AM's JSON (am-server reference, policies); with `reasons` only when `explained`.
    func json(explained: Bool = false) -> JSONValue {
        let actions = actions.sorted { $0.key < $1.key }.map { JSONObject.Member(name: $0.key, value: .bool($0.value)) }
        var object: JSONObject = [
            "resource": .string(resource), "actions": .object(JSONObject(actions)),
            "attributes": Self.json(attributes), "advices": Self.json(advices), "ttl": .integer(ttl),
        ]
        if let used {
            object["transaction"] = ["id": .string(used.id), "outcome": used.outcome?.json ?? .null]
        }
        if explained { object["reasons"] = .array(reasons.map { .string($0) }) }
        return .object(object)
    }

    private static func json(_ values: [String: [String]]) -> JSONValue {
        let members = values.sorted { $0.key < $1.key }.map { entry in
            JSONObject.Member(name: entry.key, value: .array(entry.value.map { .string($0) }))
        }
        return .object(JSONObject(members))
    }
}

extension UpstreamOutcome {
    /// What an enforcement point says became of a request, in the form of ``json``; `nil` for anything else.
    init?(report: JSONValue?) {
        switch report?["state"]?.string {
        case "answered":
            guard let status = report?["status"]?.integer, (100...599).contains(status) else { return nil }
            self = .answered(status: Int(status))
        case "notForwarded": self = .notForwarded
        case "unknown": self = .unknown
        default: return nil
        }
    }
}
