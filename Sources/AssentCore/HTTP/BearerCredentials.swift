package import HTTPTypes

/// How a client presents a bearer token, and hears that it was refused (RFC 6750 §2.1, §3).
package enum BearerCredentials {
    /// Whether a reply with status 401 says that the token was refused: a `Bearer` challenge with the error
    /// `invalid_token` (RFC 6750 §3.1). The resource has then done nothing else.
    package static func areRefused(in response: HTTPResponse) -> Bool {
        guard response.status == .unauthorized else { return false }
        return response.headerFields[values: .wwwAuthenticate].contains { field in
            let challenges = (try? Challenge.parse(field)) ?? []
            return challenges.contains { $0.isScheme("Bearer") && $0["error"] == "invalid_token" }
        }
    }

    /// The value of `Authorization` that carries `token`.
    package static func field(_ token: Secret) -> String { "Bearer \(token.reveal())" }
}
