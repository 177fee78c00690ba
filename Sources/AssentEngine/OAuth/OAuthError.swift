import AssentCore
import AssentStore

/// What an OAuth endpoint says instead of what it was asked for (RFC 6749 §5.2). Errors are equal when their codes are.
///
/// The statuses and fields that belong to an error are the server's matter.
package struct OAuthError: AssentError {
    /// The value of `error`.
    package let code: Code

    /// The value of `error_description`, as AM words it where AM has words; never a secret.
    package let detail: String

    /// The request's `state`, echoed.
    package var state: String?

    /// What the caller can present instead, where there is such a thing.
    package let wanted: Wanted?

    /// What programs are told beside the code (`assent_error`), where a code of the standards says too little.
    package let reason: Reason?

    /// An error.
    package init(
        _ code: Code, _ detail: String, state: String? = nil, wanted: Wanted? = nil, reason: Reason? = nil
    ) {
        self.reason = reason
        self.code = code
        self.detail = detail
        self.state = state
        self.wanted = wanted
    }

    /// The answer to whatever an endpoint threw: an OAuth error as it is, an unreachable database as
    /// `temporarily_unavailable`, and in other words an outcome that nobody knows; a text that no database keeps as
    /// `invalid_request`, anything else as `server_error`, which says nothing about its cause.
    package init(answering error: any Error) {
        switch error {
        case let error as OAuthError: self = error
        case let error as StoreError: self.init(answering: EngineError(error))
        case let error as EngineError where error.code == .unavailable || error.code == .busy: self = .unavailable
        case let error as EngineError where error.code == .outcomeUnknown:
            self.init(.temporarilyUnavailable, error.detail)
        case let error as EngineError where error.code.isAboutSealing:
            self.init(Code(rawValue: error.code.rawValue), error.detail)
        case let error as EngineError where error.code == .invalidRequest: self.init(.invalidRequest, error.detail)
        default: self.init(.serverError, "The server failed. Its log says why.")
        }
    }

    /// Whether the same request may succeed later.
    package var isTransient: Bool { code == .temporarilyUnavailable }

    /// What a caller was refused for lack of (RFC 6750 §3, RFC 6749 §5.2).
    package enum Wanted: Sendable, Hashable {
        /// Better client credentials than those in `Authorization`.
        case clientCredentials
        /// An access token: there was none.
        case accessToken
        /// Another access token: this one is not valid (any more).
        case otherAccessToken
        /// An access token with this scope.
        case scope(String)
    }

    /// The value of `assent_error`.
    package enum Reason: String, Sendable, Hashable {
        /// This version of the app must be updated.
        case versionOutdated = "version_outdated"
        /// The app has no version of that name.
        case versionUnknown = "version_unknown"
        /// The PIN is locked until the user has signed in afresh.
        case locked
        /// A PIN was destroyed; the device needs new keys.
        case shredded
        /// The PIN must be typed: the evaluation is missing, too old, or was taken before.
        case unlockRequired = "unlock_required"
        /// The PIN is too old and must be changed first.
        case passwordExpired = "password_expired"
        /// The container is not active: it is blocked, suspect, or has ended.
        case containerEnded = "container_ended"
        /// The container's keys have expired.
        case expired
        /// The app lets nobody in who is only remembered.
        case implicitDisabled = "implicit_disabled"
        /// The user is only remembered, and has not agreed to what the client asks for.
        case consentRequired = "consent_required"
    }

    /// The value of `error`: a code of RFC 6749, RFC 6750 or OpenID Connect Core §3.1.2.6, or one of AM's.
    package struct Code: ErrorCode {
        /// The code, for example `invalid_grant`.
        package let rawValue: String

        /// A code.
        package init(rawValue: String) { self.rawValue = rawValue }
    }
}

extension OAuthError.Code {
    /// The request is malformed.
    package static let invalidRequest = Self("invalid_request")

    /// The client is unknown or has not proved who it is.
    package static let invalidClient = Self("invalid_client")

    /// The code or refresh token, or what it was issued for, is not valid (any more).
    package static let invalidGrant = Self("invalid_grant")

    /// The client may not use this grant type.
    package static let unauthorizedClient = Self("unauthorized_client")

    /// There is no such grant type here.
    package static let unsupportedGrantType = Self("unsupported_grant_type")

    /// The scope is unknown, malformed, or more than was granted.
    package static let invalidScope = Self("invalid_scope")

