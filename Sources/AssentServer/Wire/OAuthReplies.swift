import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

extension IssuedTokens {
    /// The body (RFC 6749 §5.1). It must be sent with `Cache-Control: no-store`.
    var json: JSONValue {
        var object = JSONObject()
        object["access_token"] = .string(accessToken.reveal())
        object["refresh_token"] = refreshToken.map { .string($0.reveal()) }
        object["scope"] = .string(scopes.joined(separator: " "))
        object["id_token"] = idToken.map { .string($0.reveal()) }
        object["assent_session"] = session.map { .string($0.reveal()) }
        object["token_type"] = .string(tokenType)
        object["expires_in"] = .integer(expiresIn)
        return .object(object)
    }
}

extension OAuthError {
    /// The status that belongs to the error (RFC 6749 §5.2, RFC 6750 §3.1; 400 to client credentials in the form, as
    /// AM's clients know it).
    var status: Int {
        switch (code, wanted) {
        case (_, .clientCredentials), (.invalidToken, _): 401
        case (.insufficientScope, _), (.accessDenied, _), (.webLinkDisabled, _),
            (.payloadEncryptionRequired, _), (.payloadEncryptionMismatch, _):
            403
        case (.temporarilyUnavailable, _): 503
        case (.serverError, _): 500
        default: 400
        }
    }

    /// The value of `WWW-Authenticate`, where the status asks for one. A token that came by another scheme hears of
    /// its scope in that scheme.
    func challenge(realm: String, scheme: TokenScheme = .bearer) -> String? {
        switch wanted {
        case .clientCredentials: "Basic realm=\"\(realm)\""
        case .accessToken: "Bearer realm=\"\(realm)\""
        case .otherAccessToken: "Bearer realm=\"\(realm)\", error=\"invalid_token\""
        case .scope(let scope) where scheme == .dpop:
            try? TokenChallenge(
                .dpop, error: code.rawValue, parameters: [.init(name: "scope", value: scope)]
            ).fieldValue()
        case .scope(let scope): "Bearer error=\"insufficient_scope\", scope=\"\(scope)\""
        case nil: nil
        }
    }
}

extension Response {
    /// An error in OAuth's form (RFC 6749 §5.2).
    static func oauth(_ error: OAuthError, realm: String, scheme: TokenScheme = .bearer) -> Response {
        var response = oauth(
            error.status, error.code.rawValue, error.detail, state: error.state, reason: error.reason?.rawValue)
        response.headers[.wwwAuthenticate] = error.challenge(realm: realm, scheme: scheme)
        return response
    }

    /// What an endpoint says to an access token, or to the proof beside it, that is not valid (RFC 9449 §7.1).
    static func oauth(_ refusal: TokenRefusal, realm: String) -> Response {
        guard refusal.scheme == .dpop else { return oauth(.invalidToken, realm: realm) }
        var response = oauth(401, refusal.error ?? OAuthError.Code.invalidToken.rawValue, refusal.detail)
        response.headers[.wwwAuthenticate] = try? TokenChallenge(refusal).fieldValue(realm: realm)
        response.give(nonce: refusal.nonce)
        return response
    }

    /// What the token endpoint says to a proof that is not valid, or that needs a nonce (RFC 9449 §5, §8).
    static func oauth(_ refusal: SenderProofRefusal) -> Response {
        var response = oauth(400, refusal.code.name, refusal.reason)
        response.give(nonce: refusal.code.nonce)
        return response
    }

    /// What somebody is told who asks too often in a minute.
    static func oauth(tooMany error: EngineError) -> Response {
        var response = oauth(429, OAuthError.Code.temporarilyUnavailable.rawValue, error.detail)
        response.headers[.retryAfter] = "60"
        return response
    }

    /// A request that could not be read, in OAuth's form.
    static func oauth(_ error: RequestError) -> Response { oauth(error.status, "invalid_request", error.message) }

    /// An error in OAuth's form: `error`, `error_description` and, where the request had one, `state`. `assent_error`
    /// is ours.
    static func oauth(
        _ status: Int, _ code: String, _ description: String, state: String? = nil, reason: String? = nil
    ) -> Response {
        var object: JSONObject = ["error": .string(code), "error_description": .string(description)]
        object["state"] = state.map(JSONValue.string)
        object["assent_error"] = reason.map(JSONValue.string)
        return json(status, .object(object))
    }
}
