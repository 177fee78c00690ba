import AssentCore
import AssentStore

/// The end of a journey: what a success gives, and what is said of a failure.
struct JourneyEnd: Sendable {
    let turn: JourneyTurn
    let state: JourneyState

    private var engine: Authentication { turn.engine }
    private var subject: JourneySubject { state.progress.subject }

    /// The journey has succeeded: a session, the approval of the transaction, or neither when none was wanted.
    func success() async throws -> JourneyOutcome {
        guard let userID = subject.userID, let user = try await engine.services.users.find(id: userID) else {
            return try await failure(nil)
        }
        guard user.isActive else { return try await failure(nil, error: EngineError(.userInactive)) }
        guard user.epoch == subject.epoch else { return try await failure(.outdated) }
        if let approval = turn.approval, let session = turn.session {
            // The very token that came: apps end the old session and drop all tokens when they see another.
            var completion = engine.transactions.completion(of: approval, session: session)
            if state.progress.isSigned {
                guard let signing = engine.services.signing[state.realm] else { throw EngineError.unavailable }
                completion += try await signing.questions.taking(approval)
            }
            completion += remembering(user)
            return JourneyOutcome(
                result: .success(
                    reply(token: turn.request.sessionToken, key: session.sender?.keyThumbprint, isNew: false)),
                statements: completion + [noted(.success, userID: userID, sessionAuditID: session.auditID)])
        }
        // A session that has ended meanwhile proves nothing any more. One that no journey has made would become one
        // that a journey has made.
        if !subject.isProved, turn.session?.isOfJourney != true { return try await failure(nil) }
        // Nor does it say any more who is there: a code or a password alone would make a session of one that has ended.
        if state.sessionID != nil, turn.session == nil, subject.username == nil { return try await failure(nil) }
        if state.noSession {
            return JourneyOutcome(
                result: .success(reply(token: nil, isNew: false)),
                statements: [noted(.success, userID: userID, sessionAuditID: nil)])
        }
        do {
            return try await newSession(of: user)
        } catch let error as EngineError where error.code == .statelessRefused {
            // The app was narrowed, or its installation removed, since the journey began.
            return try await failure(nil, error: error)
        }
    }

    private func newSession(of user: User) async throws -> JourneyOutcome {
        let (old, userID) = (turn.session, user.id)
        // A session keeps its kind, whatever is proved in it later.
        let kind = old?.kind ?? (state.isStateless ? .stateless : .user)
        var limits = state.progress.sessionLimits
        if kind == .stateless {
            let lifetime = try await engine.statelessLifetime(of: state.keyThumbprint, in: state.realm)
            limits.maxSession = min(limits.maxSession, lifetime)
            limits.maxIdle = limits.maxSession
        }
        // A journey that has asked nothing has proved nothing: its user has not signed in anew, and who has taken a
        // session away could else make it fresh by it, keep it, and raise its level and that of its grants.
        let kept = subject.isProved ? nil : old
        if let kept {
            let end = min(kept.expiresAt, engine.context.clock.epochSeconds + limits.maxSession)
            limits.maxSession = end - kept.createdAt
            limits.maxIdle = min(kept.maxIdle, limits.maxIdle)
        }
        let level = subject.isProved ? state.progress.authLevel : 0
        // A step-up keeps the key, and a session without one does not get one by it.
        let sender = old.map(\.sender) ?? SenderBinding(keyThumbprint: state.keyThumbprint)
        var new = engine.sessions.prepare(
            userID: userID, epoch: subject.epoch, realm: state.realm,
            authLevel: max(level, old?.authLevel ?? 0),
            limits: limits, properties: properties(old), sender: sender)
        new.row.journeyLevel = level
        if let kept { new.row.authTime = kept.createdAt }
        new.row.kind = kind
        var statements =
            old.flatMap { $0.user.id == userID ? engine.sessions.inheriting(from: $0, to: new) : nil }
            ?? [new.statement]
        // The new one has taken over its level, the journeys that it has passed, and what it ends with. It may have
        // ended meanwhile, and then there is nothing to take over.
        if let id = state.sessionID { statements.append(engine.sessions.ending(id: id, mustExist: old != nil)) }
        if let old {
            statements.append(ended(old, reason: "upgrade"))
            if old.user.id == userID { statements.append(engine.sessions.movingGrants(from: old, to: new)) }
        }
        if let id = state.replacedSessionID, let replaced = try await engine.sessions.live(id: id) {
            statements += [engine.sessions.ending(id: id, mustExist: false), ended(replaced, reason: "replaced")]
        }
        if subject.isProved { statements += remembering(user) }
        statements.append(noted(.success, userID: userID, sessionAuditID: new.auditID))
        return JourneyOutcome(
            result: .success(reply(token: new.token, key: sender?.keyThumbprint, isNew: true, kind: kind)),
            statements: statements)
    }

