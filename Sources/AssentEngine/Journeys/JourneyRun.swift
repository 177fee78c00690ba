import AssentCore

/// Runs a journey from where it stands to its next page or its end.
struct JourneyRun {
    let journey: Journey
    let services: JourneyServices
    let approval: PendingApproval?
    let header: @Sendable (String) -> String?
    let isFirstRequest: Bool

    /// Where it got to.
    enum Stop {
        /// The user must be asked.
        case page(JSONObject)
        /// It has succeeded.
        case success
        /// It has failed, for this reason where there is one.
        case failure(Reason?)
    }

    /// Why it has failed, besides what its nodes said.
    enum Reason: String {
        case locked
        case declined
        /// A node proved another user than the one who was there.
        case differentUser
        /// A transaction's journey came to its end without having asked anything.
        case nothingAsked
        case tooManyPages
    }

    static let nodeLimit = 64
    static let pageLimit = 50

    func callAsFunction(_ state: inout JourneyState, answers: [CallbackAnswer]?) async throws -> Stop {
        var context = NodeContext(
            nodeID: state.node, realm: state.realm, answers: answers, shared: state.shared, memory: state.memory,
            password: nil, subject: state.subject, approval: approval, authLevel: state.authLevel,
            sessionProperties: state.sessionProperties, sessionLimits: state.sessionLimits, failure: state.failure,
            header: header, isFirstRequest: isFirstRequest, services: services)
        let stop = try await walk(&context, &state)
        state.shared = context.shared
        state.memory = context.memory
        state.subject = context.subject
        state.authLevel = context.authLevel
        state.sessionProperties = context.sessionProperties
        state.sessionLimits = context.sessionLimits
        state.failure = context.failure
        return stop
    }

    private func walk(_ context: inout NodeContext, _ state: inout JourneyState) async throws -> Stop {
        for _ in 0..<Self.nodeLimit {
            guard let node = journey.nodes[context.nodeID] else { throw broken("\(context.nodeID) is no node") }
            switch try await node.process(&context) {
            case .ask(let prompts):
                guard !prompts.isEmpty else { throw broken("\(context.nodeID) asks nothing") }
                return page(prompts, (node as? PageNode)?.presentation, context, &state)
            case .outcome(let outcome):
                if context.subject.changed { return .failure(.differentUser) }
                switch journey.definition.nodes[context.nodeID]?.outcomes[outcome] {
                case .node(let next):
                    context.nodeID = next
                    context.answers = nil
                    context.memory = JSONObject()
                case .success: return success(context, state)
                case .failure: return .failure(context.failure.flatMap { Reason(rawValue: $0.rawValue) })
                case nil: throw broken("\(context.nodeID) has no outcome \(outcome)")
                }
            }
        }
        throw broken("it goes round in circles")
    }

    private func success(_ context: NodeContext, _ state: JourneyState) -> Stop {
        guard approval != nil else { return .success }
        // What nobody was asked, nobody has approved; and a no is not undone by a way that leads on.
        if state.pages == 0 { return .failure(.nothingAsked) }
        return context.failure == .declined ? .failure(.declined) : .success
    }

    private func page(
        _ prompts: [CallbackPrompt], _ presentation: PagePresentation?, _ context: NodeContext,
        _ state: inout JourneyState
    ) -> Stop {
        guard state.pages < Self.pageLimit else { return .failure(.tooManyPages) }
        var all = prompts
        state.prefix = 0
        if let approval, state.pages == 0, !prompts.contains(.metadata(approval.metadata)) {
            all = approval.prompts + prompts
            state.prefix = approval.prompts.count
        }
        state.node = context.nodeID
        state.pages += 1
        state.pending = PendingCallbacks(all)
        var content = JSONObject()
        content["stage"] = presentation?.stage.map(JSONValue.string)
        content["header"] = presentation?.header.map(JSONValue.string)
        content["description"] = presentation?.description.map(JSONValue.string)
        content["callbacks"] = .array(all.enumerated().map { $1.json(at: $0) })
        return .page(content)
    }

    private func broken(_ what: String) -> EngineError {
        EngineError(status: 500, "The journey \(journey.definition.name) is broken: \(what).")
    }
}
