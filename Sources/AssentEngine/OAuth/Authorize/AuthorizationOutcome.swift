package import AssentCore

/// What the user has said to the client's request.
package enum AuthorizationDecision: String, Sendable, Hashable {
    /// They agree (`decision=allow`).
    case allow
    /// They do not.
    case deny
}

/// What the authorization endpoint does.
package enum AuthorizationOutcome: Sendable {
    /// Send the browser to the client with a code or an error.
    case redirect(AuthorizationRedirect)

    /// The user must sign in first.
    case login(LoginDemand)

    /// The user must be asked.
    case consent(ConsentDemand)

    /// The session lives, told to a client that named no redirect URI (`response_type=none`, as AM).
    case sessionLives
}

/// An answer that goes to the client's redirect URI.
package struct AuthorizationRedirect: Sendable, CustomStringConvertible, CustomReflectable {
    /// The redirect URI, as the client asked for it.
    package let uri: String

    /// `code, iss, state, client_id`, or `error, error_description, iss, state`; for a session check `id_token, iss,
    /// state`.
    package let parameters: FormItems

    /// Whether they go behind `#`, which no server gets to see (OAuth 2.0 Multiple Response Type Encoding §2.1).
    package var isInFragment = false

    /// The value of the `Location` header.
    package var location: String {
        isInFragment ? "\(uri)#\(FormEncoding.encode(parameters))" : RedirectURI.adding(parameters, to: uri)
    }

    /// The `response_mode` of an ID token without a code.
    package static let fragmentMode = "fragment"

    /// The `response_mode` of a client that wants its answer in a form instead (OAuth 2.0 Form Post Response Mode).
    package static let postedMode = "form_post"

    /// Whether the answer to a request goes to the client in a form: it asks for one, and its redirect URI is a
    /// server's.
    package func isPosted(for request: OAuthParameters) -> Bool {
        request["response_mode"] == Self.postedMode && (try? Origin(uri)) != nil
    }

    /// One of the parameters.
    package subscript(name: String) -> String? { parameters[name] }

    /// Where to, and the names of the parameters: a code is a secret.
    package var description: String { "\(uri) (\(parameters.items.map(\.name).joined(separator: ", ")))" }

    /// A mirror without children, so that `dump` shows nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A sign-in that must come before the client's request can be answered.
package struct LoginDemand: Sendable {
    /// Whether the browser has a session that does not do: somebody must sign in although it is there. It ends when
    /// that has happened, not before: the request may come from a link on anybody's page.
    package let replacesSession: Bool

    /// The request to come back with (`goto`): the one that came, without a `prompt=login` that would ask again.
    package let continuation: OAuthParameters

    /// The request that ``continuation`` is, as a query.
    package var query: String { FormEncoding.encode(continuation.form) }

    /// What the sign-in is to meet, by the client's wish (`acr_values`); `nil` for the realm's own journey.
    package let requirement: AuthenticationContexts.Requirement?
}

/// A question to the user.
package struct ConsentDemand: Sendable {
    /// Who asks.
    package let client: OAuthClient

    /// Of whom.
    package let user: User

    /// For what.
    package let scopes: [String]

    /// Until when the answer would be remembered, in seconds since 1970.
    package let expiresAt: Int64

    /// The request to send again with the user's decision.
    package let parameters: OAuthParameters

    /// Where the answer goes.
    package let redirectURI: String
}
