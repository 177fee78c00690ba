import AssentCore

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
    /// Evaluates without touching a transaction: AM gives transactions the lowest precedence, everything else comes
    /// first.
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
        case .address(let family, let ranges):
            // Of an address of the other family nothing is said, so that NOT lets nobody past who has two.
            guard let address = facts.clientAddress, address.family == family else {
                return ConditionOutcome(verdict: .unknown)
            }
            return ConditionOutcome(verdict: ranges.contains { $0.contains(address) } ? .holds : .fails)
        case .time(let time):
            guard let now = facts.now else { return ConditionOutcome(verdict: .unknown) }
            return ConditionOutcome(verdict: time.contains(now) ? .holds : .fails)
        case .sessionAge(let minutes):
            guard let now = facts.now, let session = facts.session else { return ConditionOutcome(verdict: .unknown) }
            return ConditionOutcome(verdict: now < session.createdAt + minutes * 60 ? .holds : .fails)
        case .scopes(let scopes):
            guard let granted = facts.scopes else { return ConditionOutcome(verdict: .unknown) }
            return ConditionOutcome(verdict: granted.isSuperset(of: scopes) ? .holds : .fails)
        case .usualNetwork(let days, let level):
            guard let now = facts.now, facts.session != nil, let sightings = facts.sightings else {
                return ConditionOutcome(verdict: .unknown)
            }
            let isUsual = sightings.usualUntil(days: days, level: level, at: now) != nil
            return ConditionOutcome(verdict: isUsual ? .holds : .fails)
        case .transaction(let condition):
            return ConditionOutcome(verdict: facts.session == nil ? .unknown : .pending(condition))
        }
    }

    /// When the condition may come out otherwise because time has passed, in seconds since 1970; `nil` when it cannot.
    func nextChange(_ facts: PolicyFacts) -> Int64? {
        switch self {
        case .and(let conditions), .or(let conditions): conditions.compactMap { $0.nextChange(facts) }.min()
        case .not(let condition): condition.nextChange(facts)
        case .time: facts.now.map(SimpleTime.nextChange)
        case .sessionAge(let minutes):
            facts.session.map { $0.createdAt + minutes * 60 }.flatMap { end in
                facts.now.map { $0 < end } == true ? end : nil
            }
        // While the network is not usual, a sign-in from there can make it so at any moment.
        case .usualNetwork(let days, let level):
            facts.now.map { facts.sightings?.usualUntil(days: days, level: level, at: $0) ?? $0 }
        case .authLevel, .authenticateToService, .sessionProperty, .address, .scopes, .transaction: nil
        }
    }

    private static func all(_ conditions: [PolicyCondition], _ facts: PolicyFacts) -> ConditionOutcome {
        var result = ConditionOutcome(verdict: .holds)
        for condition in conditions {
            let outcome = condition.evaluate(facts)
            if case .unknown = result.verdict {
                // Nothing is granted any more, but what is surely false is so under NOT too, whatever comes behind it.
                guard case .fails = outcome.verdict else { continue }
                result.verdict = .fails
                return result
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
package struct PolicyAssessment: Sendable {
    /// A policy that grants once its transaction is approved.
    struct Pending {
        let policy: Policy
        let condition: TransactionCondition
    }

    /// What is granted and denied if every pending transaction were approved.
    package private(set) var actions: [String: Bool] = [:]

    /// What the enforcement point gets besides.
    package private(set) var attributes: [String: [String]] = [:]

    /// Why, for the log and for an administrator who asks.
    package private(set) var reasons: [String] = []

    /// When what the policies say may change because time has passed, in seconds since 1970; `nil` when it cannot.
    package private(set) var nextChange: Int64?

    /// Advices of other kinds than transactions.
    private(set) var advices: [String: [String]] = [:]
    private var pendings: [Pending] = []

    /// A policy that grants without its transaction, because something else of its condition holds.
    private(set) var unneeded: Pending?

    /// Those of ``MatchedPolicies/spellings`` that no policy grants.
    private var ungranted: [CanonicalResource]
    private let action: String?

    init(_ matched: MatchedPolicies, facts: PolicyFacts) {
        action = matched.action
        ungranted = matched.spellings
        for policy in matched.policies {
            guard policy.subject.matches(facts.user, client: facts.client, claims: facts.claims) else {
                reasons.append("\(policy.name): the subject does not match")
                continue
            }
            if let change = policy.condition?.nextChange(facts) { nextChange = min(nextChange ?? change, change) }
            let outcome = policy.condition?.evaluate(facts) ?? ConditionOutcome(verdict: .holds)
            switch outcome.verdict {
            case .holds:
                grant(policy, facts)
                if let condition = policy.condition?.transactions.first {
                    unneeded = unneeded ?? Pending(policy: policy, condition: condition)
                }
            case .pending(let condition):
                grant(policy, facts)
                pendings.append(Pending(policy: policy, condition: condition))
                reasons.append("\(policy.name): needs a transaction")
            case .fails, .unknown:
                advices.merge(outcome.advices, uniquingKeysWith: ConditionOutcome.union)
                reasons.append("\(policy.name): the condition does not hold")
            }
        }
        if reasons.isEmpty, actions.isEmpty { reasons.append("no policy covers the resource") }
        if !ungranted.isEmpty { reasons.append("the path is not granted both with and without its last slash") }
    }

    /// What is decided, provided that ``pending`` is approved.
    package var decision: AccessDecision {
        get throws {
            // A transaction comes last: other advices are given before one is made. Clients read one kind only.
            for name in [Advice.Name.service, .authLevel] {
                guard let values = advices[name.rawValue] else { continue }
                return .advised(try Advice([Advice.Entry(name, values)]), transaction: nil)
            }
            let isGranted = action.map { actions[$0] == true } ?? actions.values.contains(true)
            guard isGranted else { return .denied(actions.isEmpty ? .noPolicy : .notPermitted) }
            guard ungranted.isEmpty else { return .denied(.noPolicy) }
            guard pendings.count <= 1 else { return .denied(.severalTransactions) }
            return .granted(taken: nil)
        }
    }

    /// The policy whose transaction must be approved.
    var pending: Pending? { pendings.first }

    private mutating func grant(_ policy: Policy, _ facts: PolicyFacts) {
        if actions.isEmpty {
            actions = policy.actionValues
        } else {
            actions.merge(policy.actionValues) { $0 && $1 }
        }
        if !ungranted.isEmpty, let action, policy.actionValues[action] == true {
            ungranted.removeAll { policy.covers($0) }
        }
        for attribute in policy.attributes {
            switch attribute {
            case .fixed(let name, let values): attributes[name, default: []] += values
            case .user(let name):
                guard let value = facts.user?.attributes[name] else { continue }
                attributes[name, default: []] += value.strings ?? value.string.map { [$0] } ?? []
            }
        }
    }
}
