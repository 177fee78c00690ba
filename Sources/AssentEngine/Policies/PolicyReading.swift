package import AssentCore
import AssentSigningProtocol

extension PolicySet {
    /// Reads a policy set: `name`, `realm`, `actions`, `selfEvaluation`, `policies`, each policy in AM's JSON with our
    /// `bind`, `display` and `notShown`.
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
    ///     notShown: [/reference]
    /// ```
    /// - Throws: ``SettingsIssues``, with everything that is wrong, also what ``validate(journeys:)`` finds.
    package init(_ json: JSONValue, journeys: Set<String>) throws(SettingsIssues) {
        let settings = SettingsReader(SettingsValue(json))
        let set = PolicySet(settings)
        if let issues = SettingsIssues(settings.issues + set.validate(journeys: journeys)) { throw issues }
        self = set
    }

    private init(_ settings: SettingsReader<Void>) {
        if settings.json("policies")?.array == nil { settings.refuse("policies", "must be a list of policies") }
        settings.ignore("description")
        self.init(
            name: settings.string("name"), realm: settings.string("realm", default: "/"),
            actions: settings.optionalStrings("actions") ?? PolicySet.defaultActions,
            policies: settings.json("policies")?.array == nil ? [] : settings.list("policies").map { Policy($0) },
            selfEvaluation: settings.bool("selfEvaluation", default: true))
        settings.finish()
    }
}

extension Policy {
    fileprivate init(_ settings: SettingsReader<Void>) {
        settings.ignore("description")
        let condition = settings.optionalMapping("condition").map { PolicyCondition($0) }
        if condition.map({ !$0.transactions.isEmpty }) == true, !settings.has("bind") {
            settings.refuse("bind", "must say what a transaction is bound to, for example [method, query, body]")
        }
        let subject = settings.optionalMapping("subject")
        if subject == nil {
            settings.refuse("subject", "is missing; AuthenticatedUsers means everybody who is signed in")
        }
        self.init(
            name: settings.string("name"), isActive: settings.bool("active", default: true),
            resources: Self.resources(settings), actionValues: Self.actionValues(settings),
            subject: subject.map { PolicySubject($0) } ?? .none, condition: condition, bind: Self.bind(settings),
            display: Self.display(settings), notShown: settings.strings("notShown"),
            attributes: Self.attributes(settings))
        settings.finish()
    }

    private static func resources(_ settings: SettingsReader<Void>) -> [ResourcePattern] {
        var patterns: [ResourcePattern] = []
        for (index, text) in settings.strings("resources").enumerated() {
            do {
                patterns.append(try ResourcePattern(text))
            } catch {
                settings.refuse("resources[\(index)]", error.description)
            }
        }
        return patterns
    }

    private static func actionValues(_ settings: SettingsReader<Void>) -> [String: Bool] {
        guard let values = settings.optionalMapping("actionValues") else { return [:] }
        var actions: [String: Bool] = [:]
        for name in values.keys { actions[name] = values.optionalBool(name) }
        return actions
    }

    private static func bind(_ settings: SettingsReader<Void>) -> Set<BoundField> {
        var fields: Set<BoundField> = []
        for (index, text) in settings.strings("bind").enumerated() {
            if let field = BoundField(rawValue: text) {
                fields.insert(field)
            } else {
                settings.refuse("bind[\(index)]", "\(text) cannot be bound; known: method, query, body")
            }
        }
        return fields
    }

    private static func display(_ settings: SettingsReader<Void>) -> [DisplayRule] {
        settings.list("display").map { rule in
            defer { rule.finish() }
            if !rule.has("label") { rule.refuse("label", "is missing") }
            let each = rule.optionalString("each")
            return DisplayRule(
                label: rule.localizedText("label") ?? "",
                field: each == nil ? rule.string("field") : rule.optionalString("field") ?? "",
                suffix: rule.optionalString("suffix"), type: fieldType(rule), each: each)
        }
    }

    private static func fieldType(_ rule: SettingsReader<Void>) -> FieldType? {
        guard let name = rule.optionalString("type") else { return nil }
        let type = FieldType(rawValue: name)
        if type == nil {
            rule.refuse("type", "can only be: \(FieldType.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return type
    }

    private static func attributes(_ settings: SettingsReader<Void>) -> [PolicyAttribute] {
        settings.list("resourceAttributes").compactMap { attribute in
            attribute.ignore("propertyValues")
            defer { attribute.finish() }
            let name = attribute.string("propertyName")
            switch attribute.string("type") {
            case "Static":
                let values = attribute.optionalStrings("propertyValues", allowingEmpty: true)
                return .fixed(name: name, values: values ?? [])
            case "User": return .user(name: name)
            default:
                attribute.refuse("type", "must be Static or User")
                return nil
            }
        }
    }
}

extension PolicySubject {
    fileprivate init(_ settings: SettingsReader<Void>) {
        // AM exports members that a type does not use.
        settings.ignore("subjects", "subject", "subjectValues", "claimName", "claimValue")
        defer { settings.finish() }
        switch settings.string("type") {
        case "AND": self = .and(settings.list("subjects").map { PolicySubject($0) })
        case "OR": self = .or(settings.list("subjects").map { PolicySubject($0) })
        case "NOT": self = .not(PolicySubject(settings.mapping("subject")))
        case "AuthenticatedUsers": self = .authenticatedUsers
        case "NONE": self = .none
        case "Identity": self = .identity(settings.strings("subjectValues"))
        case "App": self = .app(settings.strings("apps"))
        case "Client": self = .client(settings.strings("ids"))
        case "JwtClaim":
            self = .jwtClaim(name: settings.string("claimName"), value: settings.string("claimValue"))
        case "Policy":
            settings.refuse("type", "a policy cannot refer to another one here: write its subject in this policy")
            self = .none
        default:
            settings.refuse("type", "must be AND, OR, NOT, AuthenticatedUsers, NONE, Identity, JwtClaim, App or Client")
            self = .none
        }
    }
}
