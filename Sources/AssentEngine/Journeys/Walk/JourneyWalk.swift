import AssentCore

/// Walks a journey from where it stands to its next page or its end.
struct JourneyWalk: Sendable {
    let journey: Journey
    let realm: String
    let services: JourneyServices
    let approval: PendingApproval?
    let header: @Sendable (String) -> String?
    let isFirstRequest: Bool
    let clientAddress: String?

    /// Where the walk stopped.
    enum Stop: Sendable, Hashable {
        /// The user is asked this.
        case page(PageContent)
        /// The journey has succeeded.
        case success
        /// The journey has failed, for this cause where there is one.
        case failure(FailureCause?)
    }

    static let nodeLimit = 64

    /// How many pages there may be, without those that ask again whether something has happened elsewhere.
    static let pageLimit = 50

    /// Walks on with the answers to the page that waits; without answers from the journey's entry.
    ///
    /// - Parameters:
    ///   - progress: where the journey stands; afterwards, where it stands then.
    ///   - answers: one for each callback that the node has asked.
    /// - Returns: where the walk stopped.
    /// - Throws: what a node throws, and ``EngineError`` for a journey that cannot run.
    func on(from progress: inout JourneyProgress, answers: [CallbackResponse]?) async throws -> Stop {
        var context = NodeContext(
            progress: progress, answers: answers, password: nil, realm: realm, approval: approval, header: header,
            isFirstRequest: isFirstRequest, clientAddress: clientAddress, services: services)
        let stop = try await walk(&context)
        progress = context.progress
        return stop
    }

    private func walk(_ context: inout NodeContext) async throws -> Stop {
        for _ in 0..<Self.nodeLimit {
            let id = context.progress.nodeID
            guard let node = journey.nodes[id] else { throw broken("\(id) is not a node") }
            switch try await node.process(&context) {
            case .ask(let prompts, let presentation):
                guard !prompts.isEmpty else { throw broken("\(id) asks nothing") }
                return page(prompts, presentation, &context.progress)
            case .outcome(let outcome):
                if context.progress.subject.changed { return .failure(.differentUser) }
                switch journey.definition.nodes[id]?.outcomes[outcome] {
                case .node(let next):
                    context.progress.nodeID = next
                    context.progress.memory = JSONObject()
                    context.answers = nil
                case .success: return success(context.progress)
                case .failure: return .failure(context.progress.failure)
                case nil: throw broken("\(id) has no outcome \(outcome)")
                }
            }
        }
        throw broken("it goes round in circles")
    }

    private func success(_ progress: JourneyProgress) -> Stop {
        guard approval != nil else { return .success }
        // Nobody has approved what nobody was asked, and a journey that leads on does not undo a no.
        if progress.pages == 0 { return .failure(.nothingAsked) }
        guard let no = progress.failure, no == .declined || no == .failedOnDevice else { return .success }
        return .failure(no)
    }

    private func page(
        _ prompts: [CallbackPrompt], _ presentation: PagePresentation, _ progress: inout JourneyProgress
    ) -> Stop {
        var added: [CallbackPrompt] = []
        if let approval, progress.pages == 0, !prompts.contains(.approval(approval)) { added = approval.prompts }
        let asked = added + prompts
        progress.isAskedAgain = asked == progress.asked && presentation == progress.presentation
        let isPoll = progress.isAskedAgain && prompts.contains { $0.kind == .pollingWait }
        // How long a page waits is bounded by the journey's time. A client lets a second pass before it asks again.
        guard isPoll ? progress.polls < journey.definition.timeout : progress.pages - progress.polls < Self.pageLimit
        else { return .failure(.tooManyPages) }
        if isPoll { progress.polls += 1 }
        progress.pages += 1
        progress.added = added.count
        progress.asked = asked
        progress.presentation = presentation
        return .page(PageContent(presentation: presentation, prompts: progress.asked))
    }

    private func broken(_ what: String) -> EngineError {
        EngineError.internalFailure("The journey \(journey.definition.name) is broken: \(what).")
    }
}
