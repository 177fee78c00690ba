import HTTPTypes

extension HTTPField.Name {
    /// Carries the proof of a request (RFC 9449 §4.1).
    static let proof = constant("DPoP")

    /// Carries the nonce for the next proofs (RFC 9449 §8).
    static let proofNonce = constant("DPoP-Nonce")

    /// A name that is written here and therefore known to be a token.
    private static func constant(_ name: String) -> HTTPField.Name { HTTPField.Name(name)! }
}
