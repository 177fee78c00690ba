import AssentCore
import AssentStore
import Logging

/// `authenticate`: runs journeys page by page, and gives sessions and approvals at their end.
package struct Authentication: Sendable {
    let context: EngineContext
    let realms: [String: Realm]
    let transactions: any TransactionApprovals
    let services: JourneyServices
    let sessions: Sessions
    let audit: AuditLog
    let steps: JourneySteps
    let signer: AuthIDSigner
    let starts: AttemptCounter
    let startsPerMinute: Int64
    let inFlight = StepsInFlight()

    struct Realm: Sendable {
        let settings: RealmAuthentication
        let journeys: [String: Journey]
    }

    /// A service.
    ///
    /// - Parameters:
    ///   - context: what the engine stands on.
    ///   - settings: the realms with their journeys.
    ///   - transactions: what journeys may approve.
    ///   - passwords: what checks them.
    ///   - oneTimePasswords: what checks them.
    ///   - catalog: the types of node that the journeys may use.
    /// - Throws: the first ``SettingsIssue`` of the first journey that has one.
    package init(
        _ context: EngineContext, settings: AuthenticationSettings, transactions: any TransactionApprovals,
        passwords: Passwords, oneTimePasswords: OneTimePasswords, catalog: NodeCatalog = .standard
    ) throws {
        self.context = context
        self.transactions = transactions
        services = JourneyServices(users: Users(context), passwords: passwords, oneTimePasswords: oneTimePasswords)
        sessions = Sessions(context)
        audit = AuditLog(context)
        steps = JourneySteps(context)
        signer = AuthIDSigner(context.masterKey)
        starts = AttemptCounter(context)
        startsPerMinute = settings.startsPerMinute
        realms = try settings.realms.mapValues { realm in
            if let name = realm.defaultJourney, realm.journeys[name] == nil {
                throw SettingsIssue(path: "defaultJourney", "there is no journey \(name)")
            }
            return Realm(settings: realm, journeys: try realm.journeys.mapValues { try Journey($0, catalog: catalog) })
        }
    }

    /// Answers one POST to `authenticate`.
    ///
    /// - Throws: ``EngineError`` with AM's statuses and texts; with 400 and 503 nothing has changed.
    package func authenticate(_ request: AuthenticateRequest) async throws -> AuthenticateReply {
        guard let realm = realms[request.realm] else {
            throw EngineError(status: 400, "Invalid realm, \(request.realm.prefix(100))")
        }
        if request.suspendedID != nil {
            // Apps look for the name of this class. No journey can be suspended yet, so no id is good.
            throw EngineError(
                status: 401,
                "org.forgerock.openam.auth.nodes.framework.token.SuspendedAuthSessionException: "
                    + "Token not found. It may have expired.")
        }
        return try await context.translatingStoreErrors {
            if let authID = request.body["authId"] {
                guard let token = authID.string else {
                    throw EngineError(status: 400, "Failed to parse JWT, malformed")
                }
                return try await proceed(request, realm, authID: signer.verify(token))
            }
            guard request.body.members.isEmpty else {
                throw EngineError(status: 400, "Failed to parse JWT, the authId is missing")
            }
            return try await start(request, realm)
        }
    }

    /// Deletes the steps of journeys whose time is over. Returns how many.
    package func purge() async throws -> Int {
        try await context.translatingStoreErrors { try await steps.purge() }
    }

    private func start(_ request: AuthenticateRequest, _ realm: Realm) async throws -> AuthenticateReply {
        let choice = try request.choice(in: realm.settings)
        if let address = request.clientAddress {
            guard try await starts.attempt("start:\(address)", limit: startsPerMinute, window: 60) else {
                throw EngineError(status: 429, "Too many journeys were begun from this address. Try again in a minute.")
            }
        }
        let session = try await liveSession(request)
        switch choice {
        case .transaction(let id):
            guard let session else {
                try await refuse(transactionID: id, realm: request.realm, reason: "session")
                throw Transactions.unreadable
            }
            let approval = try await transactions.start(id: id, session: session)
            guard let journey = realm.journeys[approval.journey] else {
                context.logger.error("a policy names a missing journey", metadata: ["journey": "\(approval.journey)"])
                _ = try await transactions.decline(id: id, session: session)
                throw EngineError.noConfiguration
            }
            return try await begin(journey, realm, request, session: session, approval: approval)
        case .standard:
            if let session, !request.forceAuth, !request.replacesSession {
                return try await existing(session, request, realm)
            }
            guard let name = realm.settings.defaultJourney else { throw EngineError.noConfiguration }
            return try await begin(try runnable(name, in: realm), realm, request, session: session, approval: nil)
        case .journey(let name, let always):
            let journey = try runnable(name, in: realm)
            if let session, !request.forceAuth, !request.replacesSession, !always, !journey.definition.mustRun,
                session.passedJourneys.contains(name)
            {
                return try await existing(session, request, realm)
            }
            return try await begin(journey, realm, request, session: session, approval: nil)
        }
    }

    private func runnable(_ name: String, in realm: Realm) throws -> Journey {
        guard let journey = realm.journeys[name], !journey.definition.transactionalOnly else {
            throw EngineError.noConfiguration
        }
        return journey
    }

    private func existing(
        _ session: LiveSession, _ request: AuthenticateRequest, _ realm: Realm
    ) async throws -> AuthenticateReply {
        try await sessions.touch(session)
        return .success(
            AuthenticateSuccess(
                token: request.noSession ? nil : request.sessionToken, isNewSession: false,
                successURL: realm.settings.successURL, realm: request.realm))
    }

    private func begin(
        _ journey: Journey, _ realm: Realm, _ request: AuthenticateRequest, session: LiveSession?,
        approval: PendingApproval?
    ) async throws -> AuthenticateReply {
        let isReplaced = request.replacesSession && approval == nil
        let kept = isReplaced ? nil : session
        var state = JourneyState(
            journey, realm: request.realm, session: kept, approval: approval, noSession: request.noSession,
            limits: realm.settings.sessionLimits, now: context.clock.epochSeconds)
        if isReplaced { state.replacedSessionID = session?.id }
        let step = JourneyStep(
            journey: journey, settings: realm.settings, request: request, session: kept, approval: approval,
            answering: nil)
        return try await advance(step, state, answers: nil)
    }

    private func proceed(
        _ request: AuthenticateRequest, _ realm: Realm, authID: AuthID
    ) async throws -> AuthenticateReply {
        guard authID.realm == request.realm else {
            throw EngineError(status: 400, "The authId belongs to another realm.")
        }
        // The digest covers the whole body, so that an answer is the same only when every byte is.
        let body = request.rawBody.isEmpty ? JSONValue.object(request.body).serializedBytes() : request.rawBody
        let digest = steps.digest(of: body, id: authID.step)
        while true {
            guard let stored = try await steps.find(authID.step) else { throw EngineError.timedOut }
            let sealed: [UInt8]
            switch stored.status {
            case .answered(let answer, let time, let reply):
                return try await repeated(stored, digest, answer: answer, at: time, sealedReply: reply, request)
            case .pending(let state):
                sealed = state
            }
            guard stored.expiresAt > context.clock.epochSeconds else { throw EngineError.timedOut }
            let state = try steps.state(sealed, id: stored.id)
            guard let journey = realm.journeys[state.journey] else { throw EngineError.noConfiguration }
            let (session, approval) = try await binding(of: state, request)
            let answers = try state.pending.answers(in: request.body["callbacks"])
            guard try await inFlight.enter(stored.id) else { continue }
            // Carried through whatever becomes of the connection: half a step would be worse than a reply that nobody reads.
            let work = Task {
                do {
                    let reply = try await answer(
                        stored.id, digest, Array(answers.dropFirst(state.prefix)), state, journey, realm, request,
                        session, approval)
                    await inFlight.leave(stored.id)
                    return reply
                } catch {
                    await inFlight.leave(stored.id)
                    throw error
                }
            }
            return try await work.value
        }
    }

    private func answer(
        _ id: String, _ digest: String, _ answers: [CallbackAnswer], _ state: JourneyState, _ journey: Journey,
        _ realm: Realm, _ request: AuthenticateRequest, _ session: LiveSession?, _ approval: PendingApproval?
    ) async throws -> AuthenticateReply {
        guard let claim = try await steps.claim(id, digest: digest) else {
            // Another process has it, or had it between our look and this.
            guard let stored = try await steps.find(id),
                case .answered(let answer, let time, let reply) = stored.status
            else { throw Self.beingAnswered }
            return try await repeated(stored, digest, answer: answer, at: time, sealedReply: reply, request)
        }
        do {
            let step = JourneyStep(
                journey: journey, settings: realm.settings, request: request, session: session, approval: approval,
                answering: (id, claim))
            return try await advance(step, state, answers: answers)
        } catch {
            // Without effect on a step that was answered by its journey's failure.
            do {
                try await steps.release(id, claim: claim)
            } catch {
                context.logger.warning("a claimed step could not be released; its lease will end")
            }
            throw error
        }
    }

    private func repeated(
        _ step: JourneySteps.Step, _ digest: String, answer: String, at time: Int64, sealedReply: [UInt8],
        _ request: AuthenticateRequest
    ) async throws -> AuthenticateReply {
        let now = context.clock.epochSeconds
        guard now < time + JourneySteps.replyRetention else {
            throw step.expiresAt <= now
                ? EngineError.timedOut
                : EngineError(status: 400, "This step was answered before.", errorCode: "110")
        }
        guard ConstantTime.equal(digest, answer) else {
            throw EngineError(status: 400, "This step was answered before, with another answer.")
        }
        let reply = try steps.reply(sealedReply, id: step.id)
        if let sessionID = reply.sessionID {
            guard try await liveSession(request)?.id == sessionID else { throw Transactions.unreadable }
        }
        return try reply.result.get()
    }

    /// The session and the approval that a step of a transaction needs; in another journey, the session it began with, if
    /// it is still alive.
    private func binding(
        of state: JourneyState, _ request: AuthenticateRequest
    ) async throws -> (LiveSession?, PendingApproval?) {
        guard let transactionID = state.transactionID else {
            guard let id = state.sessionID else { return (nil, nil) }
            return (try await sessions.live(id: id), nil)
        }
        guard let session = try await liveSession(request), session.id == state.sessionID,
            session.user.id == state.sessionUserID
        else {
            try await refuse(transactionID: transactionID, realm: request.realm, reason: "session")
            throw Transactions.unreadable
        }
        return (session, try await transactions.check(id: transactionID, session: session))
    }

    private func liveSession(_ request: AuthenticateRequest) async throws -> LiveSession? {
        guard let token = request.sessionToken, let session = try await sessions.live(token: token),
            session.realm == request.realm
        else { return nil }
        return session
    }

    private func refuse(transactionID: String, realm: String, reason: String) async throws {
        try await audit.write(
            AuditRecord(
                "authenticate", .refused, reason: reason, realm: realm,
                transactionID: transactionID.utf8.count <= 64 ? transactionID : nil))
    }

    private static let beingAnswered = EngineError(
        status: 400, "This step is being answered. Send the same answer again.")
}

extension LiveSession {
    /// The journeys that it has passed (AM's property `Service`).
    var passedJourneys: [String] {
        properties["Service"]?.string?.split(separator: "|").map(String.init) ?? []
    }
}
