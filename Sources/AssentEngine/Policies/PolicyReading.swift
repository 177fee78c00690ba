package import AssentCore

/// What is wrong with a policy, and where.
package struct PolicyIssue: Error, Sendable, Hashable, CustomStringConvertible {
    /// The place in the definition, for example `policies[2].condition`.
    package let path: String

    /// What is wrong and what to do.
    package let message: String

    /// An issue.
    package init(path: String, message: String) {
        self.path = path
        self.message = message
    }

    /// Place and message.
    package var description: String { "\(path): \(message)" }
}

/// All that is wrong with a policy set.
package struct PolicyIssues: Error, Sendable, Hashable, CustomStringConvertible {
    /// The issues, in the order of the definition.
    package let issues: [PolicyIssue]

    /// One line for each.
    package var description: String { issues.map(\.description).joined(separator: "\n") }
}

extension PolicySet {
    /// Reads a policy set: `name`, `realm`, `actions`, `policies`, each policy in AM's JSON with our `bind` and `display`.
    ///
    /// ```yaml
    /// name: bank
    /// realm: /alpha
    /// policies:
    ///   - name: transfers
    ///     resources: ["https://api.bank.example:443/transfers"]
    ///     actionValues: {POST: true}
    ///     subject: {type: AuthenticatedUsers}
    ///     condition: {type: Transaction, strategySpecifier: ConfirmTransfer, ttl: 180}
    ///     bind: [method, query, body]
    ///     display: [{label: Amount, field: amount, suffix: currency}, {label: To, field: to}]
    /// ```
    /// - Throws: ``PolicyIssues``, with everything that is wrong, also what ``validate(journeys:)`` finds.
    package init(_ json: JSONValue, at path: String = "", journeys: Set<String>) throws(PolicyIssues) {
        var reading = PolicyReading()
        let set = reading.policySet(json, at: path)
        let issues = reading.issues + set.validate(journeys: journeys, at: path)
        guard issues.isEmpty else { throw PolicyIssues(issues: issues) }
        self = set
    }
}

/// Reads definitions and goes on after an error, so that an operator sees all of them at once.
struct PolicyReading {
    private(set) var issues: [PolicyIssue] = []

    mutating func policySet(_ json: JSONValue, at path: String) -> PolicySet {
        let object = object(json, at: path, known: ["name", "realm", "description", "actions", "policies"])
        let policies = object["policies"]?.array ?? []
        if object["policies"]?.array == nil { issue(path, "policies", "must be a list of policies") }
        return PolicySet(
            name: text(object, "name", at: path), realm: optionalText(object, "realm", at: path) ?? "/",
            actions: texts(object, "actions", at: path) ?? PolicySet.defaultActions,
            policies: policies.enumerated().map { policy($1, at: Self.join(path, "policies[\($0)]")) })
    }

    private mutating func policy(_ json: JSONValue, at path: String) -> Policy {
        let object = object(
            json, at: path,
            known: [
                "name", "active", "description", "resources", "actionValues", "subject", "condition", "bind",
                "display", "resourceAttributes",
            ])
        var patterns: [ResourcePattern] = []
        for (index, text) in (texts(object, "resources", at: path) ?? []).enumerated() {
            do {
                patterns.append(try ResourcePattern(text))
            } catch {
                issue(path, "resources[\(index)]", error.description)
            }
        }
        var actions: [String: Bool] = [:]
        for member in object["actionValues"]?.object?.members ?? [] {
            if let value = member.value.bool {
                actions[member.name] = value
            } else {
                issue(path, "actionValues.\(member.name)", "must be true or false")
            }
        }
        let condition = object["condition"].map { self.condition($0, at: Self.join(path, "condition")) }
        if condition.map({ !$0.transactions.isEmpty }) == true, object["bind"] == nil {
            issue(path, "bind", "must say what a transaction is bound to, for example [method, query, body]")
        }
        var isActive = true
        if let active = object["active"] {
            if let value = active.bool { isActive = value } else { issue(path, "active", "must be true or false") }
        }
        if object["subject"] == nil { issue(path, "subject", "is missing; AuthenticatedUsers is whoever signed in") }
        return Policy(
            name: text(object, "name", at: path), isActive: isActive, resources: patterns, actionValues: actions,
            subject: object["subject"].map { subject($0, at: Self.join(path, "subject")) } ?? .none,
            condition: condition, bind: bind(object, at: path), display: display(object, at: path),
            attributes: attributes(object, at: path))
    }

