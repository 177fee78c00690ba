public import AssentCore
import HTTPTypes

/// Why there are no tokens, or something about them did not work. Errors are equal when their codes are.
public struct TokenError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people; never a secret.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public let suggestion: String?

    /// The HTTP status, when there was a reply.
    public let status: Int?

    /// The server's `error` (RFC 6749 §5.2), when it sent one.
    public let oauthError: String?

    /// What an Assent server says beside its `error` (`assent_error`): `version_outdated` when this version of the app
    /// must be updated, `version_unknown` when the app has no such version.
    public private(set) var assentError: String?

    /// Why there is no reply, with code ``Code/transport``.
    public let transportError: HTTPTransportError?

    /// What the store said, with code ``Code/storageFailed`` or ``Code/busy``; `nil` when it was not the store.
    public let storeError: SecretStoreError?

    /// Why the user has to sign in, with code ``Code/signInNeeded``.
    public let signInReason: SignInReason?

    /// Whether the server refused and did not say why, as a token endpoint with an empty reply. Some providers
    /// (glewlwyd) say so, and only so, that a refresh token is of no use any more.
    private(set) var isWithoutReason = false

    /// Why the server does not sign a remembered user in, as far as it says.
    package internal(set) var loginRefusal: LoginRefusalHint?

    /// What the userinfo endpoint refused, as far as it says.
    private(set) var refusal: ResourceRefusal?

    /// Whether the key provider said that its failure may pass.
    private var mayPass = false

    /// An error with its explanation.
    public init(
        _ code: Code, _ detail: String, suggestion: String? = nil, status: Int? = nil, oauthError: String? = nil,
        transportError: HTTPTransportError? = nil, storeError: SecretStoreError? = nil,
        signInReason: SignInReason? = nil
    ) {
        self.code = code
        self.detail = detail
        self.suggestion =
            suggestion ?? transportError?.suggestion ?? storeError?.suggestion
            ?? Self.usualAdvice(code, status: status, oauthError: oauthError)
        self.storeError = storeError
        self.status = status
        self.oauthError = oauthError
        self.transportError = transportError
        self.signInReason = signInReason
    }

    /// The same error with what an Assent server says besides.
    func saying(_ assentError: String?) -> TokenError {
        var error = self
        error.assentError = assentError
        return error
    }

    /// What an Assent server's own word means, and what to do; `nil` for one that is not known here.
    static func words(about assentError: String?) -> (detail: String, suggestion: String)? {
        switch assentError {
        case "version_outdated": ("The provider no longer serves this version of the app.", "Update the app.")
        case "version_unknown":
            ("The provider does not know this version of the app.", "Check the app's version at the provider.")
        default: nil
        }
    }

    /// A refusal of the token endpoint whose reply is empty.
    static func refusedWithoutReason(status: Int) -> TokenError {
        var error = TokenError(
            .tokenRefused, "The token endpoint refused, and said nothing about the reason.", status: status)
        error.isWithoutReason = [400, 401, 403].contains(status)
        return error
    }

    /// A refusal of the userinfo endpoint. It refused the access token also where it gives no reason at all: some
    /// providers leave the challenge out that belongs to it (OpenID Connect Core §5.3.3).
    static func userInfoRefused(_ response: HTTPResponse, oauthError: String?) -> TokenError {
        var error = TokenError(
            .userInfoRefused, "The userinfo endpoint gave no claims about the user.", status: response.status.code,
            oauthError: oauthError)
        let isAboutToken = response.status == .unauthorized && [nil, "invalid_token"].contains(oauthError)
        error.refusal = ResourceRefusal(response) ?? (isAboutToken ? .token : nil)
        return error
    }

    /// A refusal of a link into a browser.
    static func webLinkRefused(_ response: HTTPResponse, oauthError: String?) -> TokenError {
        guard oauthError != "web_link_disabled" else {
            return TokenError(
                .webLinkDisabled, "The server signs no browser in for this app.", status: response.status.code,
                oauthError: oauthError)
        }
        let detail =
            oauthError == "invalid_target"
            ? "The page is not one that the server lists for this app; it must be written exactly as it is there."
            : "The server gave no link into a browser."
        var error = TokenError(.webLinkRefused, detail, status: response.status.code, oauthError: oauthError)
        error.refusal = ResourceRefusal(response)
        return error
    }

    /// Whether the same may work later without anybody doing anything: the network, a server that is overloaded, a busy
    /// store or key provider.
    public var isTransient: Bool {
        switch code {
        case .transport, .busy: true
        case .storageFailed: storeError?.isTransient ?? false
        case .clientKeyUnavailable: mayPass
        // It may have had an effect, whatever the status is.
        case .registrationUnknown: false
        default: status.map { $0 >= 500 || $0 == 429 || $0 == 408 } ?? false
        }
    }

    /// Whether the token endpoint said that the grant is over for good (RFC 6749 §5.2 `invalid_grant`). Some providers
    /// say so with status 200 or 401; what an overloaded server says is not believed.
    var isDefiniteRefusal: Bool {
        guard code == .tokenRefused, oauthError == "invalid_grant", let status else { return false }
        return status == 200 || (400..<500).contains(status) && !isTransient
    }

    /// Whether the token endpoint said that this client, or what it asks for, may not be refreshed (RFC 6749 §5.2). It
    /// says nothing about the refresh token.
    var isRefusalOfClient: Bool {
        let errors = ["invalid_client", "unauthorized_client", "invalid_scope", "unsupported_grant_type"]
        guard code == .tokenRefused, let oauthError, let status else { return false }
        return errors.contains(oauthError) && (status == 200 || (400..<500).contains(status) && !isTransient)
    }

    /// Whether a server that could not be told may be told at another try. A key, the client's or the session's, that
    /// cannot be used now, for want of a PIN perhaps, may be used then.
    var mayBeToldLater: Bool { isTransient || code == .clientKeyUnavailable || code == .keyUnavailable }

    /// Whether the token endpoint does not grant what was asked for (RFC 6749 §5.2).
    var isScopeRefusal: Bool { code == .tokenRefused && oauthError == "invalid_scope" }

    /// Whether there was no request, since the client could not say who it is.
    var isAboutClientKey: Bool { [.clientKeyMissing, .clientKeyUnavailable, .notRegistered].contains(code) }

    /// Whether the server refused because of the client, so that nothing has happened.
    var isAboutClient: Bool { oauthError.map(Self.clientErrors.contains) == true }

    /// Whether the token endpoint wants a nonce and so did nothing (RFC 9449 §8). `invalid_dpop_proof` does not say
    /// that: where something between repeats a request, the second copy has a proof that was used before, and the first
    /// may have been carried out.
    var isDemandForNonce: Bool { code == .tokenRefused && oauthError == "use_dpop_nonce" }

    /// The reason to sign in, the server's `error` and the status.
    public var notes: [String] {
        [signInReason?.description, oauthError, status.map { "status \($0)" }].compactMap(\.self)
    }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The configuration cannot be used.
        public static let invalidConfiguration = Code("invalidConfiguration")
        /// There is no reply; see ``TokenError/transportError``.
        public static let transport = Code("transport")
        /// A reply is not what the protocol says.
        public static let malformedReply = Code("malformedReply")
        /// The server's description of itself names another issuer (OpenID Connect Discovery §4.3).
        public static let issuerMismatch = Code("issuerMismatch")
        /// An endpoint is missing, or is one that nothing may be sent to.
        public static let unusableEndpoint = Code("unusableEndpoint")
        /// The answer to the authorization request is not at the redirect URI.
        public static let unexpectedRedirect = Code("unexpectedRedirect")
        /// The answer to the authorization request does not belong to it (`state`), or is another server's (`iss`).
        public static let foreignAnswer = Code("foreignAnswer")
        /// The server refused the authorization request.
        public static let authorizationRefused = Code("authorizationRefused")
        /// The token endpoint refused; see ``TokenError/oauthError``.
        public static let tokenRefused = Code("tokenRefused")
        /// The ID token is missing or does not hold.
        public static let invalidIDToken = Code("invalidIDToken")
        /// The user has to sign in; see ``TokenError/signInReason``.
        public static let signInNeeded = Code("signInNeeded")
        /// Somebody has signed out, or in, while a call waited to be sent. It was not sent: it would have gone out in
        /// another user's name.
        public static let sessionChanged = Code("sessionChanged")
        /// The userinfo endpoint refused, or told of another user.
        public static let userInfoRefused = Code("userInfoRefused")
        /// The server has no links into a browser for this app.
        public static let webLinkDisabled = Code("webLinkDisabled")
        /// The server gave no link into a browser; see ``TokenError/oauthError``.
        public static let webLinkRefused = Code("webLinkRefused")
        /// The server refused to revoke or to end the session.
        public static let signOutRefused = Code("signOutRefused")
        /// The key that the tokens are bound to cannot be used now.
        public static let keyUnavailable = Code("keyUnavailable")
        /// The token endpoint got a proof and gave tokens that are not bound to its key. They are not used.
        public static let unboundTokens = Code("unboundTokens")
        /// No proof can be made for a request: it has one already, or a URL that a proof cannot name.
        public static let unprovable = Code("unprovable")
        /// The key provider does not have the key by which this client authenticates, or has destroyed it.
        public static let clientKeyMissing = Code("clientKeyMissing")
        /// The key by which this client authenticates cannot be used, now or at all.
        public static let clientKeyUnavailable = Code("clientKeyUnavailable")
        /// The server did not register this installation, or did not change or end its registration; see
        /// ``TokenError/oauthError``.
        public static let registrationRefused = Code("registrationRefused")
        /// The server may have registered this installation, or changed its registration, and nobody knows.
        public static let registrationUnknown = Code("registrationUnknown")
        /// This installation is not registered, and what it was to do needs no new registration.
        public static let notRegistered = Code("notRegistered")
        /// This installation has no token of its own: it has asked for none, or its registration has ended.
        public static let deviceNotAuthenticated = Code("deviceNotAuthenticated")
        /// No remembered user is implicitly authenticated.
        public static let implicitUserMissing = Code("implicitUserMissing")
        /// The server does not grant all scopes that the installation asked for.
        public static let scopeRefused = Code("scopeRefused")
        /// Another task or process was renewing the tokens for too long.
        public static let busy = Code("busy")
        /// The store failed; the detail is the store's.
        public static let storageFailed = Code("storageFailed")
    }
}

