import AssentCore

/// The key of a journey. A journey whose first request has a proof belongs to that proof's key, and so does the session
/// that it gives: each later request proves the same key, so that nobody else can finish it.
extension Authentication {
    /// What a journey's first request proves: the key of the session that comes along, or the key that a new session
    /// will belong to.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - session: the session that comes along.
    /// - Returns: the proof; `nil` for a journey that belongs to no key. A session without a key stays without one in a
    ///   step-up, since its token may have been in other hands: a proof beside it is not read.
    /// - Throws: ``SenderProofRefusal``; `StoreError`.
    func proof(beginning request: AuthenticateRequest, session: LiveSession?) async throws -> CheckedProof? {
        if let session, let token = request.sessionToken, session.keyThumbprint != nil {
            return try await proofs.verify(request.proof, of: session, token: token, policy: request.noncePolicy)
        }
        guard session == nil || request.replacesSession, let presented = request.proof else { return nil }
        return try await proofs.verify(presented, accessToken: nil, policy: request.noncePolicy)
    }

    /// What a later request of a journey proves.
    ///
    /// - Parameters:
    ///   - request: the request. Where it has the token of a session that belongs to a key, the proof names that token.
    ///   - key: the thumbprint of the journey's key.
    /// - Returns: the proof; `nil` when the journey belongs to no key.
    /// - Throws: ``SenderProofRefusal``; `StoreError`.
    func proof(continuing request: AuthenticateRequest, key: String?) async throws -> CheckedProof? {
        guard let key else { return nil }
        let session = try await liveSession(request)
        let token = session?.keyThumbprint == nil ? nil : request.sessionToken
        return try await proofs.verify(request.proof, byKey: key, accessToken: token, policy: request.noncePolicy)
    }
}
