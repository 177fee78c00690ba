import AssentCore

/// Where the approval of a transaction stands, as its own user may see it.
package enum ApprovalStage: Sendable, Equatable {
    /// Nobody has looked at it.
    case waiting
    /// The user is asked this.
    case page(AuthenticatePage)
    /// The user has approved; the request has not come yet. `isSafe` says that it only reads: a browser that is led to
    /// its URL sends it. Any other it cannot send.
    case approved(isSafe: Bool)
    /// The user has approved, and the request has come.
    case used
    /// The user said no.
    case declined
    /// Nobody answered on the user's device in time.
    case unanswered
    /// The user has no device that could answer.
    case noDevice
    /// The journey did not come to a yes: an answer was wrong.
    case failed
}

extension Authentication {
    /// The page of a journey that waits for an answer, once more: a browser loads pages again.
    ///
    /// - Parameters:
    ///   - authID: the pointer that came with the page.
    ///   - request: what the browser sends now.
    /// - Returns: the page.
    /// - Throws: ``EngineError``: `stepAlreadyAnswered` and `stepExpired` when it waits no longer;
    ///   ``SenderProofRefusal``.
    package func page(authID: String, _ request: AuthenticateRequest) async throws -> AuthenticatePage {
        try await context.translatingStoreErrors {
            let answering = try answering(PageAnswer(authID: authID, callbacks: nil, bytes: []), request)
            let pointer = try answering.pointer()
            let stepID = pointer.stepID
            guard let step = try await steps.find(stepID) else { throw EngineError(.stepExpired) }
            guard case .pending(let state) = step.status else { throw EngineError(.stepAlreadyAnswered) }
            // After the step: where it waits no longer, another journey begins with the same proof.
            let proof = try await proof(continuing: request, at: pointer)
            var page = try await answering.turn(step, state).waiting(stepID: stepID)
            page.newNonce = proof?.newNonce
            return page
        }
    }

    /// Where a transaction of the request's own session stands. Nothing begins by looking.
    ///
    /// - Throws: ``EngineError``: `transactionUnreadable` when it is unknown, of another session or expired;
    ///   ``SenderProofRefusal``.
    package func stage(transactionID: String, _ request: AuthenticateRequest) async throws -> ApprovalStage {
        try await context.translatingStoreErrors {
            guard let session = try await provedSession(request)?.session,
                let record = try await transactions.current(id: transactionID, session: session)
            else { throw EngineError.transactionUnreadable }
            switch record.state {
            case .created: return .waiting
            case .inProgress: return .page(try await page(transactionID: transactionID, request))
            case .completed:
                let method = record.binding.method ?? "GET"
                return .approved(isSafe: method == "GET" || method == "HEAD")
            case .taken: return .used
            case .declined: return try await refusal(transactionID)
            case .expired: throw EngineError.transactionUnreadable
            }
        }
    }

    /// Why a transaction was not approved, which the record of its journey tells.
    private func refusal(_ transactionID: String) async throws -> ApprovalStage {
        let ends = try await audit.records(transactionID: transactionID).filter { $0.event == .authenticate }
        return switch ends.last?.reason.flatMap(FailureCause.init) {
        case .declined: .declined
        case .expired: .unanswered
        case .noDevice: .noDevice
        default: .failed
        }
    }

    /// The page at which a transaction's journey waits.
    private func page(transactionID: String, _ request: AuthenticateRequest) async throws -> AuthenticatePage {
        let answering = try answering(PageAnswer(authID: "", callbacks: nil, bytes: []), request)
        var place = try await steps.pages(ofTransaction: transactionID)
        while let step = try await steps.find(steps.id(ofTransaction: transactionID, page: place)) {
            if case .pending(let state) = step.status {
                return try await answering.turn(step, state).waiting(stepID: step.id)
            }
            // It was answered since.
            place += 1
        }
        throw EngineError.transactionUnreadable
    }

    private func answering(_ answer: PageAnswer, _ request: AuthenticateRequest) throws -> Answering {
        guard let realm = realms[request.realm] else {
            throw EngineError(.unknownRealm, about: String(request.realm.prefix(100)))
        }
        return Answering(engine: self, realm: realm, request: request, answer: answer)
    }
}