    private mutating func bind(_ object: JSONObject, at path: String) -> Set<BoundField> {
        var fields: Set<BoundField> = []
        for (index, text) in (texts(object, "bind", at: path) ?? []).enumerated() {
            if let field = BoundField(rawValue: text) {
                fields.insert(field)
            } else {
                issue(path, "bind[\(index)]", "\(text) cannot be bound; known: method, query, body")
            }
        }
        return fields
    }

    private mutating func display(_ object: JSONObject, at path: String) -> [DisplayRule] {
        guard let json = object["display"] else { return [] }
        guard let rules = json.array else {
            issue(path, "display", "must be a list")
            return []
        }
        return rules.enumerated().map { index, rule in
            let path = Self.join(path, "display[\(index)]")
            let object = self.object(rule, at: path, known: ["label", "field", "suffix"])
            return DisplayRule(
                label: text(object, "label", at: path), field: text(object, "field", at: path),
                suffix: optionalText(object, "suffix", at: path))
        }
    }

    private mutating func attributes(_ object: JSONObject, at path: String) -> [PolicyAttribute] {
        (object["resourceAttributes"]?.array ?? []).enumerated().compactMap { index, json in
            let path = Self.join(path, "resourceAttributes[\(index)]")
            let object = self.object(json, at: path, known: ["type", "propertyName", "propertyValues"])
            let name = text(object, "propertyName", at: path)
            switch object["type"]?.string {
            case "Static": return .fixed(name: name, values: texts(object, "propertyValues", at: path) ?? [])
            case "User": return .user(name: name)
            default:
                issue(path, "type", "must be Static or User")
                return nil
            }
        }
    }

    private mutating func subject(_ json: JSONValue, at path: String) -> PolicySubject {
        let object = object(json, at: path, known: ["type", "subjects", "subject", "subjectValues"])
        let inner = (object["subjects"]?.array ?? []).enumerated()
        switch object["type"]?.string {
        case "AND": return .and(inner.map { subject($1, at: "\(path).subjects[\($0)]") })
        case "OR": return .or(inner.map { subject($1, at: "\(path).subjects[\($0)]") })
        case "NOT":
            guard let negated = object["subject"] else {
                issue(path, "subject", "is missing")
                return .none
            }
            return .not(subject(negated, at: "\(path).subject"))
        case "AuthenticatedUsers": return .authenticatedUsers
        case "NONE": return .none
        case "Identity": return .identity(texts(object, "subjectValues", at: path) ?? [])
        default:
            issue(path, "type", "must be AND, OR, NOT, AuthenticatedUsers, NONE or Identity")
            return .none
        }
    }

