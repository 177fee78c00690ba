import AssentCore
package import HTTPTypes

/// What a resource's reply with status 401 says about token and proof (RFC 6750 §3.1, RFC 9449 §7.1).
package enum ResourceRefusal: Sendable {
    /// The token was refused, and the resource did nothing.
    case token
    /// The proof needs a nonce, and the resource did nothing.
    case nonce
    /// The proof was refused, and the resource did nothing with this copy of the request. A proof that was used before
    /// is refused too, so where something between repeats requests, an earlier copy may have been carried out.
    case proof

    /// Reads the challenges of a reply; `nil` when none of them says so. Of proofs only the scheme `DPoP` speaks: the
    /// same words elsewhere say nothing about what was done.
    package init?(_ response: HTTPResponse) {
        guard response.status == .unauthorized else { return nil }
        let challenges = response.headerFields[values: .wwwAuthenticate].flatMap { (try? Challenge.parse($0)) ?? [] }
        func errors(_ scheme: TokenScheme) -> [String] {
            challenges.filter { $0.isScheme(scheme.rawValue) }.compactMap { $0["error"] }
        }
        let ofProofs = errors(.dpop)
        if ofProofs.contains("use_dpop_nonce") {
            self = .nonce
        } else if ofProofs.contains("invalid_dpop_proof") {
            self = .proof
        } else if (ofProofs + errors(.bearer)).contains("invalid_token") {
            self = .token
        } else {
            return nil
        }
    }
}
