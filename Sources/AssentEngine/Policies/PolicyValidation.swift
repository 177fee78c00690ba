package import AssentCore
import AssentSigningProtocol

extension PolicySet {
    /// Everything that would keep the policies from doing what they say. `journeys` are those of the set's realm.
    package func validate(journeys: Set<String>) -> [SettingsIssue] {
        var issues: [SettingsIssue] = []
        func issue(_ place: String, _ message: String) {
            issues.append(SettingsIssue(path: place, message))
        }
        if !Self.isName(name) { issue("name", "must be a name without any of \(Self.forbiddenInNames)") }
        if !realm.hasPrefix("/") { issue("realm", "a realm begins with a slash") }
        if actions.isEmpty { issue("actions", "must name an action") }
        var names: Set<String> = []
        for (index, policy) in policies.enumerated() {
            let place = "policies[\(index)]"
            if !Self.isName(policy.name) {
                issue("\(place).name", "must be a name without any of \(Self.forbiddenInNames)")
            }
            if !names.insert(policy.name).inserted {
                issue("\(place).name", "another policy has the name \(policy.name)")
            }
            for found in policy.validate(actions: actions, journeys: journeys) {
                issue("\(place).\(found.path)", found.message)
            }
            if let other = policies.prefix(index).first(where: policy.mayAskBeside) {
                issue(
                    "\(place).condition",
                    "asks for a transaction as the policy \(other.name) does, and one access can have one: their "
                        + "resources, actions, subjects or conditions must exclude each other, or one policy must do")
            }
        }
        return issues
    }

    private static let forbiddenInNames = "\" + , < = > \\ / ;"

    private static func isName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 100
            && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && !"\"+,<=>\\/;".utf8.contains($0) }
    }
}

extension Policy {
    fileprivate func validate(actions: [String], journeys: Set<String>) -> [SettingsIssue] {
        var issues: [SettingsIssue] = []
        func issue(_ place: String, _ message: String) { issues.append(SettingsIssue(path: place, message)) }
        if resources.isEmpty { issue("resources", "the policy covers no resource") }
        for (index, pattern) in resources.enumerated() where !pattern.matchesSomeURL {
            issue(
                "resources[\(index)]",
                "matches no http or https URL in its canonical form: no dot segments, no semicolons in the path, "
                    + "escapes only where they are needed")
        }
        if actionValues.isEmpty { issue("actionValues", "the policy says nothing of any action") }
        for action in actionValues.keys.sorted() where !actions.contains(action) {
            issue("actionValues.\(action)", "unknown action; known: \(actions.joined(separator: ", "))")
        }
        for problem in subject.problems { issue("subject", problem) }
        for problem in condition?.problems ?? [] { issue("condition", problem) }
        let transactions = condition?.transactions ?? []
        if subject.hasJWTClaim, !transactions.isEmpty {
            issue("subject", "JwtClaim has no session that could approve a transaction: use two policies")
        }
        for journey in Set(transactions.map(\.specifier) + (condition?.journeys ?? [])).sorted()
        where !journeys.contains(journey) {
            let known = journeys.sorted().joined(separator: ", ")
            issue("condition", "there is no journey \(journey); known in this realm: \(known)")
        }
        if transactions.count > 1 { issue("condition", "a policy can have one Transaction condition") }
        if condition?.negatesTransaction == true { issue("condition", "Transaction cannot stand under NOT") }
        if transactions.isEmpty {
            if !bind.isEmpty { issue("bind", "needs a Transaction condition") }
            if !display.isEmpty { issue("display", "needs a Transaction condition") }
        }
        issues += displayIssues
        return issues
    }

    private var displayIssues: [SettingsIssue] {
        var issues: [SettingsIssue] = []
        func issue(_ place: String, _ message: String) { issues.append(SettingsIssue(path: place, message)) }
        if !display.isEmpty, !bind.isSuperset(of: [.query, .body]) {
            issue(
                "display",
                "shows what is asked for, so bind must name query and body: what is shown must be what is done"
            )
        }
        if display.count > TransactionDisplay.maximumLines {
            issue("display", "at most \(TransactionDisplay.maximumLines) lines can be shown")
        }
        for (index, rule) in display.enumerated() {
            for problem in rule.problems { issue("display[\(index)].\(problem.path)", problem.message) }
        }
        if display.isEmpty, !notShown.isEmpty { issue("notShown", "needs display: without it nothing is shown") }
        if notShown.count > TransactionDisplay.maximumLeftOut {
            issue("notShown", "at most \(TransactionDisplay.maximumLeftOut) places can be left out")
        }
        for (index, text) in notShown.enumerated() where ContentPointer(leftOut: text) == nil {
            issue(
                "notShown[\(index)]",
                "\(text) must be a JSON Pointer into the body, for example /reference, or ? and a query parameter's name"
            )
        }
        return issues
    }
}

extension DisplayRule {
    fileprivate var problems: [SettingsIssue] {
        var problems: [SettingsIssue] = []
        if !label.all.allSatisfy(TransactionDisplay.isLabel) {
            problems.append(SettingsIssue(path: "label", "must be a short text without control characters"))
        }
        if !label.byLanguage.keys.allSatisfy(LocalizedText.isTag) {
            problems.append(SettingsIssue(path: "label", "is a text by language: en, de, pt-BR"))
        }
        if suffix != nil, let type, type != .amount, type != .maxAmount {
            problems.append(SettingsIssue(path: "suffix", "belongs to an amount, not to \(type.rawValue)"))
        }
        guard let each else { return problems }
        if list == nil {
            problems.append(
                SettingsIssue(
                    path: "each",
                    "\(each) must be a JSON Pointer to a list, for example /payments, or ? and a query parameter's name"
                ))
        }
        if field.hasPrefix("?") || suffix?.hasPrefix("?") == true {
            problems.append(SettingsIssue(path: "field", "begins at an element of \(each), not in the query"))
        }
        return problems
    }
}

extension PolicySubject {
    fileprivate var problems: [String] {
        switch self {
        case .and(let subjects), .or(let subjects):
            (subjects.isEmpty ? ["AND and OR need subjects"] : []) + subjects.flatMap(\.problems)
        case .not(let subject): subject.problems
        case .identity(let ids): ids.isEmpty ? ["Identity needs subjectValues"] : []
        case .app(let apps): apps.isEmpty ? ["App needs apps"] : []
        case .client(let ids): ids.isEmpty ? ["Client needs ids"] : []
        case .authenticatedUsers, .none, .jwtClaim: []
        }
    }

    fileprivate var hasJWTClaim: Bool {
        switch self {
        case .and(let subjects), .or(let subjects): subjects.contains(where: \.hasJWTClaim)
        case .not(let subject): subject.hasJWTClaim
        case .jwtClaim: true
        case .authenticatedUsers, .none, .identity, .app, .client: false
        }
    }
}

extension PolicyCondition {
    fileprivate var problems: [String] {
        switch self {
        case .and(let conditions), .or(let conditions):
            (conditions.isEmpty ? ["AND and OR need conditions"] : []) + conditions.flatMap(\.problems)
        case .not(let condition): condition.problems
        default: []
        }
    }

    fileprivate var journeys: [String] {
        switch self {
        case .and(let conditions), .or(let conditions): conditions.flatMap(\.journeys)
        case .not(let condition): condition.journeys
        case .authenticateToService(let journey): [journey]
        default: []
        }
    }

    fileprivate var negatesTransaction: Bool {
        switch self {
        case .and(let conditions), .or(let conditions): conditions.contains(where: \.negatesTransaction)
        case .not(let condition): !condition.transactions.isEmpty
        default: false
        }
    }
}