    private mutating func condition(_ json: JSONValue, at path: String) -> PolicyCondition {
        let object = object(
            json, at: path,
            known: [
                "type", "conditions", "condition", "authLevel", "authenticateToService", "properties",
                "ignoreValueCase", "startIp", "endIp", "authenticationStrategy", "strategySpecifier", "ttl",
            ])
        let inner = (object["conditions"]?.array ?? []).enumerated()
        switch object["type"]?.string {
        case "AND": return .and(inner.map { condition($1, at: "\(path).conditions[\($0)]") })
        case "OR": return .or(inner.map { condition($1, at: "\(path).conditions[\($0)]") })
        case "NOT":
            guard let negated = object["condition"] else {
                issue(path, "condition", "is missing")
                return .or([])
            }
            return .not(condition(negated, at: "\(path).condition"))
        case "AuthLevel":
            let level = object["authLevel"]?.integer
            if level == nil { issue(path, "authLevel", "must be a whole number") }
            return .authLevel(level.map(Int.init(clamping:)) ?? .max)
        case "AuthenticateToService":
            return .authenticateToService(text(object, "authenticateToService", at: path))
        case "SessionProperty": return sessionProperty(object, at: path)
        case "IPv4": return ipv4(object, at: path)
        case "Transaction": return .transaction(transaction(object, at: path))
        default:
            issue(
                path, "type",
                "must be AND, OR, NOT, AuthLevel, AuthenticateToService, SessionProperty, IPv4 or Transaction")
            return .or([])
        }
    }

    private mutating func sessionProperty(_ object: JSONObject, at path: String) -> PolicyCondition {
        var properties: [String: [String]] = [:]
        for member in object["properties"]?.object?.members ?? [] {
            if let values = member.value.strings {
                properties[member.name] = values
            } else {
                issue(path, "properties.\(member.name)", "must be a list of texts")
            }
        }
        if properties.isEmpty { issue(path, "properties", "must name a property and its values") }
        return .sessionProperty(properties, ignoreCase: object["ignoreValueCase"]?.bool ?? true)
    }

    private mutating func ipv4(_ object: JSONObject, at path: String) -> PolicyCondition {
        guard let start = IPv4Address(text(object, "startIp", at: path)),
            let end = IPv4Address(text(object, "endIp", at: path)), start <= end
        else {
            issue(path, "startIp", "startIp and endIp must be IPv4 addresses in this order")
            return .or([])
        }
        return .ipv4(start: start, end: end)
    }

    private mutating func transaction(_ object: JSONObject, at path: String) -> TransactionCondition {
        let name = object["authenticationStrategy"]?.string ?? TransactionCondition.Strategy.tree.rawValue
        let strategy = TransactionCondition.Strategy(rawValue: name)
        if strategy == nil {
            let known = TransactionCondition.Strategy.allCases.map(\.rawValue).joined(separator: " or ")
            issue(path, "authenticationStrategy", "must be \(known)")
        }
        var ttl = TransactionCondition.defaultTTL
        if let json = object["ttl"] {
            if let value = json.integer, value >= 10, value <= 3600 {
                ttl = value
            } else {
                issue(path, "ttl", "must be a number of seconds from 10 to 3600")
            }
        }
        return TransactionCondition(
            strategy: strategy ?? .tree, specifier: text(object, "strategySpecifier", at: path), ttl: ttl)
    }

    private mutating func object(_ json: JSONValue, at path: String, known: [String]) -> JSONObject {
        guard let object = json.object else {
            issues.append(PolicyIssue(path: path, message: "must be a mapping"))
            return JSONObject()
        }
        for name in object.names where !known.contains(name) {
            issue(path, name, "is not known; known here: \(known.joined(separator: ", "))")
        }
        return object
    }

    private mutating func text(_ object: JSONObject, _ name: String, at path: String) -> String {
        guard let text = object[name]?.string, !text.isEmpty else {
            issue(path, name, "must be a text")
            return ""
        }
        return text
    }

    private mutating func optionalText(_ object: JSONObject, _ name: String, at path: String) -> String? {
        object[name] == nil ? nil : text(object, name, at: path)
    }

    private mutating func texts(_ object: JSONObject, _ name: String, at path: String) -> [String]? {
        guard let json = object[name] else { return nil }
        guard let texts = json.strings else {
            issue(path, name, "must be a list of texts")
            return []
        }
        return texts
    }

    private mutating func issue(_ path: String, _ name: String, _ message: String) {
        issues.append(PolicyIssue(path: Self.join(path, name), message: message))
    }

    static func join(_ path: String, _ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }
}
