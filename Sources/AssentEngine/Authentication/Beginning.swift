import AssentCore
import Logging

/// A journey's first request, from what it asks for to the reply.
struct Beginning: Sendable {
    let engine: Authentication
    let realm: RealmSignIn
    let request: AuthenticateRequest

    /// Read which journey is wanted → count the start → find the session → see whether a session may be stateless →
    /// walk → store → reply.
    func reply() async throws -> AuthenticateReply {
        let choice = try request.choice(in: realm)
        try await countStart()
        let proved = try await engine.provedSession(request)
        let proof = try await engine.proof(beginning: request, proved)
        if let session = proved?.session, !Door.stepUp.admits(session) { throw EngineError(.tokenKind) }
        if request.isStateless {
            guard proved == nil else {
                throw EngineError.invalidRequest("A session that comes along cannot become one of the kind stateless.")
            }
            _ = try await engine.statelessLifetime(of: proof?.thumbprint, in: request.realm)
        }
        return try await reply(choice, proved?.session, key: proof?.thumbprint).giving(nonce: proof?.newNonce)
    }

    private func reply(
        _ choice: JourneyChoice, _ session: LiveSession?, key: String?
    ) async throws -> AuthenticateReply {
        switch choice {
        case .transaction(let id):
            return try await approve(id, session, key: key)
        case .standard:
            let journey = realm.defaultJourney.flatMap { realm.journeys[$0] }
            if let session, mayBeSpared(journey) { return try await existing(session) }
            guard let name = realm.defaultJourney else { throw EngineError(.unknownJourney) }
            return try await begin(try runnable(name), session: session, key: key)
        case .journey(let name, let always):
            let journey = try runnable(name)
            if let session, !always, mayBeSpared(journey), session.passedJourneys.contains(name) {
                return try await existing(session)
            }
            return try await begin(journey, session: session, key: key)
        }
    }

    private func countStart() async throws {
        guard let address = request.clientAddress else { return }
        guard try await engine.starts.call("start:\(address)", limit: engine.startsPerMinute, window: 60) else {
            throw EngineError(
                .tooManyRequests, "Too many journeys were begun from this address. Try again in a minute.")
        }
    }

    private func approve(_ id: String, _ session: LiveSession?, key: String?) async throws -> AuthenticateReply {
        guard let session else {
            try await engine.refuse(transactionID: id, realm: request.realm)
            throw EngineError.transactionUnreadable
        }
        let approval = try await engine.transactions.start(
            id: id, session: session, languages: request.languages)
        guard let journey = realm.journeys[approval.journey] else {
            engine.context.logger.error(
                "a policy names a missing journey", metadata: ["journey": "\(approval.journey)"])
            _ = try await engine.transactions.decline(id: id, session: session)
            throw EngineError(.unknownJourney)
        }
        return try await begin(journey, session: session, key: key, approval: approval)
    }

    private func runnable(_ name: String) throws -> Journey {
        guard let journey = realm.journeys[name], !journey.definition.transactionalOnly else {
            throw EngineError(.unknownJourney)
        }
        return journey
    }

    /// Whether a session that comes along can be enough, in place of this journey.
    private func mayBeSpared(_ journey: Journey?) -> Bool {
        !request.forceAuth && !request.replacesSession && journey?.definition.mustRun != true
    }

    /// The session that there is, which is enough.
    private func existing(_ session: LiveSession) async throws -> AuthenticateReply {
        try await engine.sessions.touch(session)
        var success = AuthenticateSuccess(
            token: request.noSession ? nil : request.sessionToken, isNewSession: false,
            successURL: realm.successURL, realm: request.realm)
        success.keyThumbprint = request.noSession ? nil : session.sender?.keyThumbprint
        return .success(success)
    }

    private func begin(
        _ journey: Journey, session: LiveSession?, key: String?, approval: PendingApproval? = nil
    ) async throws -> AuthenticateReply {
        let isReplaced = request.replacesSession && approval == nil
        let kept = isReplaced ? nil : session
        var state = JourneyState(
            journey, realm: request.realm, session: kept, replacing: isReplaced ? session : nil, approval: approval,
            noSession: request.noSession, limits: realm.sessionLimits, now: engine.context.clock.epochSeconds)
        state.keyThumbprint = key
        state.isStateless = request.isStateless
        let turn = JourneyTurn(
            engine: engine, realm: realm, request: request, journey: journey, session: kept, approval: approval,
            state: state)
        return try await turn.reply(to: nil, nil)
    }
}
