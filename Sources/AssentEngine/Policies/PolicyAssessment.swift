import AssentCore

/// What is known when policies are evaluated.
struct PolicyFacts {
    let session: LiveSession?
    let clientAddress: IPv4Address?
    /// Only the policies that speak of this action count; `nil` when the action is not known.
    let action: String?
}

/// How a condition came out before any transaction was looked at.
struct ConditionOutcome {
    enum Verdict {
        case holds
        case fails
        /// What it asks about is not known: it grants nothing, and neither does its opposite.
        case unknown
        /// It holds if this transaction is approved.
        case pending(TransactionCondition)
    }

    var verdict: Verdict
    var advices: [String: [String]] = [:]

    mutating func merge(advices other: [String: [String]]) { advices.merge(other, uniquingKeysWith: Self.union) }

    static func union(_ left: [String], _ right: [String]) -> [String] { left + right.filter { !left.contains($0) } }
}

extension PolicyCondition {
    /// Evaluates without touching a transaction: AM gives transactions the lowest precedence, everything else comes first.
    func evaluate(_ facts: PolicyFacts) -> ConditionOutcome {
        switch self {
        case .and(let conditions): return Self.all(conditions, facts)
        case .or(let conditions): return Self.any(conditions, facts)
        case .not(let condition):
            switch condition.evaluate(facts).verdict {
            case .fails: return ConditionOutcome(verdict: .holds)
            // A pending transaction under NOT does not pass validation; here it fails closed.
            case .holds, .pending: return ConditionOutcome(verdict: .fails)
            case .unknown: return ConditionOutcome(verdict: .unknown)
            }
        case .authLevel(let level):
            guard let session = facts.session else { return ConditionOutcome(verdict: .unknown) }
            return session.authLevel >= level
                ? ConditionOutcome(verdict: .holds)
                : ConditionOutcome(verdict: .fails, advices: [Advice.Name.authLevel.rawValue: ["\(level)"]])
        case .authenticateToService(let journey):
            guard let session = facts.session else { return ConditionOutcome(verdict: .unknown) }
            let services = session.properties["Service"]
            let used = services?.strings ?? services?.string?.split(separator: "|").map(String.init) ?? []
            return used.contains(journey)
                ? ConditionOutcome(verdict: .holds)
                : ConditionOutcome(verdict: .fails, advices: [Advice.Name.service.rawValue: [journey]])
        case .sessionProperty(let properties, let ignoreCase):
            guard let session = facts.session else { return ConditionOutcome(verdict: .unknown) }
            let holds = properties.allSatisfy { name, values in
                guard let value = session.properties[name]?.string else { return false }
                return values.contains { ignoreCase ? $0.lowercased() == value.lowercased() : $0 == value }
            }
            return ConditionOutcome(verdict: holds ? .holds : .fails)
        case .ipv4(let start, let end):
            guard let address = facts.clientAddress else { return ConditionOutcome(verdict: .unknown) }
            return ConditionOutcome(verdict: address >= start && address <= end ? .holds : .fails)
        case .transaction(let condition):
            return ConditionOutcome(verdict: facts.session == nil ? .unknown : .pending(condition))
        }
    }

    private static func all(_ conditions: [PolicyCondition], _ facts: PolicyFacts) -> ConditionOutcome {
        var result = ConditionOutcome(verdict: .holds)
        for condition in conditions {
            let outcome = condition.evaluate(facts)
            if case .unknown = result.verdict {
                // Nothing is granted any more, but what is surely false is so under NOT too.
                if case .fails = outcome.verdict { result.verdict = .fails }
                continue
            }
            result.merge(advices: outcome.advices)
            switch outcome.verdict {
            case .holds: continue
            case .pending, .unknown: result.verdict = outcome.verdict
            case .fails:
                result.verdict = .fails
                return result
            }
        }
        return result
    }

    private static func any(_ conditions: [PolicyCondition], _ facts: PolicyFacts) -> ConditionOutcome {
        var result = ConditionOutcome(verdict: .fails)
        for condition in conditions {
            let outcome = condition.evaluate(facts)
            switch outcome.verdict {
            case .holds: return ConditionOutcome(verdict: .holds)
            case .pending:
                if case .pending = result.verdict { continue }
                result.verdict = outcome.verdict
            case .unknown: if case .fails = result.verdict { result.verdict = .unknown }
            case .fails: result.merge(advices: outcome.advices)
            }
        }
        return result
    }
}

/// What all policies of a set together say of one resource, before any transaction is looked at.
struct PolicyAssessment {
    /// A policy that grants once its transaction is approved.
    struct Pending {
        let policy: Policy
        let condition: TransactionCondition
    }

    /// What is granted and denied if every pending transaction were approved.
    private(set) var actions: [String: Bool] = [:]
    private(set) var attributes: [String: [String]] = [:]
    /// Advices of other kinds than transactions.
    private(set) var advices: [String: [String]] = [:]
    private(set) var pending: [Pending] = []
    private(set) var reasons: [String] = []

    init(_ set: PolicySet, resource: CanonicalResource, facts: PolicyFacts) {
        for policy in set.policies where policy.isActive {
            if let action = facts.action, policy.actionValues[action] == nil { continue }
            guard policy.covers(resource) else { continue }
            guard policy.subject.matches(facts.session) else {
                reasons.append("\(policy.name): the subject does not match")
                continue
            }
            let outcome = policy.condition?.evaluate(facts) ?? ConditionOutcome(verdict: .holds)
            switch outcome.verdict {
            case .holds: grant(policy, facts)
            case .pending(let condition):
                grant(policy, facts)
                pending.append(Pending(policy: policy, condition: condition))
                reasons.append("\(policy.name): needs a transaction")
            case .fails, .unknown:
                advices.merge(outcome.advices, uniquingKeysWith: ConditionOutcome.union)
                reasons.append("\(policy.name): the condition does not hold")
            }
        }
        if reasons.isEmpty, actions.isEmpty { reasons.append("no policy covers the resource") }
    }

    /// The advices to give: of one kind, since clients read only one.
    var oneAdvice: [String: [String]] {
        for name in [Advice.Name.service.rawValue, Advice.Name.authLevel.rawValue] {
            if let values = advices[name] { return [name: values] }
        }
        return [:]
    }

    private mutating func grant(_ policy: Policy, _ facts: PolicyFacts) {
        actions.merge(policy.actionValues) { $0 && $1 }
        for attribute in policy.attributes {
            switch attribute {
            case .fixed(let name, let values): attributes[name, default: []] += values
            case .user(let name):
                guard let value = facts.session?.user.attributes[name] else { continue }
                attributes[name, default: []] += value.strings ?? value.string.map { [$0] } ?? []
            }
        }
    }
}
