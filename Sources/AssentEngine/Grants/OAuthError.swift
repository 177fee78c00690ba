package import AssentCore
import AssentStore

/// What an OAuth endpoint answers instead of what it was asked for (RFC 6749 §5.2). Errors are equal when their codes are.
package struct OAuthError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The value of `error`, for example `invalid_grant`.
    package let code: String

    /// The value of `error_description`, as AM words it where AM has words; never a secret.
    package let message: String

    /// The HTTP status.
    package let status: Int

    /// The request's `state`, echoed.
    package var state: String?

    /// The value of `WWW-Authenticate`, where the status asks for one.
    package var challenge: String?

    /// An error.
    package init(_ code: String, _ message: String, status: Int = 400, state: String? = nil, challenge: String? = nil) {
        self.code = code
        self.message = message
        self.status = status
        self.state = state
        self.challenge = challenge
    }

    /// The answer for whatever an endpoint threw: an OAuth error as it is, an unreachable database as
    /// `temporarily_unavailable` (503), anything else as `server_error` (500), which says nothing about its cause.
    package init(answering error: any Error) {
        switch error {
        case let error as OAuthError: self = error
        case let error as StoreError where error.code == .unavailable: self = .unavailable
        case let error as EngineError where error.status == 503: self = .unavailable
        default: self.init("server_error", "The server failed. Its log says why.", status: 500)
        }
    }

    /// The body: `error`, `error_description` and, where the request had one, `state`.
    package var json: JSONValue {
        var object = JSONObject([
            .init(name: "error", value: .string(code)), .init(name: "error_description", value: .string(message)),
        ])
        object["state"] = state.map(JSONValue.string)
        return .object(object)
    }

    /// Code and message.
    package var description: String { "\(code): \(message)" }

    /// Errors are equal when their codes are.
    package static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    /// Hashes the code.
    package func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension OAuthError {
    /// The code, the refresh token, or what they were issued for, does not count (any more).
    package static let invalidGrant = OAuthError(
        "invalid_grant", "The provided access grant is invalid, expired, or revoked.")

    /// The client is unknown or has not proved who it is.
    package static let invalidClient = OAuthError("invalid_client", "Client authentication failed")

    /// The redirect URI is not one of the client's.
    package static let redirectMismatch = OAuthError(
        "redirect_uri_mismatch", "The redirection URI provided does not match a pre-registered value.")

    /// The access token does not count (any more) (RFC 6750 §3.1).
    package static func invalidToken(realm: String) -> OAuthError {
        unauthorized("Bearer realm=\"\(realm)\", error=\"invalid_token\"")
    }

    /// There is no access token: AM's words, but a challenge that does not say that one is wrong (RFC 6750 §3.1).
    package static func missingToken(realm: String) -> OAuthError { unauthorized("Bearer realm=\"\(realm)\"") }

    private static func unauthorized(_ challenge: String) -> OAuthError {
        OAuthError(
            "invalid_token",
            "The access token provided is expired, revoked, malformed, or invalid for other reasons.", status: 401,
            challenge: challenge)
    }

    /// The database cannot serve: nothing was changed, and the same request may succeed later.
    package static let unavailable = OAuthError("temporarily_unavailable", EngineError.unavailable.message, status: 503)

    /// The request is malformed.
    package static func invalidRequest(_ message: String) -> OAuthError { OAuthError("invalid_request", message) }

    /// Scopes that the client may not ask for.
    package static func invalidScope(_ scopes: [String]) -> OAuthError {
        OAuthError("invalid_scope", "Unknown/invalid scope(s): [\(scopes.joined(separator: ", "))]")
    }

    /// The token has not the scope that the resource needs (RFC 6750 §3.1).
    package static func insufficientScope(_ scope: String) -> OAuthError {
        OAuthError(
            "insufficient_scope", "The request requires higher privileges than provided by the access token.",
            status: 403, challenge: "Bearer error=\"insufficient_scope\", scope=\"\(scope)\"")
    }
}
