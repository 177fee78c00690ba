package import AssentCore
import Logging

extension SenderProofs {
    /// Verifies that the sender of a request has the key that a session belongs to. Every door that takes a session
    /// asks here, or with what it has found, so that a session's token alone opens none of them.
    ///
    /// - Parameters:
    ///   - presented: what the request says about its sender's key; `nil` where a door takes no proof.
    ///   - session: the session that the request presents.
    ///   - token: its token, which the proof must name.
    ///   - policy: whether there must be a nonce.
    /// - Returns: the proof; `nil` for a session that belongs to no key: a proof beside it is not read.
    /// - Throws: ``SenderProofRefusal``; ``StoreError`` when the database cannot serve.
    package func verify(
        _ presented: PresentedProof?, of session: LiveSession, token: Secret, policy: NoncePolicy
    ) async throws -> CheckedProof? {
        guard session.sender != nil else { return nil }
        return try await verify(
            checked(presented, accessToken: token, policy: policy), of: session, found: nil)
    }

    /// As ``verify(_:of:token:policy:)``, for a proof that is checked and was perhaps spent by what has found the
    /// session; `found` is `nil` where that was no look-up with a proof.
    func verify(
        _ checked: Result<CheckedProof, SenderProofRefusal>, of session: LiveSession, found: FoundWithProof?
    ) async throws -> CheckedProof? {
        guard let sender = session.sender else { return nil }
        do {
            guard let key = sender.keyThumbprint else {
                throw SenderProofRefusal(
                    .invalidProof, "The session belongs to something that this server cannot verify.")
            }
            let proof = try checked.get()
            guard ConstantTime.equal(key, proof.thumbprint) else {
                throw SenderProofRefusal(.invalidProof, "The proof is by another key than the session's.")
            }
            if let found { try await claim(proof, found: found) } else { try await claim(proof) }
            return proof
        } catch let refusal as SenderProofRefusal where refusal.code == .invalidProof {
            // The only trace of a stolen session that somebody tries to use.
            context.logger.notice(
                "a session was presented without its key",
                metadata: ["session": "\(session.auditID)", "realm": "\(session.realm)"])
            throw refusal
        }
    }

    /// Checks a request's proof, which must be there, and spends nothing.
    func checked(
        _ presented: PresentedProof?, accessToken: Secret?, policy: NoncePolicy
    ) -> Result<CheckedProof, SenderProofRefusal> {
        Result { () throws(SenderProofRefusal) in
            guard let presented, let proof = try check(presented, accessToken: accessToken, policy: policy) else {
                throw SenderProofRefusal(
                    .invalidProof, "The request has no field DPoP with a proof of the session's key.")
            }
            return proof
        }
    }

    /// Verifies a request's proof, which must be there and be by this key.
    ///
    /// - Parameters:
    ///   - presented: what the request says about its sender's key.
    ///   - key: the key's RFC 7638 thumbprint.
    ///   - accessToken: the session's token; `nil` while a journey has none yet.
    ///   - policy: whether there must be a nonce.
    /// - Returns: the proof.
    /// - Throws: ``SenderProofRefusal``; ``StoreError`` when the database cannot serve.
    func verify(
        _ presented: PresentedProof?, byKey key: String, accessToken: Secret?, policy: NoncePolicy
    ) async throws -> CheckedProof {
        let proof = try check(presented, byKey: key, accessToken: accessToken, policy: policy)
        try await claim(proof)
        return proof
    }

    /// As ``verify(_:byKey:accessToken:policy:)``, but the proof is not spent yet.
    func check(
        _ presented: PresentedProof?, byKey key: String, accessToken: Secret?, policy: NoncePolicy
    ) throws(SenderProofRefusal) -> CheckedProof {
        let proof = try checked(presented, accessToken: accessToken, policy: policy).get()
        guard ConstantTime.equal(key, proof.thumbprint) else {
            throw SenderProofRefusal(.invalidProof, "The proof is by another key than the session's.")
        }
        return proof
    }

    /// Verifies and spends a request's proof; `nil` without one.
    func verify(
        _ presented: PresentedProof, accessToken: Secret?, policy: NoncePolicy
    ) async throws -> CheckedProof? {
        guard let proof = try check(presented, accessToken: accessToken, policy: policy) else { return nil }
        try await claim(proof)
        return proof
    }
}
