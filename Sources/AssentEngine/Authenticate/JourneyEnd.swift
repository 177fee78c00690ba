import AssentCore
import AssentStore
import Logging

/// One request's part of a journey.
struct JourneyStep: Sendable {
    let journey: Journey
    let settings: RealmAuthentication
    let request: AuthenticateRequest
    let session: LiveSession?
    let approval: PendingApproval?

    /// The step that is answered, and the claim on it; `nil` for a journey's first request.
    let answering: (id: String, claim: String)?
}

extension Authentication {
    /// Runs the journey on and stores where it got to, what it gives and the audit record: all of it, or nothing.
    func advance(
        _ step: JourneyStep, _ state: JourneyState, answers: [CallbackAnswer]?
    ) async throws -> AuthenticateReply {
        var state = state
        let run = JourneyRun(
            journey: step.journey, services: services, approval: step.approval, header: step.request.header,
            isFirstRequest: step.answering == nil)
        switch try await run(&state, answers: answers) {
        case .page(let content):
            return try await show(content, step, state)
        case .success:
            return try await succeed(step, state)
        case .failure(let reason):
            return try await fail(step, state, reason)
        }
    }

    private func show(
        _ content: JSONObject, _ step: JourneyStep, _ state: JourneyState
    ) async throws -> AuthenticateReply {
        let id = context.random.token(byteCount: 18)
        let authID = try await signer.sign(
            AuthID(step: id, realm: state.realm, expiresAt: state.expiresAt), journey: state.journey,
            now: context.clock.epochSeconds)
        let reply = AuthenticateReply.page(AuthenticatePage(authID: authID, content: content))
        try await commit(step, .success(reply), [steps.inserting(state, id: id)])
        return reply
    }

    private func succeed(_ step: JourneyStep, _ state: JourneyState) async throws -> AuthenticateReply {
        guard let userID = state.subject.userID, let user = try await services.users.find(id: userID) else {
            return try await fail(step, state, nil)
        }
        guard user.isActive else { return try await fail(step, state, nil, error: Self.inactive) }
        if let approval = step.approval, let session = step.session {
            // The very token that came: apps end the old session and drop all tokens when they see another.
            let reply = success(step, token: step.request.sessionToken, isNew: false)
            let record = record(.success, step, state, userID: userID, sessionAuditID: session.auditID)
            try await commit(
                step, .success(reply),
                transactions.completion(of: approval, session: session) + [audit.statement(record)])
            return reply
        }
        // A session that has ended meanwhile says nothing any more.
        if !state.subject.isProved, step.session == nil { return try await fail(step, state, nil) }
        if state.noSession {
            let reply = success(step, token: nil, isNew: false)
            let record = record(.success, step, state, userID: userID, sessionAuditID: nil)
            try await commit(step, .success(reply), [audit.statement(record)])
            return reply
        }
        let old = step.session
        let new = sessions.prepare(
            userID: userID, realm: state.realm, authLevel: max(state.authLevel, old?.authLevel ?? 0),
            limits: state.sessionLimits, properties: properties(state, old))
        let reply = success(step, token: new.token, isNew: true)
        let record = record(.success, step, state, userID: userID, sessionAuditID: new.auditID)
        var statements = state.sessionID.map { [sessions.ending(id: $0, mustExist: !state.subject.isProved)] } ?? []
        if let old { statements.append(audit.statement(ending(of: old, reason: "upgrade"))) }
        if let id = state.replacedSessionID, let replaced = try await sessions.live(id: id) {
            statements += [
                sessions.ending(id: id, mustExist: false), audit.statement(ending(of: replaced, reason: "replaced")),
            ]
        }
        try await commit(step, .success(reply), statements + [new.statement, audit.statement(record)])
        return reply
    }

    private func ending(of session: LiveSession, reason: String) -> AuditRecord {
        AuditRecord(
            "session.end", .success, reason: reason, realm: session.realm, userID: session.user.id,
            sessionAuditID: session.auditID)
    }

