import AssentCore

/// The key of a journey. A journey whose first request has a proof belongs to that proof's key, and so does the session
/// that it gives: each later request proves the same key, so that nobody else can finish it.
extension Authentication {
    /// The session that came with a request, when it is alive and of the request's realm, once the sender has proved
    /// the key that it belongs to.
    ///
    /// - Throws: ``SenderProofRefusal``; `StoreError`.
    func provedSession(_ request: AuthenticateRequest) async throws -> ProvedSession? {
        guard let token = request.sessionToken else { return nil }
        let checked = proofs.checked(request.journeyProof, accessToken: token, policy: request.noncePolicy)
        let proof = try? checked.get()
        let found = try await proofs.find(
            sessions.lookUp(token: token, realm: request.realm, keyThumbprint: proof?.thumbprint), with: proof)
        guard let session = try found.row.map(LiveSession.init(found:)), session.realm == request.realm else {
            return nil
        }
        return ProvedSession(
            session: session,
            proof: try await proofs.verify(checked, of: session, found: proof == nil ? nil : found))
    }

    /// What a journey's first request proves: the key of the session that comes along, or the key that a new session
    /// will belong to.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - proved: the session that comes along.
    /// - Returns: the proof; `nil` for a journey that belongs to no key. A session without a key stays without one in a
    ///   step-up, since its token may have been in other hands: a proof beside it is not read.
    /// - Throws: ``SenderProofRefusal``; `StoreError`.
    func proof(beginning request: AuthenticateRequest, _ proved: ProvedSession?) async throws -> CheckedProof? {
        if let proof = proved?.proof { return proof }
        guard request.bindsSession, proved == nil || request.replacesSession, let presented = request.journeyProof
        else { return nil }
        return try await proofs.verify(presented, accessToken: nil, policy: request.noncePolicy)
    }

    /// How many proofs an answer to one step, or a look at it, may spend in a minute. Each is remembered.
    static let proofsPerMinute: Int64 = 30

    /// What a later request of a journey proves. The step is looked at first, and proofs of its key are counted, so
    /// that few proofs are remembered for each journey.
    ///
    /// - Parameters:
    ///   - request: the request. Where it has the token of a session that belongs to a key, the proof names that token.
    ///   - pointer: the journey's key and its step.
    /// - Returns: the proof; `nil` when the journey belongs to no key.
    /// - Throws: ``SenderProofRefusal``; ``EngineError`` when nothing can come of the step any more, or the key has
    ///   proved it too often; `StoreError`.
    func proof(continuing request: AuthenticateRequest, at pointer: AuthID) async throws -> CheckedProof? {
        guard let key = pointer.keyThumbprint else { return nil }
        guard let step = try await steps.find(pointer.stepID) else { throw EngineError(.stepExpired) }
        if let refusal = step.refusal(at: context.clock.epochSeconds) { throw refusal }
        let session = try await liveSession(request)
        let token = session?.sender == nil ? nil : request.sessionToken
        let proof = try proofs.check(
            request.journeyProof, byKey: key, accessToken: token, policy: request.noncePolicy)
        guard try await starts.call("proof:\(step.id)", limit: Self.proofsPerMinute, window: 60) else {
            throw EngineError(.tooManyRequests, "The step was proved too often. Try again in a minute.")
        }
        try await proofs.claim(proof)
        return proof
    }
}

extension AuthenticateRequest {
    /// The request's proof. All of an address that takes journeys are remembered together, also those of sessions, so
    /// that none is accepted twice there.
    var journeyProof: PresentedProof? {
        var proof = self.proof
        proof?.isOfJourney = true
        return proof
    }
}

extension StoredStep {
    /// Whether something can still come of its answer. A reply from a time ahead is of a clock that was set back: it
    /// would be given again until that clock has caught up.
    ///
    /// - Parameter now: seconds since 1970.
    /// - Returns: why not; `nil` while something can.
    func refusal(at now: Int64) -> EngineError? {
        if case .answered(let answered) = status {
            let kept = -StepStore.replyRetention..<StepStore.replyRetention
            guard answered.sealedReply.isEmpty || !kept.contains(answered.age) else { return nil }
            return EngineError(expiresAt <= now ? .stepExpired : .stepAlreadyAnswered)
        }
        return expiresAt <= now ? EngineError(.stepExpired) : nil
    }
}