extension TokenError {
    /// What a key provider's failure means for the client: a key that was destroyed does not come back, everything else
    /// may pass.
    init(clientKey name: String, _ error: KeyProviderError) {
        let key = "The client key \(ClientKey.shown(name))"
        if error.code == .keyLost {
            self.init(.clientKeyMissing, "\(key) was destroyed. \(error.detail)")
        } else {
            self.init(.clientKeyUnavailable, "\(key) cannot be used now. \(error.detail)", suggestion: error.suggestion)
            mayPass = error.isTransient
        }
    }

    /// The user has to sign in.
    static func signInNeeded(
        _ reason: SignInReason, status: Int? = nil, isWithoutReason: Bool = false
    ) -> TokenError {
        var error = TokenError(.signInNeeded, reason.detail, status: status, signInReason: reason)
        error.isWithoutReason = isWithoutReason
        return error
    }

    /// Somebody else changes what is stored, again and again.
    static let keepsChanging = TokenError(.busy, "Tokens and session kept changing while they were renewed.")

    /// A call was not sent, since its user may be another one now.
    static let userChanged = TokenError(
        .sessionChanged, "Somebody has signed out, or in, since the call began, so it is not sent.",
        suggestion: "Send the request again if the user is still the same.")

    /// Nothing was revoked or ended, since it would have been another user's.
    static let userReplaced = TokenError(
        .sessionChanged, "Somebody has signed in since this user was asked for, so nothing was revoked or ended.",
        suggestion: "Ask who is signed in now.")