    /// There is no such response type here.
    package static let unsupportedResponseType = Self("unsupported_response_type")

    /// The user, or the server, said no.
    package static let accessDenied = Self("access_denied")

    /// The user would have to sign in, and `prompt=none` forbids to ask.
    package static let loginRequired = Self("login_required")

    /// The user would have to consent, and nobody can be asked.
    package static let consentRequired = Self("consent_required")

    /// The parameter `request` is not supported.
    package static let requestNotSupported = Self("request_not_supported")

    /// The parameter `request_uri` is not supported.
    package static let requestURINotSupported = Self("request_uri_not_supported")

    /// The redirect URI is not one of the client's (AM's code).
    package static let redirectURIMismatch = Self("redirect_uri_mismatch")

    /// The decision does not come from the user's own page (AM's code).
    package static let badRequest = Self("bad_request")

    /// The access token is missing, or not valid (any more).
    package static let invalidToken = Self("invalid_token")

    /// The access token lacks a scope.
    package static let insufficientScope = Self("insufficient_scope")

    /// The request has no proof of a key and needs one, or its proof is not valid (RFC 9449 §5).
    package static let invalidDPoPProof = Self("invalid_dpop_proof")

    /// A redirect URI cannot be registered (RFC 7591 §3.2.2).
    package static let invalidRedirectURI = Self("invalid_redirect_uri")

    /// Something else cannot be registered.
    package static let invalidClientMetadata = Self("invalid_client_metadata")

    /// The software statement is missing, or not valid.
    package static let invalidSoftwareStatement = Self("invalid_software_statement")

    /// The software statement is of somebody who signs none for this app.
    package static let unapprovedSoftwareStatement = Self("unapproved_software_statement")

    /// What is asked for leads to a place that is not listed (RFC 8707 §2).
    package static let invalidTarget = Self("invalid_target")

    /// The client's app may not sign browsers in (ours).
    package static let webLinkDisabled = Self("web_link_disabled")

    /// The request has come plainly, and must be sealed (ours; docs/payload-encryption.md).
    package static let payloadEncryptionRequired = Self("payload_encryption_required")
    /// It has come through a session of payload encryption that is not of the installation.
    package static let payloadEncryptionMismatch = Self("payload_encryption_mismatch")

    /// The database cannot serve.
    package static let temporarilyUnavailable = Self("temporarily_unavailable")

    /// The server is broken.
    package static let serverError = Self("server_error")
}

extension OAuthError {
    /// The code, the refresh token, or what they were issued for, is not valid (any more).
    package static let invalidGrant = OAuthError(
        .invalidGrant, "The provided access grant is invalid, expired, or revoked.")

    /// The same, with a reason for programs.
    static func invalidGrant(because reason: Reason?) -> OAuthError {
        OAuthError(.invalidGrant, invalidGrant.detail, reason: reason)
    }

    /// The client is unknown or has not proved who it is.
    package static let invalidClient = OAuthError(.invalidClient, "Client authentication failed")

    /// The redirect URI is not one of the client's.
    package static let redirectMismatch = OAuthError(
        .redirectURIMismatch, "The redirection URI provided does not match a pre-registered value.")

    /// The access token is not valid (any more) (RFC 6750 §3.1).
    package static let invalidToken = OAuthError(.invalidToken, tokenText, wanted: .otherAccessToken)

    /// There is no access token: AM's words, but nothing that says that one is wrong (RFC 6750 §3.1).
    package static let missingToken = OAuthError(.invalidToken, tokenText, wanted: .accessToken)

    private static let tokenText =
        "The access token provided is expired, revoked, malformed, or invalid for other reasons."

    /// The database cannot serve: nothing was changed, and the same request may succeed later.
    package static let unavailable = OAuthError(.temporarilyUnavailable, EngineError.unavailable.detail)

    /// The request is malformed.
    package static func invalidRequest(_ detail: String) -> OAuthError { OAuthError(.invalidRequest, detail) }

    /// Scopes that the client may not ask for.
    package static func invalidScope(_ scopes: [String]) -> OAuthError {
        OAuthError(.invalidScope, "Unknown/invalid scope(s): [\(scopes.joined(separator: ", "))]")
    }

    /// The token lacks the scope that the resource needs (RFC 6750 §3.1).
    package static func insufficientScope(_ scope: String) -> OAuthError {
        OAuthError(
            .insufficientScope, "The request requires higher privileges than provided by the access token.",
            wanted: .scope(scope))
    }
}
