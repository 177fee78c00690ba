import AssentCore

/// Decides what the policies grant.
package struct PolicyDecisionPoint: Sendable {
    let context: EngineContext
    let transactions: Transactions
    private let policySets: [PolicySet]

    /// A decision point for these policy sets, which have passed ``PolicySet/validate(journeys:at:)``.
    package init(_ context: EngineContext, policySets: [PolicySet], transactions: Transactions) {
        self.context = context
        self.policySets = policySets
        self.transactions = transactions
    }

    /// The policy set of that name in a realm, or `nil`.
    package func policySet(_ name: String, realm: String) -> PolicySet? {
        policySets.first { $0.name == name && $0.realm == realm }
    }

    /// Whether `caller` may ask about `subject` in a realm, which must be their own: about themselves everybody, about others
    /// only who has the role `pep` or `admin`.
    ///
    /// - Throws: ``EngineError`` `forbidden`.
    package func authorize(
        _ caller: LiveSession, toAskAbout subject: DecisionSubject, realm: String
    ) throws(EngineError) {
        guard caller.realm == realm else { throw .forbidden }
        if let asked = subject.presented?.session, asked.id == caller.id { return }
        guard Self.isEnforcementPoint(caller) else { throw .forbidden }
    }

    private static func isEnforcementPoint(_ caller: LiveSession) -> Bool {
        !caller.user.roles.isDisjoint(with: [.pep, .admin])
    }

    /// Decides on resources, as AM's `policies?_action=evaluate` does, for a caller who must have the right to ask.
    ///
    /// The client's address (`IP` in the environment) is believed only of an enforcement point.
    /// A transaction id that is of no use (unknown, expired, for another request) is not an error: the decision carries the
    /// advice of a new transaction.
    /// - Throws: ``EngineError``: `forbidden` as ``authorize(_:toAskAbout:realm:)``, `unknownPolicySet`, `invalidResources`,
    ///   what ``TransactionDisplay`` throws for a body that cannot be shown to the user; `unavailable`.
    package func evaluate(_ request: EvaluateRequest, caller: LiveSession) async throws -> [PolicyDecision] {
        try authorize(caller, toAskAbout: request.subject, realm: request.realm)
        let address = (request.environment["IP"] ?? request.environment["requestIp"])?.first.flatMap(IPv4Address.init)
        guard let set = policySet(request.policySet, realm: request.realm) else {
            throw EngineError(.unknownPolicySet, about: request.policySet)
        }
        guard !request.resources.isEmpty, request.resources.count <= EvaluateRequest.maximumResources else {
            throw EngineError(.invalidResources)
        }
        var transactionID = request.environment["TxId"]?.first
        var hasTaken = false
        var decisions: [PolicyDecision] = []
        for text in request.resources {
            guard let resource = try? CanonicalResource(text) else {
                decisions.append(PolicyDecision(resource: text, reasons: ["the resource has no canonical form"]))
                continue
            }
            let question = PolicyQuestion(
                set: set, kind: .policy, resource: resource, subject: request.subject, action: nil,
                content: RequestContent(environment: request.environment),
                clientAddress: Self.isEnforcementPoint(caller) ? address : nil, transactionID: transactionID)
            do {
                let ruling = try await rule(question)
                if case .granted(_, .some) = ruling.verdict {
                    transactionID = nil
                    hasTaken = true
                }
                decisions.append(ruling.decision(of: text))
            } catch let error as EngineError where hasTaken || error.code == .tooManyRequests {
                // An access that was just spent must still be told.
                decisions.append(PolicyDecision(resource: text, reasons: [error.detail]))
            }
        }
        return decisions
    }

    /// Answers one question. A transaction comes last: only where everything else holds is one taken or made.
    func rule(_ question: PolicyQuestion) async throws -> PolicyRuling {
        let session = question.subject.presented?.session
        let facts = PolicyFacts(
            session: session?.realm == question.set.realm ? session : nil, clientAddress: question.clientAddress,
            action: question.action)
        let assessment = PolicyAssessment(question.set, resource: question.resource, facts: facts)
        var ruling = PolicyRuling(.denied(.noPolicy), assessment)
        guard assessment.advices.isEmpty else {
            ruling.verdict = .advised(assessment.oneAdvice, nil)
            return ruling
        }
        let isGranted =
            question.action.map { assessment.actions[$0] == true } ?? assessment.actions.values.contains(true)
        guard isGranted else {
            ruling.verdict = .denied(assessment.actions.isEmpty ? .noPolicy : .notPermitted)
            return ruling
        }
        guard let pending = assessment.pending.first else {
            ruling.verdict = .granted(assessment.actions, nil)
            return ruling
        }
        guard assessment.pending.count == 1, let presented = question.subject.presented else {
            ruling.verdict = .denied(.severalTransactions)
            ruling.reasons.append("several policies ask for a transaction; one access can have one")
            return ruling
        }
        guard
            let binding = TransactionBinding(
                question.set, pending.policy, pending.condition, resource: question.resource,
                content: question.content, presented: presented)
        else {
            ruling.verdict = .denied(.unboundContent)
            ruling.reasons.append("\(pending.policy.name): binds method or body, and the question does not tell them")
            return ruling
        }
        if let id = question.transactionID {
            switch try await transactions.take(id: id, binding: binding) {
            case .taken(let record):
                ruling.verdict = .granted(assessment.actions, record)
                return ruling
            case .alreadyTaken(let record):
                ruling.reasons.append("the transaction was taken before")
                guard question.kind == .policy else {
                    ruling.verdict = .alreadyTaken(record)
                    return ruling
                }
            case .refused(let reason):
                ruling.reasons.append("the transaction was refused: \(reason.rawValue)")
                guard question.kind == .policy else {
                    ruling.verdict = .denied(.transaction(reason))
                    return ruling
                }
            }
        }
        let display = try TransactionDisplay.render(pending.policy.display, of: question.content)
        let record = try await transactions.create(
            question.kind, binding: binding, url: question.resource.url, display: display, ttl: pending.condition.ttl)
        ruling.verdict = .advised([Advice.Name.transaction.rawValue: [record.id]], record)
        return ruling
    }
}

