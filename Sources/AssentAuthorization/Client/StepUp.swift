import AssentCore
import AssentJourney
import AssentTokens

extension AuthorizedClient {
    /// Runs the journey that an advice asks for, on top of the user's session; one at a time for the same advice.
    func stepUp(
        _ advice: Advice, for call: HTTPCall, _ approve: (inout Approval) async throws -> StepAction
    ) async throws {
        let request = try await RepeatableRequest(call)
        // A journey serves everybody who needs it, an approval only requests that are this one, whatever the server
        // says.
        var key = advice.json.serialized()
        if case .transaction = advice.kind { key += " \(request.method) \(request.url) \(request.bodySHA256)" }
        switch await coordinator.enter(key) {
        case .follow(let result): try result.get()
        case .lead:
            do {
                try await lead(advice, for: request, approve)
                await coordinator.leave(key, .success(()))
            } catch {
                if Task.isCancelled {
                    await coordinator.handOver(key)
                } else {
                    await coordinator.leave(key, .failure(error))
                }
                throw error
            }
        }
    }

    private func lead(
        _ advice: Advice, for request: RepeatableRequest,
        _ approve: (inout Approval) async throws -> StepAction
    ) async throws {
        guard let user = source.user else {
            throw AuthorizationError(.noSession, "Only a user's call can be approved. This one has no session.")
        }
        let session = try await user.session()
        var stated: (parts: Set<Approval.Part>, statement: TransactionStatement)?
        var isFirst = true
        if case .transaction = advice.kind, session == nil {
            throw AuthorizationError(.noSession, "There is no session that could approve this.")
        }
        let result: Session
        do {
            result = try await journeys.run(advice: advice, session: session) { step in
                if case .transaction(let id) = advice.kind {
                    if let statement = try TransactionStatement(step) {
                        stated = (try statement.compare(with: request, transactionID: id), statement)
                    }
                    if configuration.requiresBinding { try request.requireBinding(stated?.parts ?? []) }
                }
                var approval = Approval(
                    advice: advice, method: request.method, url: request.url,
                    display: stated?.statement.display ?? [],
                    binding: stated.map { .stated($0.parts) } ?? .notStated, expiresAt: stated?.statement.expiresAt,
                    isFirstStep: isFirst, step: step)
                isFirst = false
                let action = try await approve(&approval)
                step = approval.step
                return action
            }
        } catch let failure as JourneyFailure where failure.code == .declined {
            throw AuthorizationError(.declined, "The user declined.")
        } catch let error as JourneyError where error.code == .declined {
            throw AuthorizationError(.declined, error.detail, suggestion: error.suggestion)
        }
        if case .transaction = advice.kind, isFirst, configuration.requiresBinding { try request.requireBinding([]) }
        guard !result.token.isEmpty, result.token != session?.token else { return }
        if case .transaction = advice.kind {
            throw AuthorizationError(
                .sessionChanged, "The journey ended with another session, so the approval is not this session's.")
        }
        try await user.install(result)
    }
}
