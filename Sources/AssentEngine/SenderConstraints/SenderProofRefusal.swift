/// Why a request with a proof, or without one that it needs, is refused before anything is looked up or spent.
package struct SenderProofRefusal: Error, Sendable, Hashable {
    /// What the client is told (RFC 9449 §5, §8, §9).
    package enum Code: Sendable, Hashable {
        /// The proof is not valid for this request, or was used before: `invalid_dpop_proof`.
        case invalidProof
        /// The client is to repeat the request with this nonce: `use_dpop_nonce`.
        case useNonce(String)

        /// The value of `error`.
        package var name: String {
            switch self {
            case .invalidProof: "invalid_dpop_proof"
            case .useNonce: "use_dpop_nonce"
            }
        }

        /// The value of `DPoP-Nonce`, where the answer has one.
        package var nonce: String? { if case .useNonce(let nonce) = self { nonce } else { nil } }
    }

    /// What the client is told.
    package let code: Code

    /// What exactly, for the log and the developer of the client; never a secret.
    package let reason: String

    /// A refusal.
    package init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }
}