    /// What remembers where the user was, in realms that ask for it. It has the level of this journey and not that of
    /// the session: whoever has taken a session away must not make their own network usual at its level.
    private func remembering(_ user: User) -> [SQLStatement] {
        guard turn.realm.remembersNetworks, let address = turn.request.clientIP else { return [] }
        let hasProved = subject.isProved || state.progress.isSigned
        return [
            UsualNetworks(engine.context).remembering(
                user, epoch: subject.epoch, at: address, level: hasProved ? state.progress.authLevel : 0)
        ]
    }

    private func properties(_ old: LiveSession?) -> JSONObject {
        var properties = old?.properties ?? JSONObject()
        for (name, value) in state.progress.sessionProperties.sorted(by: { $0.key < $1.key }) {
            properties[name] = .string(value)
        }
        let passed = (old?.passedJourneys ?? []).filter { $0 != state.journey } + [state.journey]
        properties["Service"] = .string(passed.joined(separator: "|"))
        return properties
    }

    /// The journey has failed.
    func failure(_ cause: FailureCause?, error: EngineError? = nil) async throws -> JourneyOutcome {
        let users = engine.services.users
        let claimed =
            if let id = subject.userID {
                try await users.find(id: id)
            } else {
                try await users.find(username: subject.username ?? "", realm: state.realm)
            }
        let record = noted(
            .refused, userID: claimed?.id, sessionAuditID: turn.session?.auditID,
            reason: cause?.rawValue ?? reason(of: error), username: claimed?.username)
        return JourneyOutcome(result: told(cause, error), statements: [record], isFailure: true)
    }

    private func reason(of error: EngineError?) -> String {
        switch error?.code {
        case nil: "loginFailure"
        case .statelessRefused?: "stateless"
        default: "inactive"
        }
    }

    /// What the client is told of a failure.
    private func told(_ cause: FailureCause?, _ error: EngineError?) -> Result<AuthenticateReply, EngineError> {
        let error = error ?? EngineError(code(of: cause))
        guard turn.approval != nil, turn.realm.failedTransaction == .success else { return .failure(error) }
        return .success(
            reply(
                token: turn.request.sessionToken, key: turn.session?.sender?.keyThumbprint, isNew: false,
                failure: error.code))
    }

    private func code(of cause: FailureCause?) -> EngineError.Code {
        switch cause {
        case .locked: .accountLocked
        case .declined, .failedOnDevice: .declined
        case .expired: .approvalExpired
        case .noDevice: .noDevice
        case .differentUser where subject.hasSession && turn.approval == nil: .differentUser
        default: .loginFailed
        }
    }

    private func reply(
        token: Secret?, key: String? = nil, isNew: Bool, kind: SessionKind = .user,
        failure: EngineError.Code? = nil
    ) -> AuthenticateReply {
        var success = AuthenticateSuccess(
            token: token, isNewSession: isNew, successURL: turn.realm.successURL, realm: turn.request.realm)
        success.failure = failure
        success.keyThumbprint = key
        success.kind = kind
        return .success(success)
    }

    private func ended(_ session: LiveSession, reason: String) -> SQLStatement {
        engine.audit.statement(
            AuditRecord(
                .sessionEnd, .success, reason: reason, realm: session.realm, userID: session.user.id,
                sessionAuditID: session.auditID))
    }

    private func noted(
        _ outcome: AuditRecord.Outcome, userID: String?, sessionAuditID: String?, reason: String? = nil,
        username: String? = nil
    ) -> SQLStatement {
        var detail: JSONObject = ["journey": .string(state.journey)]
        detail["kind"] = state.isStateless ? .string(SessionKind.stateless.rawValue) : nil
        detail["username"] = username.map(JSONValue.string)
        detail["address"] = turn.request.clientAddress.map(JSONValue.string)
        return engine.audit.statement(
            AuditRecord(
                .authenticate, outcome, reason: reason, realm: state.realm, userID: userID,
                sessionAuditID: sessionAuditID, transactionID: turn.approval?.id, detail: detail))
    }
}

extension LiveSession {
    /// The journeys that it has passed (AM's property `Service`).
    var passedJourneys: [String] {
        properties["Service"]?.string?.split(separator: "|").map(String.init) ?? []
    }
}