    /// What a provider says of a client that it does not know, or that may not do this (RFC 6749 §4.1.2.1, §5.2).
    static let clientErrors: Set = ["invalid_client", "unauthorized_client"]

    /// What to do where the error says nothing else.
    private static func usualAdvice(_ code: Code, status: Int?, oauthError: String?) -> String? {
        if let status, status >= 500 || status == 429 || status == 408 { return "Try again later." }
        switch code {
        case .invalidConfiguration: return "Correct the configuration."
        case .transport, .busy: return "Try again later."
        case .malformedReply: return "Check that the issuer's URL leads to an OpenID provider."
        case .issuerMismatch: return "Give the issuer exactly as the provider writes it in its own description."
        case .unusableEndpoint: return "Ask the provider's operator to publish this endpoint, with https."
        case .unexpectedRedirect: return "Check the client's redirect URI at the provider."
        case .foreignAnswer: return "Start the sign-in again."
        case .authorizationRefused where oauthError.map(clientErrors.contains) == true,
            .tokenRefused where oauthError.map(clientErrors.contains) == true:
            return "Check client.id, and what the provider lets this client do."
        case .authorizationRefused where oauthError == "access_denied": return "Sign in again if that was a mistake."
        case .authorizationRefused: return "Check the client's redirect URI and scopes at the provider."
        case .tokenRefused: return "Check the client's id, scopes and grants at the provider."
        case .invalidIDToken: return "Check this machine's clock and the client's id, and sign in again."
        case .signInNeeded: return "Sign in."
        case .userInfoRefused: return "Sign in again, with the scope openid."
        case .signOutRefused: return "Sign out at the provider's own page."
        case .storageFailed: return "Check where session and tokens are kept."
        case .keyUnavailable, .clientKeyUnavailable: return "Check the key provider, and try again."
        case .clientKeyMissing:
            return "Check the key's name and provider, or make a key and register it at the provider."
        case .registrationRefused: return "Check the app at the provider."
        case .registrationUnknown: return "Try again: the next try registers anew."
        case .notRegistered: return "Sign in, which registers this installation."
        case .deviceNotAuthenticated: return "Authenticate the device first."
        case .implicitUserMissing: return "Authenticate the user implicitly first."
        case .scopeRefused: return "Ask for scopes that the app may have, and register them (deviceScopes)."
        case .unboundTokens: return "Ask the provider's operator to support DPoP (RFC 9449) for this client."
        default: return nil
        }
    }
}

