package import AssentCore

/// Who sends a request, found once, before anything is decided. What is known of them is large, and it is handed on
/// often.
package indirect enum Caller: Sendable {
    /// Nobody who is known: no credentials, or a session that has ended.
    case anonymous
    /// The user of a live session of the realm.
    case session(LiveSession, SessionCarrier)
    /// The user of a live session of another realm.
    case foreignSession(LiveSession)
    /// A client with a valid access token of the realm.
    case accessToken(AccessGrant)
    /// Somebody with an access token that is not valid here.
    case refusedToken(AccessRefusal)

    /// The session of this realm and the way in which it was presented; `nil` without one.
    package var presented: PresentedSession? {
        switch self {
        case .session(let session, _): PresentedSession(session)
        case .accessToken(let grant):
            grant.owner?.session.map {
                PresentedSession($0, grantID: grant.grantID, keyThumbprint: grant.keyThumbprint)
            }
        case .anonymous, .foreignSession, .refusedToken: nil
        }
    }

    /// The user; `nil` for a caller who is not known, and for a client that acts for itself.
    package var user: User? {
        switch self {
        case .session(let session, _): session.user
        case .accessToken(let grant): grant.owner?.user
        case .anonymous, .foreignSession, .refusedToken: nil
        }
    }

    /// Whether it is a client that acts for itself: no user could sign in for it.
    package var isClientItself: Bool {
        if case .accessToken(let grant) = self { grant.owner == nil } else { false }
    }

    /// The live session of this realm, presented by its own token; `nil` without one.
    package var session: LiveSession? {
        if case .session(let session, _) = self { session } else { nil }
    }
}

/// What a session's token came in.
package enum SessionCarrier: Sendable, Hashable {
    /// A cookie, which a browser adds by itself.
    case cookie
    /// A header field, which only a client that means it adds.
    case field
}

/// What a request has to say who sends it, unchecked.
package struct PresentedCredentials: Sendable {
    /// A session's token.
    package var session: SessionCredential?

    /// The access token.
    package var accessToken: BearerCredentials

    /// Credentials.
    package init(session: SessionCredential? = nil, accessToken: BearerCredentials = .absent) {
        self.session = session
        self.accessToken = accessToken
    }
}

/// A session's token, and what it came in.
package struct SessionCredential: Sendable {
    /// The token.
    package let token: Secret

    /// What it came in.
    package let carrier: SessionCarrier

    /// A token.
    package init(token: Secret, carrier: SessionCarrier) {
        self.token = token
        self.carrier = carrier
    }
}
