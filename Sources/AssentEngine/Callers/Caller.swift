package import AssentCore

/// Who sends a request, found once, before anything is decided. What is known of them is large, and it is handed on
/// often.
package indirect enum Caller: Sendable {
    /// Nobody who is known: no credentials, or a session that has ended.
    case anonymous
    /// The user of a live session of the realm, who has proved its key where it belongs to one. The nonce is for the
    /// reply, where it is time for a new one.
    case session(LiveSession, SessionCarrier, newNonce: String? = nil)
    /// The user of a live session of another realm.
    case foreignSession(LiveSession)
    /// A client with a valid access token of the realm and, where the token belongs to a key, a proof of that key. The
    /// nonce is for the reply, where it is time for a new one (RFC 9449 §8.2).
    case accessToken(AccessGrant, newNonce: String?)
    /// Somebody with an access token that is not valid here, or without one that the service asks for; or with a
    /// session that belongs to a key, and no valid proof of that key.
    case refusedToken(TokenRefusal)
    /// Somebody whose credentials are valid, and of a kind that the service does not take.
    case refusedKind(CallerKind)

    /// The session of this realm and the way in which it was presented; `nil` without one.
    package var presented: PresentedSession? {
        switch self {
        case .session(let session, _, _): PresentedSession(session)
        case .accessToken(let grant, _):
            grant.owner?.session.map {
                PresentedSession($0, grantID: grant.grantID, sender: grant.sender, tokenID: grant.tokenID)
            }
        case .anonymous, .foreignSession, .refusedToken, .refusedKind: nil
        }
    }

    /// The session of this realm, however it was presented; `nil` without one.
    var liveSession: LiveSession? {
        switch self {
        case .session(let session, _, _): session
        case .accessToken(let grant, _): grant.owner?.session
        case .anonymous, .foreignSession, .refusedToken, .refusedKind: nil
        }
    }

    /// The user; `nil` for a caller who is not known, and for a client that acts for itself.
    package var user: User? {
        switch self {
        case .session(let session, _, _): session.user
        case .accessToken(let grant, _): grant.owner?.user
        case .anonymous, .foreignSession, .refusedToken, .refusedKind: nil
        }
    }

    /// The scopes of the access token; `nil` for a caller without one.
    package var scopes: Set<String>? {
        if case .accessToken(let grant, _) = self { Set(grant.scopes) } else { nil }
    }

    /// The nonce for the client's next proof, where it is time for a new one.
    package var newNonce: String? {
        switch self {
        case .session(_, _, let nonce), .accessToken(_, let nonce): nonce
        case .anonymous, .foreignSession, .refusedToken, .refusedKind: nil
        }
    }

    /// Whether it is a client that acts for itself: no user could sign in for it.
    package var isClientItself: Bool {
        if case .accessToken(let grant, _) = self { grant.owner == nil } else { false }
    }

    /// Whether the credentials were refused.
    var isRefused: Bool { if case .refusedToken = self { true } else { false } }

    /// The live session of this realm, presented by its own token; `nil` without one.
    package var session: LiveSession? {
        if case .session(let session, _, _) = self { session } else { nil }
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
    package var accessToken: TokenCredentials

    /// What proves the key that the access token, or the session, belongs to; `nil` where a door takes no proof.
    package var proof: PresentedProof?

    /// Credentials.
    package init(
        session: SessionCredential? = nil, accessToken: TokenCredentials = .absent, proof: PresentedProof? = nil
    ) {
        self.session = session
        self.accessToken = accessToken
        self.proof = proof
    }
}

/// What a request says about the key of its sender, unchecked, and what a proof of that key must be about (RFC 9449
/// §4.3).
package struct PresentedProof: Sendable {
    /// The values of the fields `DPoP`.
    package let fields: [String]

    /// The request's method.
    package let method: String

    /// The request's URL by the public address of the door, never by what the request calls its host.
    package let url: String

    /// Whose nonces are valid at the door.
    package let server: ProofServer

    /// Whether it belongs to a journey, whose first request needs no credential. Such proofs are remembered apart from
    /// the others.
    package var isOfJourney = false

    /// The one proof; `nil` without a field.
    ///
    /// - Throws: ``SenderProofRefusal`` for more than one (RFC 9449 §4.3).
    var field: String? {
        get throws(SenderProofRefusal) {
            guard fields.count <= 1 else {
                throw SenderProofRefusal(.invalidProof, "The request has more than one DPoP field.")
            }
            return fields.first
        }
    }

    /// A proof.
    package init(fields: [String], method: String, url: String, server: ProofServer) {
        self.fields = fields
        self.method = method
        self.url = url
        self.server = server
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