/// Why the user has to sign in.
public enum SignInReason: String, Hashable, Sendable, CustomStringConvertible {
    /// There is neither a session nor a token.
    case notSignedIn
    /// There are tokens and no session, as after a sign-in in a browser, and the resource gets the session.
    case noSession
    /// The token is over, there is no refresh token and no session.
    case expired
    /// The refresh token was refused and there is no session.
    case refreshRefused
    /// The refresh token was refused after an earlier refresh with it had no answer, and there is no session: the
    /// server had used it up, and does not give its successor a second time.
    case refreshInterrupted
    /// The server does not accept the session any more.
    case sessionRefused
    /// A resource refused the access token, there is no refresh token and no session.
    case accessTokenRejected
    /// The key that the tokens were bound to is gone, and there is no session; or the session's key is gone.
    case keyLost

    /// The name.
    public var description: String { rawValue }

    /// What happened.
    var detail: String {
        switch self {
        case .notSignedIn: "Nobody is signed in."
        case .noSession:
            "There are tokens and no session, as after a sign-in in a browser, and this needs a session: sign in by a journey."
        case .expired: "The access token has expired, and nothing renews it."
        case .refreshRefused: "The server refused the refresh token."
        case .refreshInterrupted: "An earlier refresh was interrupted, and the server does not repeat its answer."
        case .sessionRefused: "The server does not accept the session any more."
        case .accessTokenRejected: "A resource refused the access token, and nothing renews it."
        case .keyLost: "The key that the tokens or the session were bound to is gone, so they are of no use."
        }
    }
}
