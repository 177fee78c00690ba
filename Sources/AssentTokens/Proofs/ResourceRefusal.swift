import AssentCore
package import HTTPTypes

/// What a resource's reply with status 401 says about token and proof (RFC 6750 §3.1, RFC 9449 §7.1).
package enum ResourceRefusal: Sendable {
    /// The token was refused, and the resource did nothing.
    case token
    /// The proof needs a nonce, and the resource did nothing.
    case nonce
    /// The proof was refused, and the resource did nothing.
    case proof

    /// Reads the challenges of a reply; `nil` when none of them says so.
    package init?(_ response: HTTPResponse) {
        guard response.status == .unauthorized else { return nil }
        let challenges = response.headerFields[values: .wwwAuthenticate].flatMap { (try? Challenge.parse($0)) ?? [] }
        let errors =
            challenges
            .filter { challenge in TokenScheme.allCases.contains { challenge.isScheme($0.rawValue) } }
            .compactMap { $0["error"] }
        if errors.contains("use_dpop_nonce") {
            self = .nonce
        } else if errors.contains("invalid_dpop_proof") {
            self = .proof
        } else if errors.contains("invalid_token") {
            self = .token
        } else {
            return nil
        }
    }
}
