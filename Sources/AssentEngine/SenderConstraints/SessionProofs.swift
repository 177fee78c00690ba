package import AssentCore
import Logging

extension SenderProofs {
    /// The session of a token, of whatever realm, once the sender of the request has proved the key that it belongs to.
    ///
    /// - Parameters:
    ///   - token: the session's token, which the proof must name.
    ///   - sessions: where it is looked up.
    ///   - presented: what the request says about its sender's key.
    ///   - policies: whether there must be a nonce, by realm; for a session of any other realm there must.
    /// - Returns: the session, and the proof where it belongs to a key; `nil` when no session is alive.
    /// - Throws: ``SenderProofRefusal``; ``StoreError`` when the database cannot serve.
    package func session(
        of token: Secret, among sessions: Sessions, _ presented: PresentedProof, policies: [String: NoncePolicy]
    ) async throws -> ProvedSession? {
        var checked = checked(presented, accessToken: token, policy: .offered)
        // Without a nonce it may be too little for the session's realm, and is then not spent.
        let isEnough = { (proof: CheckedProof) in proof.hasNonce || !policies.values.contains(.required) }
        let proof = (try? checked.get()).flatMap { isEnough($0) ? $0 : nil }
        let found = try await find(sessions.lookUp(token: token, keyThumbprint: proof?.thumbprint), with: proof)
        guard let session = try found.row.map(LiveSession.init(found:)) else { return nil }
        if session.sender != nil, proof?.hasNonce != true, policies[session.realm] != .offered {
            checked = self.checked(presented, accessToken: token, policy: .required)
        }
        let verified = try await verify(checked, of: session, found: proof == nil ? nil : found)
        return ProvedSession(session: session, proof: verified)
    }

    /// Verifies that the sender of a request has the key that a session belongs to. Every door that takes a session
    /// asks here with what it has found, so that a session's token alone opens none of them.
    ///
    /// - Parameters:
    ///   - checked: the request's proof, which must name the session's token.
    ///   - session: the session that the request presents.
    ///   - found: what has found the session, and perhaps spent the proof; `nil` where it was looked up without one.
    /// - Returns: the proof; `nil` for a session that belongs to no key: a proof beside it is not read.
    /// - Throws: ``SenderProofRefusal``; ``StoreError`` when the database cannot serve.
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
        _ presented: PresentedProof?, accessToken: Secret?, tokenDigest: String? = nil, policy: NoncePolicy
    ) -> Result<CheckedProof, SenderProofRefusal> {
        Result { () throws(SenderProofRefusal) in
            guard let presented,
                let proof = try check(
                    presented, accessToken: accessToken, tokenDigest: tokenDigest, policy: policy)
            else {
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

/// A session that is alive, and the proof of the key that it belongs to.
package struct ProvedSession: Sendable {
    /// The session.
    package let session: LiveSession

    /// The proof; `nil` for a session that belongs to no key.
    package let proof: CheckedProof?
}