/// One question to the policies.
struct PolicyQuestion {
    let set: PolicySet
    let kind: Transactions.Kind
    let resource: CanonicalResource
    let subject: DecisionSubject
    let action: String?
    let content: RequestContent?
    let clientAddress: IPv4Address?
    let transactionID: String?
}

/// The answer.
struct PolicyRuling {
    enum Verdict {
        case granted([String: Bool], TransactionRecord?)
        case advised([String: [String]], TransactionRecord?)
        case alreadyTaken(TransactionRecord)
        case denied(PolicyDenial)
    }

    var verdict: Verdict
    var reasons: [String]
    let actions: [String: Bool]
    let attributes: [String: [String]]

    init(_ verdict: Verdict, _ assessment: PolicyAssessment) {
        self.verdict = verdict
        reasons = assessment.reasons
        actions = assessment.actions
        attributes = assessment.attributes
    }

    func decision(of resource: String) -> PolicyDecision {
        switch verdict {
        case .granted(let actions, let taken):
            PolicyDecision(
                resource: resource, actions: actions, attributes: attributes,
                ttl: taken == nil ? PolicyDecision.noLimit : 0, reasons: reasons)
        case .advised(let advices, let record):
            PolicyDecision(
                resource: resource, advices: advices, ttl: record == nil ? PolicyDecision.noLimit : 0, reasons: reasons)
        case .denied(.notPermitted): PolicyDecision(resource: resource, actions: actions, reasons: reasons)
        case .denied, .alreadyTaken: PolicyDecision(resource: resource, reasons: reasons)
        }
    }
}

/// Why nothing is granted and nothing can be done about it.
package enum PolicyDenial: Sendable, Hashable {
    /// There is no live session.
    case noSession
    /// No policy covers the resource and the action for this subject and these circumstances.
    case noPolicy
    /// A policy denies the action.
    case notPermitted
    /// Two policies each ask for a transaction: a mistake in the configuration.
    case severalTransactions
    /// The policy binds a part of the request that was not told.
    case unboundContent
    /// The transaction that was named grants nothing; the reason is in the audit log and not for the client.
    case transaction(TransactionRefusal)
    /// The request cannot be put before the user, or there were too many of them: the error says which.
    case refused(EngineError)
    /// The engine or its database failed: nothing was granted.
    case unavailable
}
