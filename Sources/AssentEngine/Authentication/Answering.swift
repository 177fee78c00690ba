import AssentCore
import Foundation
import Logging

/// The answer to a page, from the pointer that came with it to the reply.
struct Answering: Sendable {
    let engine: Authentication
    let realm: RealmSignIn
    let request: AuthenticateRequest
    let answer: PageAnswer

    /// How long, in seconds, another node's reply is waited for: less than a client's patience, and than a claim.
    private static let patience: TimeInterval = 15

    /// Seconds between two looks for it.
    private static let interval: TimeInterval = 0.1

    /// Read the pointer → verify the proof of the journey's key, once its step is found → find the step → check its
    /// session and approval → claim it → walk → store → reply.
    func reply() async throws -> AuthenticateReply {
        let pointer = try pointer()
        let proof = try await engine.proof(continuing: request, at: pointer)
        return try await reply(to: pointer).giving(nonce: proof?.newNonce)
    }

    private func reply(to pointer: AuthID) async throws -> AuthenticateReply {
        let stepID = pointer.stepID
        let digest = engine.steps.digest(of: answer.bytes, id: stepID)
        let time = WaitingTime(Self.patience, from: engine.context.clock.now)
        while true {
            guard let step = try await engine.steps.find(stepID) else { throw EngineError(.stepExpired) }
            switch step.status {
            case .answered(let answered):
                return try await repeated(step, answered, digest)
            case .pending(let sealedState):
                let turn: JourneyTurn
                do {
                    turn = try await self.turn(step, sealedState)
                } catch {
                    // The same answer, sent twice, may have ended the journey between our look and this: then nothing
                    // is wrong with it.
                    guard let step = try await engine.steps.find(stepID), case .answered(let answered) = step.status
                    else { throw error }
                    return try await repeated(step, answered, digest)
                }
                guard turn.state.keyThumbprint == pointer.keyThumbprint else { throw EngineError(.authIDInvalid) }
                let responses = try CallbackMatching(asked: turn.state.progress.asked)
                    .responses(in: answer.callbacks).dropFirst(turn.state.progress.added)
                guard try await engine.inFlight.enter(stepID) else { continue }
                let reply = try await alone(with: stepID) {
                    try await claimed(step, digest, turn, Array(responses), within: time)
                }
                if let reply { return reply }
            }
        }
    }

    /// The pointer that came with the answer.
    func pointer() throws(EngineError) -> AuthID {
        let pointer = try engine.signer.verify(answer.authID)
        guard pointer.realm == request.realm else {
            throw EngineError.invalidRequest("The authId belongs to another realm.")
        }
        return pointer
    }

    /// The journey's next turn: the state of the step, with the session and the approval that it needs.
    func turn(_ step: StoredStep, _ sealedState: [UInt8]) async throws -> JourneyTurn {
        guard step.expiresAt > engine.context.clock.epochSeconds else { throw EngineError(.stepExpired) }
        var state = try engine.steps.state(sealedState, id: step.id)
        if request.noSession { state.noSession = true }
        guard let journey = realm.journeys[state.journey] else { throw EngineError(.unknownJourney) }
        let (session, approval) = try await binding(of: state)
        return JourneyTurn(
            engine: engine, realm: realm, request: request, journey: journey, session: session, approval: approval,
            state: state)
    }

    /// The session and the approval that a step of a transaction needs; in another journey, the session it began with,
    /// if that is still alive.
    private func binding(of state: JourneyState) async throws -> (LiveSession?, PendingApproval?) {
        guard let transactionID = state.transactionID else {
            guard let id = state.sessionID else { return (nil, nil) }
            return (try await engine.sessions.live(id: id), nil)
        }
        guard let session = try await engine.liveSession(request), session.id == state.sessionID,
            session.user.id == state.sessionUserID
        else {
            try await engine.refuse(transactionID: transactionID, realm: request.realm)
            throw EngineError.transactionUnreadable
        }
        return (session, try await engine.transactions.check(id: transactionID, session: session))
    }

    /// Runs `work` to its end even if the connection is lost: half a step would be worse than a reply that nobody
    /// reads.
    private func alone(
        with stepID: String, _ work: @escaping @Sendable () async throws -> AuthenticateReply?
    ) async throws -> AuthenticateReply? {
        try await Task {
            do {
                let reply = try await work()
                await engine.inFlight.leave(stepID)
                return reply
            } catch {
                await engine.inFlight.leave(stepID)
                throw error
            }
        }.value
    }

    /// Claims the step and takes the turn. `nil` while another node has it: then it is worth another look, within
    /// `time`.
    private func claimed(
        _ step: StoredStep, _ digest: String, _ turn: JourneyTurn, _ responses: [CallbackResponse],
        within time: WaitingTime
    ) async throws -> AuthenticateReply? {
        guard let claim = try await engine.steps.claim(step.id, digest: digest) else {
            // It may have had it between our look and this.
            if let step = try await engine.steps.find(step.id), case .answered(let answered) = step.status {
                return try await repeated(step, answered, digest)
            }
            let now = engine.context.clock.now
            guard !time.isOver(at: now) else { throw EngineError(.stepBeingAnswered) }
            try await engine.context.clock.sleep(until: min(time.end, now.addingTimeInterval(Self.interval)))
            return nil
        }
        do {
            return try await turn.reply(to: responses, claim)
        } catch {
            // Without effect on a step that was answered by its journey's failure.
            do {
                try await engine.steps.release(claim)
            } catch {
                engine.context.logger.warning("a claimed step could not be released; its lease will end")
            }
            throw error
        }
    }

    /// The reply again, for the same answer within its time.
    private func repeated(
        _ step: StoredStep, _ answered: StoredStep.Answered, _ digest: String
    ) async throws -> AuthenticateReply {
        if let refusal = step.refusal(at: engine.context.clock.epochSeconds) { throw refusal }
        guard ConstantTime.equal(digest, answered.digest) else { throw EngineError(.stepAnsweredDifferently) }
        let reply = try engine.steps.reply(answered.sealedReply, id: step.id)
        if let sessionID = reply.sessionID {
            guard try await engine.liveSession(request)?.id == sessionID else {
                throw EngineError.transactionUnreadable
            }
        }
        return try reply.result.get()
    }
}
