package import AssentCore

/// What each policy of a set would say of one access, and why: for people who write policies. It is a value: nothing is
/// made, taken or stored.
package struct PolicyTrial: Sendable, Hashable {
    /// What one policy says.
    package struct Finding: Sendable, Hashable {
        /// Its name.
        package let policy: String

        /// The key of the policy that keeps it from applying; `nil` when it applies.
        package let field: String?

        /// Why, in a sentence.
        package let reason: String
    }

    /// What comes of it.
    package enum Result: String, Sendable, Hashable {
        /// Access is granted.
        case granted
        /// The user must approve a transaction first.
        case transaction
        /// The user must sign in in another way first.
        case signIn
        /// Access is denied.
        case denied
        /// The request is refused because the user could not see all that it asks for.
        case refused
    }

    /// The policies, in the order of the set.
    package let findings: [Finding]

    /// What comes of it.
    package let result: Result

    /// Why, or what the user must do.
    package let explanation: String

    /// What the user would be shown before they approve.
    package let shown: [DisplayField]

    /// Tries one access.
    ///
    /// - Parameters:
    ///   - set: the policies.
    ///   - resource: what is asked for.
    ///   - action: the action; `nil` when it is the method.
    ///   - content: the method and the body.
    ///   - facts: who asks, and under which circumstances.
    ///   - language: the user's, for example `de`; English where a label is not in it.
    package init(
        _ set: PolicySet, resource: CanonicalResource, action: String? = nil, content: RequestContent,
        facts: PolicyFacts, language: String = "en"
    ) {
        let action = action ?? content.method
        let point = PolicyDecisionPoint(policySets: [set])
        let matched = point.match(set, resource: resource, action: action)
        findings = set.policies.map { policy in
            policy.finding(matched.spellings.first { policy.covers($0) } ?? resource, action: action, facts)
        }
        let assessment = point.assess(matched, facts: facts)
        var shown: [DisplayField] = []
        do {
            switch try assessment.decision {
            case .granted:
                guard let pending = assessment.pending else {
                    (result, explanation) = (.granted, "access is granted")
                    break
                }
                shown = try TransactionDisplay.render(pending.policy, of: ShownBody(content), query: resource.query)
                    .map { $0.field(in: language) }
                let seconds = pending.condition.ttl
                (result, explanation) = (
                    .transaction,
                    "the user approves it by the journey \(pending.condition.specifier), within \(seconds) seconds"
                )
            case .advised(let advice, _):
                let wanted = advice.entries.map { "\($0.name.rawValue) \($0.values.joined(separator: ", "))" }
                (result, explanation) = (.signIn, "the user signs in again: " + wanted.joined(separator: "; "))
            case .denied(.notPermitted): (result, explanation) = (.denied, "a policy that applies denies the action")
            case .denied(.severalTransactions):
                (result, explanation) = (.denied, "several policies ask for a transaction, and one access can have one")
            case .denied, .alreadyTaken: (result, explanation) = (.denied, "no policy that applies grants the action")
            }
        } catch {
            (result, explanation) = (.refused, (error as? EngineError)?.detail ?? "the request cannot be decided on")
        }
        self.shown = shown
    }
}

extension Policy {
    fileprivate func finding(
        _ resource: CanonicalResource, action: String, _ facts: PolicyFacts
    ) -> PolicyTrial.Finding {
        func stopped(_ field: String, _ reason: String) -> PolicyTrial.Finding {
            PolicyTrial.Finding(policy: name, field: field, reason: reason)
        }
        guard isActive else { return stopped("active", "the policy is not in force") }
        guard covers(resource) else {
            let parts = resources.map { $0.mismatches(resource) }.min { $0.count < $1.count } ?? []
            return stopped(
                "resources", "no pattern covers it; the nearest one differs in: " + parts.joined(separator: ", "))
        }
        guard let grants = actionValues[action] else { return stopped("actionValues", "it says nothing of \(action)") }
        guard subject.matches(facts.user, client: facts.client, claims: facts.claims) else {
            return stopped("subject", "it is for others: \(subject.json.serialized())")
        }
        let verb = grants ? "grants" : "denies"
        guard let condition else {
            return PolicyTrial.Finding(policy: name, field: nil, reason: "it applies, and \(verb) \(action)")
        }
        switch condition.evaluate(facts).verdict {
        case .holds: return PolicyTrial.Finding(policy: name, field: nil, reason: "it applies, and \(verb) \(action)")
        case .pending:
            return PolicyTrial.Finding(
                policy: name, field: nil, reason: "it applies, and \(verb) \(action) once its transaction is approved")
        case .fails: return stopped("condition", "it does not hold: \(condition.json.serialized())")
        case .unknown:
            return stopped("condition", "what it asks about is not known: \(condition.json.serialized())")
        }
    }
}
