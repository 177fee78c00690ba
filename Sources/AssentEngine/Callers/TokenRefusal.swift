package import AssentCore

/// Why an access token, or the proof that came with it or with a session, lets nobody in, and how the client hears of
/// it.
package struct TokenRefusal: Error, Sendable, Hashable {
    /// Why, for the log.
    package let reason: AccessRefusal

    /// The scheme of the challenge: the one that the request has, or `DPoP` where the token, or the service, wants a
    /// key.
    package let scheme: TokenScheme

    /// What is wrong with the proof, or with its absence; `nil` when it is not about the proof.
    package let proof: SenderProofRefusal?

    /// A refusal.
    package init(_ reason: AccessRefusal, _ scheme: TokenScheme, proof: SenderProofRefusal? = nil) {
        self.reason = reason
        self.scheme = scheme
        self.proof = proof
    }

    /// The refusal of a session that belongs to a key, since its proof is not valid or missing.
    package init(_ proof: SenderProofRefusal) { self.init(.keyMismatch, .dpop, proof: proof) }

    /// The value of `error` in the challenge (RFC 6750 §3.1, RFC 9449 §7.1); `nil` when the request has no token at
    /// all, of which nothing could be wrong.
    package var error: String? {
        switch reason {
        case .missing: nil
        case .insufficientScope: OAuthError.Code.insufficientScope.rawValue
        default: proof?.code.name ?? OAuthError.Code.invalidToken.rawValue
        }
    }

    /// The value of `DPoP-Nonce` in the answer, where it has one.
    package var nonce: String? { proof?.code.nonce }

    /// What is wrong, for the client's developer; never a secret.
    package var detail: String {
        if let proof { return proof.reason }
        return switch reason {
        case .missing: "The service wants an access token or a session that belongs to a key, and a proof of that key."
        case .keyMismatch:
            "The access token does not belong to a key that the request proves: it came as a bearer token, with another key's proof, or belongs to no key."
        case .insufficientScope: "The access token lacks a scope that this needs."
        default: "The access token is expired, revoked, malformed, or meant for another service."
        }
    }
}
