public import AssentCore
import AssentJOSE
public import HTTPTypes

/// The header fields with which one request shows the access token.
public struct TokenCredential: Sendable {
    /// The value of `Authorization`: scheme and token.
    public let authorization: Secret

    /// The value of `DPoP`, for this one request (RFC 9449 §4); `nil` for a bearer token.
    public let proof: Secret?
}

extension TokenManager {
    /// What a request must carry that this library does not send itself. The tokens are renewed first when they are
    /// about to expire.
    ///
    /// A proof is good for one request to this URL, for about a minute. A resource that wants a nonce answers 401 with
    /// `error="use_dpop_nonce"` and the nonce in the field `DPoP-Nonce`: it has then done nothing, and the request may
    /// be sent again with the proof of another credential.
    ///
    /// - Parameters:
    ///   - method: the request's method.
    ///   - url: the request's URL as it is sent; query and fragment do not matter.
    ///   - nonce: what the resource gave; `nil` takes the newest that this manager has heard of.
    /// - Returns: the fields.
    /// - Throws: ``TokenError`` as ``tokens(rejecting:)``; `unprovable` when a proof cannot name the URL.
    public func credential(
        for method: HTTPRequest.Method, url: String, nonce: String? = nil
    ) async throws -> TokenCredential {
        let tokens = try await tokens()
        guard let binding = tokens.key else {
            return TokenCredential(
                authorization: Secret(TokenScheme.bearer.field(tokens.accessToken)), proof: nil)
        }
        let key = try await proofs.keys.key(of: binding)
        let target = ProofMaker.Target(method: method, url: url, role: .resource, token: tokens.accessToken)
        let newest = nonce ?? target.server.flatMap { proofs.nonces.newest(for: $0) }
        let proof = try await proofs.proof(for: target, nonce: newest, key: key)
        return TokenCredential(authorization: key.prover.authorization(tokens.accessToken), proof: Secret(proof))
    }
}