    private func properties(_ state: JourneyState, _ old: LiveSession?) -> JSONObject {
        var properties = old?.properties ?? JSONObject()
        for (name, value) in state.sessionProperties.sorted(by: { $0.key < $1.key }) {
            properties[name] = .string(value)
        }
        let passed = (old?.passedJourneys ?? []).filter { $0 != state.journey } + [state.journey]
        properties["Service"] = .string(passed.joined(separator: "|"))
        return properties
    }

    private func success(_ step: JourneyStep, token: Secret?, isNew: Bool) -> AuthenticateReply {
        .success(
            AuthenticateSuccess(
                token: token, isNewSession: isNew, successURL: step.settings.successURL, realm: step.request.realm))
    }

    private func fail(
        _ step: JourneyStep, _ state: JourneyState, _ reason: JourneyRun.Reason?, error: EngineError? = nil
    ) async throws -> AuthenticateReply {
        let claimed =
            state.subject.userID == nil
            ? try await services.users.find(username: state.subject.username ?? "", realm: state.realm) : nil
        let record = record(
            .refused, step, state, userID: state.subject.userID ?? claimed?.id, sessionAuditID: step.session?.auditID,
            reason: reason?.rawValue ?? (error == nil ? "loginFailure" : "inactive"))
        let result = failure(step, state, reason, error)
        try await commit(step, result, [audit.statement(record)])
        if let approval = step.approval, let session = step.session {
            do {
                _ = try await transactions.decline(id: approval.id, session: session)
            } catch {
                context.logger.warning("a failed transaction stays until its time is over")
            }
        }
        return try result.get()
    }

    private func failure(
        _ step: JourneyStep, _ state: JourneyState, _ reason: JourneyRun.Reason?, _ error: EngineError?
    ) -> Result<AuthenticateReply, EngineError> {
        if step.approval != nil, step.settings.failedTransaction == .success {
            return .success(success(step, token: step.request.sessionToken, isNew: false))
        }
        if let error { return .failure(error) }
        return switch reason {
        case .locked:
            .failure(EngineError(status: 401, "Your account has been locked.", errorCode: "112", failureURL: ""))
        case .differentUser where state.subject.hasSession && step.approval == nil:
            .failure(
                EngineError(
                    status: 401, "Session Upgrade fails since user is different than original authenticated user",
                    errorCode: "124"))
        default: .failure(.loginFailure)
        }
    }

    private func commit(
        _ step: JourneyStep, _ result: Result<AuthenticateReply, EngineError>, _ statements: [SQLStatement]
    ) async throws {
        var all = statements
        if let (id, claim) = step.answering {
            let reply = StoredReply(result, sessionID: step.approval == nil ? nil : step.session?.id)
            all.insert(try steps.finishing(id, claim: claim, reply: reply), at: 0)
        }
        do {
            _ = try await context.database.run(all)
        } catch let error as StoreError where error.code == .unexpectedCount {
            if error.statement == 0, step.answering != nil {
                throw EngineError(status: 400, "This step was answered before, with another answer.")
            }
            // Transaction or session ended between our look and this.
            throw step.approval == nil ? EngineError.timedOut : Transactions.unreadable
        }
    }

    private func record(
        _ outcome: AuditRecord.Outcome, _ step: JourneyStep, _ state: JourneyState, userID: String?,
        sessionAuditID: String?, reason: String? = nil
    ) -> AuditRecord {
        AuditRecord(
            "authenticate", outcome, reason: reason, realm: state.realm, userID: userID,
            sessionAuditID: sessionAuditID, transactionID: step.approval?.id,
            detail: JSONObject([.init(name: "journey", value: .string(state.journey))]))
    }

    private static let inactive = EngineError(status: 401, "User not Active", errorCode: "104", failureURL: "")
}
