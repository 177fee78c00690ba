import AssentCore

extension AccessSettlement {
    /// Whether `caller` may ask about `subject` in a realm, which must be their own. Everybody may ask about
    /// themselves; about others only somebody with the role `pep` or `admin`.
    ///
    /// - Throws: ``EngineError`` `forbidden`.
    package func authorize(
        _ caller: LiveSession, toAskAbout subject: DecisionSubject, realm: String
    ) throws(EngineError) {
        guard caller.realm == realm else { throw .forbidden }
        if let asked = subject.presented?.session, asked.id == caller.id { return }
        guard Self.isEnforcementPoint(caller) else { throw .forbidden }
    }

    /// Whether somebody may ask about others, and why it was decided so.
    package static func isEnforcementPoint(_ caller: LiveSession) -> Bool {
        Door.administration.admits(caller) && !caller.user.roles.isDisjoint(with: [.pep, .admin])
    }

    /// Decides on resources, as AM's `policies?_action=evaluate` does, for a caller who must have the right to ask.
    ///
    /// The client's address (`IP` in the environment) is believed only of an enforcement point.
    /// A transaction id that does not help (unknown, expired, for another request) is not an error: the decision
    /// carries the advice of a new transaction.
    /// - Throws: ``EngineError``: `forbidden` as ``authorize(_:toAskAbout:realm:)``, and where users may not ask the
    ///   set about themselves (``PolicySet/selfEvaluation``); `unknownPolicySet`,
    ///   `invalidResources`, what ``TransactionDisplay`` throws for a body that cannot be shown to the user;
    ///   `unavailable`.
    package func settle(_ request: EvaluateRequest, caller: LiveSession) async throws -> [PolicyDecision] {
        try authorize(caller, toAskAbout: request.subject, realm: request.realm)
        let address = (request.environment["IP"] ?? request.environment["requestIp"])?.first.flatMap(IPAddress.init)
        guard let set = decisions.policySet(request.policySet, realm: request.realm) else {
            throw EngineError(.unknownPolicySet, about: request.policySet)
        }
        guard set.selfEvaluation || Self.isEnforcementPoint(caller) else { throw EngineError.forbidden }
        guard !request.resources.isEmpty, request.resources.count <= EvaluateRequest.maximumResources else {
            throw EngineError(.invalidResources)
        }
        let presented = request.subject.presented
        var facts = PolicyFacts(
            session: presented?.session.realm == request.realm ? presented?.session : nil,
            clientAddress: Self.isEnforcementPoint(caller) ? address : nil, now: context.clock.epochSeconds)
        facts.claims = request.subject.verifiedClaims
        try await addSightings(to: &facts, for: set.policies)
        let content = RequestContent(environment: request.environment)
        let body = ShownBody(content)
        var transactionID = request.environment["TxId"]?.first
        var hasTaken = false
        var answers: [PolicyDecision] = []
        for text in request.resources {
            guard let resource = try? CanonicalResource(text) else {
                answers.append(PolicyDecision(resource: text, reasons: ["the resource has no canonical form"]))
                continue
            }
            var question = AccessQuestion(
                matched: decisions.match(set, resource: resource, action: nil), maker: .caller(caller.user.id),
                facts: facts, presented: presented, content: content, transactionID: transactionID, body: body,
                idempotencyKey: request.idempotencyKey)
            question.reportsOutcome = request.reportsOutcome && Self.isEnforcementPoint(caller)
            do {
                let settled = try await settle(question)
                if case .granted(.some(let taken)) = settled.decision {
                    // From here on it is not known what becomes of the request, until the enforcement point says it.
                    if question.reportsOutcome { try await noteForwarding(of: taken) }
                    transactionID = nil
                    hasTaken = true
                }
                answers.append(settled.answer(about: text))
            } catch let error as EngineError where hasTaken || error.code == .tooManyRequests {
                // An access that was just spent must still be reported.
                answers.append(PolicyDecision(resource: text, reasons: [error.detail]))
            }
        }
        return answers
    }
}

extension SettledAccess {
    fileprivate func answer(about resource: String) -> PolicyDecision {
        switch decision {
        case .granted(let taken):
            PolicyDecision(
                resource: resource, actions: assessment.actions, attributes: assessment.attributes,
                ttl: taken == nil ? ttl : 0, reasons: reasons)
        case .advised(let advice, let record):
            PolicyDecision(
                resource: resource,
                advices: Dictionary(
                    advice.entries.map { ($0.name.rawValue, $0.values) }, uniquingKeysWith: ConditionOutcome.union),
                ttl: record == nil ? ttl : 0, reasons: reasons)
        case .denied(.notPermitted):
            PolicyDecision(resource: resource, actions: assessment.actions, ttl: ttl, reasons: reasons)
        case .alreadyTaken(let record): PolicyDecision(resource: resource, used: record, reasons: reasons)
        case .denied: PolicyDecision(resource: resource, ttl: ttl, reasons: reasons)
        }
    }

    /// Until when the decision may be kept, in milliseconds since 1970.
    private var ttl: Int64 { assessment.nextChange.map { $0 * 1000 } ?? PolicyDecision.noLimit }
}
