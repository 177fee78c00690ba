import AssentCore
import AssentStore
import Logging

/// One request's turn in a journey, once its session and its approval are checked: walk → store → reply.
struct JourneyTurn: Sendable {
    let engine: Authentication
    let realm: RealmSignIn
    let request: AuthenticateRequest
    let journey: Journey
    let session: LiveSession?
    let approval: PendingApproval?
    let state: JourneyState

    /// Walks the journey on and stores where it got to, what it gives and the audit record: all of it, or nothing.
    ///
    /// - Parameters:
    ///   - responses: the answers to the page that waits; `nil` for a journey's first request.
    ///   - claim: the claim on the step that is answered.
    /// - Returns: the reply.
    /// - Throws: ``EngineError``; also for a journey that has failed.
    func reply(to responses: [CallbackResponse]?, _ claim: StepClaim?) async throws -> AuthenticateReply {
        var state = state
        let walk = JourneyWalk(
            journey: journey, realm: state.realm, services: engine.services, approval: approval,
            header: request.header, isFirstRequest: claim == nil, clientAddress: request.clientAddress)
        let stop = try await walk.on(from: &state.progress, answers: responses)
        let end = JourneyEnd(turn: self, state: state)
        let outcome: JourneyOutcome =
            switch stop {
            case .page(let content): try await page(content, state)
            case .success: try await end.success()
            case .failure(let cause): try await end.failure(cause)
            }
        try await commit(outcome, claim)
        if outcome.isFailure { await decline() }
        return try outcome.result.get()
    }

    private func page(_ content: PageContent, _ state: JourneyState) async throws -> JourneyOutcome {
        let id =
            approval.map { engine.steps.id(ofTransaction: $0.id, page: state.progress.pages) }
            ?? engine.context.random.token(byteCount: 18)
        return JourneyOutcome(
            result: .success(.page(try await shown(content, state, stepID: id))),
            statements: [try engine.steps.inserting(state, id: id)])
    }

    /// The page that waits, once more.
    func waiting(stepID: String) async throws -> AuthenticatePage {
        let progress = state.progress
        return try await shown(
            PageContent(presentation: progress.presentation, prompts: progress.asked), state, stepID: stepID)
    }

    private func shown(_ content: PageContent, _ state: JourneyState, stepID: String) async throws -> AuthenticatePage {
        let authID = try await engine.signer.sign(
            AuthID(
                stepID: stepID, realm: state.realm, expiresAt: state.expiresAt, keyThumbprint: state.keyThumbprint),
            journey: state.journey, now: engine.context.clock.epochSeconds)
        var page = AuthenticatePage(authID: authID, content: content)
        page.isAskedAgain = state.progress.isAskedAgain
        page.typedName = page.isAskedAgain ? state.progress.subject.username : nil
        if let approval, let session {
            page.approving = ApprovalInProgress(approval: approval, username: session.user.username)
        }
        return page
    }

    private func commit(_ outcome: JourneyOutcome, _ claim: StepClaim?) async throws {
        // The transaction or the session ended between our look and this.
        let ended = approval == nil ? EngineError(.stepExpired) : EngineError.transactionUnreadable
        var statements = outcome.statements.map { GuardedStatement($0, else: ended) }
        if let claim {
            let reply = StoredReply(outcome.result, sessionID: approval == nil ? nil : session?.id)
            let finishing = try engine.steps.finishing(claim, reply: reply)
            statements.insert(GuardedStatement(finishing, else: EngineError(.stepAnsweredDifferently)), at: 0)
        }
        if case .refused(let error) = try await engine.context.database.attempt(statements) { throw error }
    }

    private func decline() async {
        guard let approval, let session else { return }
        do {
            _ = try await engine.transactions.decline(id: approval.id, session: session)
        } catch {
            engine.context.logger.warning("a failed transaction stays until it expires")
        }
    }
}

/// What a turn leads to: the reply, and what must be stored together with it.
struct JourneyOutcome: Sendable {
    /// The reply.
    let result: Result<AuthenticateReply, EngineError>

    /// What is stored in one transaction with the end of the step.
    let statements: [SQLStatement]

    /// Whether the journey has failed, whatever the client is told.
    var isFailure = false
}
