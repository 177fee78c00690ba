package import AssentCore

/// Makes our policy sets of what AM's `policies?_queryFilter=true` answers, and of its `applications` and
/// `resourcetypes` where they are there. What cannot be kept is named, never changed into something that grants more.
package struct PolicyImport: Sendable {
    /// The policy sets as YAML, to be put below a realm.
    package let yaml: String

    /// How many policies it has.
    package let count: Int

    /// What is not kept, or what somebody must look at; each with the policy's name.
    package let notes: [String]

    /// The most policies of one file.
    package static let maximumPolicies = 10_000

    /// Reads an export: a list of policies, AM's answer with such a list as `result`, or an object with such answers
    /// or lists under `policies` and `resourcetypes`.
    ///
    /// - Parameters:
    ///   - json: the export.
    ///   - realm: the realm that the policies are for, for example `/alpha`: users are named by it.
    /// - Throws: ``SettingsIssue`` when it is anything else.
    package init(_ json: JSONValue, realm: String) throws(SettingsIssue) {
        guard let policies = Self.list(json["policies"] ?? json), policies.count <= Self.maximumPolicies else {
            throw SettingsIssue(
                path: "policies", "must be AM's list of policies, with at most \(Self.maximumPolicies)")
        }
        var actions: [String: [String]] = [:]
        for type in json["resourcetypes"].flatMap(Self.list) ?? [] {
            guard let id = (type["uuid"] ?? type["_id"])?.string else { continue }
            actions[id] = type["actions"]?.object?.members.map(\.name)
        }
        var sets: [(name: String, actions: Set<String>, policies: [JSONObject])] = []
        var notes: [String] = []
        for (index, element) in policies.enumerated() {
            guard let object = element.object, let name = object["name"]?.string else {
                notes.append("policies[\(index)]: left out: it is not a policy")
                continue
            }
            var reading = ImportedPolicy(object, name: name, realm: realm)
            let known = object["resourceTypeUuid"]?.string.flatMap { actions[$0] } ?? PolicySet.defaultActions
            let set = object["applicationName"]?.string ?? "iPlanetAMWebAgentService"
            let isKept = reading.check(actions: known)
            notes += reading.notes.map { "\(set), \(name): \($0)" }
            guard isKept else { continue }
            if let found = sets.firstIndex(where: { $0.name == set }) {
                sets[found].policies.append(reading.policy)
                sets[found].actions.formUnion(known)
            } else {
                sets.append((set, Set(known), [reading.policy]))
            }
        }
        yaml = Self.yaml(sets)
        count = sets.reduce(0) { $0 + $1.policies.count }
        self.notes = notes
    }

    private static func list(_ json: JSONValue) -> [JSONValue]? { json.array ?? json["result"]?.array }

    /// JSON is YAML too, so that each value stands on one line, whatever is in it.
    private static func yaml(_ sets: [(name: String, actions: Set<String>, policies: [JSONObject])]) -> String {
        var lines = [sets.isEmpty ? "policySets: {}" : "policySets:"]
        for set in sets {
            lines.append("  \(JSONValue.string(set.name).serialized()):")
            if set.actions != Set(PolicySet.defaultActions) {
                lines.append("    actions: \(JSONValue.array(set.actions.sorted().map { .string($0) }).serialized())")
            }
            lines.append("    policies:")
            for policy in set.policies {
                for (index, member) in policy.members.enumerated() {
                    lines.append("      \(index == 0 ? "-" : " ") \(member.name): \(member.value.serialized())")
                }
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

/// One policy of an export on its way to ours.
private struct ImportedPolicy {
    private(set) var policy = JSONObject()
    private(set) var notes: [String] = []
    private var journeys: Set<String> = []
    /// Subjects that match nobody here and stand under NOT, which would match everybody.
    private var negated: [String] = []
    private let realm: String

    /// Members that AM's store has for itself.
    private static let ofStore: Set<String> = [
        "_id", "_rev", "createdBy", "creationDate", "lastModifiedBy", "lastModifiedDate", "applicationName",
        "resourceTypeUuid",
    ]

    private static let kept: Set<String> = [
        "name", "description", "resources", "actionValues", "subject", "condition", "resourceAttributes",
    ]

    init(_ object: JSONObject, name: String, realm: String) {
        self.realm = realm
        policy["name"] = .string(name)
        policy["active"] = .bool(object["active"] == true)
        for member in object.members where member.name != "name" && member.name != "active" {
            if Self.kept.contains(member.name) {
                if member.value != .null { policy[member.name] = cleaned(member.value) }
            } else if !Self.ofStore.contains(member.name) {
                notes.append("\(member.name) is not kept")
            }
        }
        if needsTransaction(policy["condition"]) {
            policy["bind"] = ["method", "query", "body"]
            notes.append("bind is added: AM binds the URL alone. Say in display what the user is shown")
        }
    }

    /// Whether the policy can be used as it is now. Says why when it cannot.
    mutating func check(actions: [String]) -> Bool {
        let whole: JSONValue = [
            "name": "set", "realm": .string(realm), "actions": .array(actions.map { .string($0) }),
            "policies": [.object(policy)],
        ]
        let denies = policy["actionValues"]?.object?.members.contains { $0.value == false } == true
        let warning = denies ? " It denies something, which nothing denies now" : ""
        guard negated.isEmpty else {
            notes.append(
                "left out: subject NOT of \(negated.joined(separator: " and ")) would match everybody.\(warning)")
            return false
        }
        do {
            _ = try PolicySet(whole, journeys: journeys)
        } catch {
            for issue in error.issues {
                let place = issue.path.replacing("policies[0].", with: "")
                notes.append("left out: \(place) \(issue.message).\(warning)")
            }
            return false
        }
        for journey in journeys.sorted() { notes.append("the realm needs the journey \(journey)") }
        return true
    }

    /// Without members that say nothing, and with users as they are named here.
    private mutating func cleaned(_ value: JSONValue, depth: Int = 0, isNegated: Bool = false) -> JSONValue {
        guard depth < 32 else { return value }
        if let list = value.array {
            return .array(list.map { cleaned($0, depth: depth + 1, isNegated: isNegated) })
        }
        guard let object = value.object else { return value }
        let isNegated = isNegated != (object["type"] == "NOT")
        var result = JSONObject()
        for member in object.members where member.value != .null && member.value != .string("") {
            switch member.name {
            case "strategySpecifier", "authenticateToService":
                if let journey = member.value.string { journeys.insert(journey) }
                result[member.name] = member.value
            case "subjectValues":
                result[member.name] = .array((member.value.array ?? []).map { user($0, isNegated: isNegated) })
            // A property is asked for, whatever is said of it.
            case "properties": result[member.name] = member.value
            default: result[member.name] = cleaned(member.value, depth: depth + 1, isNegated: isNegated)
            }
        }
        return .object(result)
    }

    private mutating func user(_ value: JSONValue, isNegated: Bool) -> JSONValue {
        let parts = value.string?.split(separator: ",").map(String.init) ?? []
        guard parts.count >= 2, parts[0].hasPrefix("id="), parts[1] == "ou=user" else {
            let name = value.string ?? "a subject"
            notes.append("\(name) is not a user, and matches nobody here: there are no groups")
            if isNegated { negated.append(name) }
            return value
        }
        let names = parts.filter { $0.hasPrefix("o=") }.map { $0.dropFirst(2) }
        if !names.isEmpty, names != realm.split(separator: "/").reversed() {
            notes.append("\(parts[0]) is a user of another realm there: here it is the one of \(realm)")
        }
        return .string(User.universalID(username: String(parts[0].dropFirst(3)), realm: realm))
    }

    private func needsTransaction(_ condition: JSONValue?) -> Bool {
        guard let condition else { return false }
        return condition["type"] == "Transaction" || needsTransaction(condition["condition"])
            || condition["conditions"]?.array?.contains(where: needsTransaction) == true
    }
}
