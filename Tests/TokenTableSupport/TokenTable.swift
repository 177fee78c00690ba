package import AssentTokens

/// The decision table of the token life cycle: what the tests run against every provider, and what
/// `docs/token-life-cycle.md` shows.
package struct TokenTableRow: Sendable, CustomStringConvertible {
    /// What is stored about the access token when one is asked for.
    package enum Stored: String, Sendable, CaseIterable {
        case none = "none"
        case good = "good"
        case endless = "without end"
        case closing = "within the threshold"
        case expired = "expired"
        case rejected = "good, but a resource refused it"
        case future = "from the future (the clock went back)"
    }

    package enum SessionState: String, Sendable, CaseIterable {
        case none = "none"
        case same = "the same"
        case other = "another"
        case ended = "the same, ended at the server"
    }

    /// What comes of the first request to the token endpoint, or of the authorization request.
    package enum Answer: String, Sendable, CaseIterable {
        case none = "–"
        case ok = "ok"
        case okWithoutRefreshToken = "ok, no new refresh token"
        case invalidGrant = "`invalid_grant`"
        case invalidGrantWith200 = "200 with `invalid_grant`"
        case invalidClient = "401 `invalid_client`"
        case unauthorizedClient = "400 `unauthorized_client`"
        case invalidScope = "400 `invalid_scope`"
        case tooMany = "429"
        case tooManyWithInvalidGrant = "429 with `invalid_grant`"
        case unavailable = "503"
        case unavailableWithInvalidGrant = "503 with `invalid_grant`"
        case empty400 = "400, empty"
        case empty200 = "200, empty"
        case notJSON = "200, not JSON"
        case connectFailure = "no connection"
        case handshakeFailure = "connection ended before a byte of the reply"
        case lost = "connection lost after sending"
        case timeout = "timeout after sending"
        case cancelled = "task cancelled after sending"
        case killedBefore = "process killed before the server has it"
        case killedAfter = "process killed before the reply is there"
        case authorizeUnavailable = "503 from the authorization endpoint"
        case authorizeRefuses = "authorization refused, `invalid_scope`"
        case authorizeUnreachable = "no connection to the authorization endpoint"
    }

    /// What the caller gets.
    package enum Returned: Sendable, Hashable {
        case stored
        case new
        case error(TokenError.Code)
        case signIn(SignInReason)
        case cancelled
        case nothing
    }

    /// Which tokens are stored afterwards.
    package enum Left: String, Sendable {
        case none = "removed"
        case same = "the same"
        case new = "the new ones"
    }

    /// Which session is stored afterwards.
    package enum SessionLeft: String, Sendable {
        case none = "none"
        case kept = "kept"
        case removed = "removed"
    }

    /// What a request is for.
    package enum Request: String, Sendable, Hashable {
        case refresh = "refresh"
        case authorize = "authorize"
        case code = "code"
        case revoke = "revoke"
    }

    package let stored: Stored
    package let hasRefreshToken: Bool
    package let session: SessionState
    package let answer: Answer
    package let returned: Returned
    package let left: Left
    package let sent: [Request]
    /// What the next call gets when the server is well again.
    package let next: Returned
    /// The same, from a provider that does not repeat an answer; `nil` when it makes no difference.
    package let nextElsewhere: Returned?
    /// The same, from one that gives no reason when it refuses; `nil` when it makes no difference.
    package let nextWithoutReason: Returned?

    /// A session goes when the server is asked with it and does not accept it, and never otherwise.
    package var sessionLeft: SessionLeft {
        switch session {
        case .none: .none
        case .same, .other: .kept
        case .ended: sent.contains(.authorize) ? .removed : .kept
        }
    }

    package var description: String {
        "\(stored.rawValue), \(hasRefreshToken ? "refresh token" : "no refresh token"), session \(session.rawValue), \(answer.rawValue)"
    }

    init(
        _ stored: Stored, refresh: Bool, _ session: SessionState, _ answer: Answer, returns: Returned, leaves: Left,
        sends: [Request] = [], next: Returned, elsewhere: Returned? = nil, withoutReason: Returned? = nil
    ) {
        self.stored = stored
        hasRefreshToken = refresh
        self.session = session
        self.answer = answer
        returned = returns
        left = leaves
        sent = sends
        self.next = next
        nextElsewhere = elsewhere
        nextWithoutReason = withoutReason
    }
}

/// All rows.
package enum TokenTable {
    package static let rows: [TokenTableRow] =
        nothingStored + notRenewed + anotherSession + refreshed + refusedRefreshes + refusedWithoutReason
        + refusedClient
        + keeping
        + interrupted
        + bySession + rejectedTokens

    private typealias Row = TokenTableRow

    private static let nothingStored: [TokenTableRow] = [
        Row(
            .none, refresh: false, .none, .none, returns: .signIn(.notSignedIn), leaves: .none,
            next: .signIn(.notSignedIn)),
        Row(.none, refresh: false, .same, .ok, returns: .new, leaves: .new, sends: [.authorize, .code], next: .stored),
        Row(
            .none, refresh: false, .ended, .none, returns: .signIn(.sessionRefused), leaves: .none, sends: [.authorize],
            next: .signIn(.notSignedIn)),
        Row(
            .none, refresh: false, .same, .authorizeUnavailable, returns: .error(.authorizationRefused), leaves: .none,
            sends: [.authorize], next: .new),
        Row(
            .none, refresh: false, .same, .authorizeRefuses, returns: .error(.authorizationRefused), leaves: .none,
            sends: [.authorize], next: .new),
        Row(
            .none, refresh: false, .same, .authorizeUnreachable, returns: .error(.transport), leaves: .none, next: .new),
        Row(
            .none, refresh: false, .same, .unavailable, returns: .error(.tokenRefused), leaves: .none,
            sends: [.authorize, .code], next: .new),
        Row(
            .none, refresh: false, .same, .invalidGrant, returns: .error(.tokenRefused), leaves: .none,
            sends: [.authorize, .code], next: .new),
        Row(
            .none, refresh: false, .same, .lost, returns: .error(.transport), leaves: .none,
            sends: [.authorize, .code],
            next: .new),
        Row(
            .none, refresh: false, .same, .cancelled, returns: .cancelled, leaves: .new, sends: [.authorize, .code],
            next: .stored),
        Row(
            .none, refresh: false, .same, .killedBefore, returns: .nothing, leaves: .none, sends: [.authorize, .code],
            next: .new),
        Row(
            .none, refresh: false, .same, .killedAfter, returns: .nothing, leaves: .none, sends: [.authorize, .code],
            next: .new),
    ]

    /// Good tokens are used, and nobody is asked.
    private static let notRenewed: [TokenTableRow] =
        [Row.Stored.good, .endless].flatMap { stored in
            [true, false].flatMap { refresh in
                [Row.SessionState.none, .same, .ended].map { session in
                    Row(stored, refresh: refresh, session, .none, returns: .stored, leaves: .same, next: .stored)
                }
            }
        } + [
            Row(.closing, refresh: false, .none, .none, returns: .stored, leaves: .same, next: .stored),
            Row(.future, refresh: false, .none, .none, returns: .stored, leaves: .same, next: .stored),
            Row(
                .expired, refresh: false, .none, .none, returns: .signIn(.expired), leaves: .none,
                next: .signIn(.notSignedIn)),
        ]

    /// Tokens of another sign-in are removed and revoked, however good they are.
    private static let anotherSession: [TokenTableRow] =
        [Row.Stored.good, .endless, .closing, .expired, .rejected, .future].flatMap { stored in
            [true, false].map { refresh in
                Row(
                    stored, refresh: refresh, .other, .ok, returns: .new, leaves: .new,
                    sends: [.authorize, .code] + revokes(refresh), next: .stored)
            }
        } + [
            Row(
                .good, refresh: true, .other, .authorizeUnavailable, returns: .error(.authorizationRefused),
                leaves: .none,
                sends: [.authorize] + revokes(true), next: .new)
        ]

    /// The refresh token, if there is one, and the access token.
    private static func revokes(_ hasRefreshToken: Bool) -> [TokenTableRow.Request] {
        hasRefreshToken ? [.revoke, .revoke] : [.revoke]
    }

    /// With a refresh token, that is what is used.
    private static let refreshed: [TokenTableRow] = [Row.Stored.closing, .expired, .future].flatMap { stored in
        [Row.SessionState.none, .same, .ended].flatMap { session in
            [Row.Answer.ok, .okWithoutRefreshToken].map { answer in
                Row(
                    stored, refresh: true, session, answer, returns: .new, leaves: .new, sends: [.refresh],
                    next: .stored)
            }
        }
    }

    /// A refresh token that was refused for good: the session, or sign in.
    private static let refusedRefreshes: [TokenTableRow] = [Row.Stored.closing, .expired].flatMap { stored in
        [Row.Answer.invalidGrant, .invalidGrantWith200].flatMap { answer in
            [
                Row(
                    stored, refresh: true, .none, answer, returns: .signIn(.refreshRefused), leaves: .none,
                    sends: [.refresh], next: .signIn(.notSignedIn)),
                Row(
                    stored, refresh: true, .same, answer, returns: .new, leaves: .new,
                    sends: [.refresh, .authorize, .code], next: .stored),
                Row(
                    stored, refresh: true, .ended, answer, returns: .signIn(.sessionRefused), leaves: .none,
                    sends: [.refresh, .authorize], next: .signIn(.notSignedIn)),
            ]
        }
    }

    /// A refusal that is empty, as glewlwyd's always is: perhaps for good. The session, or sign in; but nothing is
    /// removed.
    private static let refusedWithoutReason: [TokenTableRow] = [
        Row(.closing, refresh: true, .none, .empty400, returns: .stored, leaves: .same, sends: [.refresh], next: .new),
        Row(
            .closing, refresh: true, .same, .empty400, returns: .new, leaves: .new,
            sends: [.refresh, .authorize, .code],
            next: .stored),
        Row(
            .closing, refresh: true, .ended, .empty400, returns: .stored, leaves: .same, sends: [.refresh, .authorize],
            next: .new),
        Row(
            .expired, refresh: true, .none, .empty400, returns: .signIn(.refreshRefused), leaves: .same,
            sends: [.refresh], next: .new),
        Row(
            .expired, refresh: true, .same, .empty400, returns: .new, leaves: .new,
            sends: [.refresh, .authorize, .code],
            next: .stored),
        Row(
            .expired, refresh: true, .ended, .empty400, returns: .signIn(.sessionRefused), leaves: .same,
            sends: [.refresh, .authorize], next: .new),
    ]

    /// A client that may not refresh, or not what it asks for: the session, or the error as it is. Nothing says that
    /// the refresh token is of no use, so it is kept.
    private static let refusedClient: [TokenTableRow] = [
        Row.Answer.invalidClient, .unauthorizedClient, .invalidScope,
    ].flatMap { answer in
        [
            Row(
                .closing, refresh: true, .none, answer, returns: .stored, leaves: .same, sends: [.refresh], next: .new),
            Row(
                .expired, refresh: true, .none, answer, returns: .error(.tokenRefused), leaves: .same,
                sends: [.refresh], next: .new),
            Row(
                .closing, refresh: true, .same, answer, returns: .new, leaves: .new,
                sends: [.refresh, .authorize, .code], next: .stored),
            Row(
                .expired, refresh: true, .same, answer, returns: .new, leaves: .new,
                sends: [.refresh, .authorize, .code], next: .stored),
            Row(
                .closing, refresh: true, .ended, answer, returns: .stored, leaves: .same,
                sends: [.refresh, .authorize], next: .new),
            Row(
                .expired, refresh: true, .ended, answer, returns: .signIn(.sessionRefused), leaves: .same,
                sends: [.refresh, .authorize], next: .new),
        ]
    }

    /// Answers that say nothing about the grant, and the error that they are. The server has not used the refresh
    /// token.
    private static let passing: [(answer: TokenTableRow.Answer, error: TokenError.Code)] = [
        (.tooMany, .tokenRefused), (.tooManyWithInvalidGrant, .tokenRefused), (.unavailable, .tokenRefused),
        (.unavailableWithInvalidGrant, .tokenRefused), (.empty200, .malformedReply),
        (.notJSON, .malformedReply), (.connectFailure, .transport), (.handshakeFailure, .transport),
    ]

    /// What may pass removes nothing: a token that is still good is used, one that is over is kept but not handed out.
    private static let keeping: [TokenTableRow] = [Row.SessionState.none, .same, .ended].flatMap { session in
        passing.flatMap { answer, error in
            let sends: [TokenTableRow.Request] =
                [.connectFailure, .handshakeFailure].contains(answer) ? [] : [.refresh]
            return [
                Row(
                    .closing, refresh: true, session, answer, returns: .stored, leaves: .same, sends: sends, next: .new),
                Row(
                    .expired, refresh: true, session, answer, returns: .error(error), leaves: .same, sends: sends,
                    next: .new),
            ]
        }
    }

    /// The server has used the refresh token, and the answer did not arrive.
    private static let interrupted: [TokenTableRow] = [Row.SessionState.none, .same, .ended].flatMap { session in
        let elsewhere: TokenTableRow.Returned =
            switch session {
            case .none: .signIn(.refreshInterrupted)
            case .ended: .signIn(.sessionRefused)
            case .same, .other: .new
            }
        return [
            Row(
                .closing, refresh: true, session, .lost, returns: .stored, leaves: .same, sends: [.refresh], next: .new,
                elsewhere: elsewhere, withoutReason: session == .same ? nil : .stored),
            Row(
                .expired, refresh: true, session, .lost, returns: .error(.transport), leaves: .same, sends: [.refresh],
                next: .new, elsewhere: elsewhere),
            Row(
                .expired, refresh: true, session, .timeout, returns: .error(.transport), leaves: .same,
                sends: [.refresh],
                next: .new, elsewhere: elsewhere),
            Row(
                .expired, refresh: true, session, .killedAfter, returns: .nothing, leaves: .same, sends: [.refresh],
                next: .new, elsewhere: elsewhere),
            Row(
                .expired, refresh: true, session, .killedBefore, returns: .nothing, leaves: .same, sends: [.refresh],
                next: .new),
            Row(
                .expired, refresh: true, session, .cancelled, returns: .cancelled, leaves: .new, sends: [.refresh],
                next: .stored),
        ]
    }

    /// Without a refresh token the session gets new tokens, as long as it is accepted.
    private static let bySession: [TokenTableRow] =
        [
            Row(
                .closing, refresh: false, .same, .ok, returns: .new, leaves: .new, sends: [.authorize, .code],
                next: .stored),
            Row(
                .expired, refresh: false, .same, .ok, returns: .new, leaves: .new, sends: [.authorize, .code],
                next: .stored),
            Row(
                .future, refresh: false, .same, .ok, returns: .new, leaves: .new, sends: [.authorize, .code],
                next: .stored),
            Row(
                .closing, refresh: false, .ended, .none, returns: .stored, leaves: .same, sends: [.authorize],
                next: .stored),
            Row(
                .expired, refresh: false, .ended, .none, returns: .signIn(.sessionRefused), leaves: .none,
                sends: [.authorize], next: .signIn(.notSignedIn)),
        ]
        + [
            (Row.Answer.authorizeUnavailable, TokenError.Code.authorizationRefused, [Row.Request.authorize]),
            (.authorizeRefuses, .authorizationRefused, [.authorize]), (.authorizeUnreachable, .transport, []),
            (.invalidGrant, .tokenRefused, [.authorize, .code]), (.unavailable, .tokenRefused, [.authorize, .code]),
            (.notJSON, .malformedReply, [.authorize, .code]), (.lost, .transport, [.authorize, .code]),
            (.timeout, .transport, [.authorize, .code]), (.tooMany, .tokenRefused, [.authorize, .code]),
            (.invalidClient, .tokenRefused, [.authorize, .code]),
            (.invalidGrantWith200, .tokenRefused, [.authorize, .code]),
            (.empty200, .malformedReply, [.authorize, .code]),
        ].flatMap { answer, error, sends in
            [
                Row(.closing, refresh: false, .same, answer, returns: .stored, leaves: .same, sends: sends, next: .new),
                Row(
                    .expired, refresh: false, .same, answer, returns: .error(error), leaves: .same, sends: sends,
                    next: .new),
            ]
        }
        + [
            Row(
                .expired, refresh: false, .same, .cancelled, returns: .cancelled, leaves: .new,
                sends: [.authorize, .code], next: .stored),
            Row(
                .expired, refresh: false, .same, .killedBefore, returns: .nothing, leaves: .same,
                sends: [.authorize, .code], next: .new),
            Row(
                .expired, refresh: false, .same, .killedAfter, returns: .nothing, leaves: .same,
                sends: [.authorize, .code], next: .new),
        ]

    /// A resource's word makes a renewal, but removes nothing.
    private static let rejectedTokens: [TokenTableRow] = [
        Row(.rejected, refresh: true, .none, .ok, returns: .new, leaves: .new, sends: [.refresh], next: .stored),
        Row(.rejected, refresh: true, .same, .ok, returns: .new, leaves: .new, sends: [.refresh], next: .stored),
        Row(
            .rejected, refresh: true, .none, .unavailable, returns: .error(.tokenRefused), leaves: .same,
            sends: [.refresh],
            next: .stored),
        Row(
            .rejected, refresh: true, .none, .connectFailure, returns: .error(.transport), leaves: .same, next: .stored),
        Row(
            .rejected, refresh: true, .none, .invalidGrant, returns: .signIn(.refreshRefused), leaves: .none,
            sends: [.refresh], next: .signIn(.notSignedIn)),
        Row(
            .rejected, refresh: true, .same, .invalidGrant, returns: .new, leaves: .new,
            sends: [.refresh, .authorize, .code], next: .stored),
        Row(
            .rejected, refresh: true, .ended, .invalidGrant, returns: .signIn(.sessionRefused), leaves: .none,
            sends: [.refresh, .authorize], next: .signIn(.notSignedIn)),
        Row(
            .rejected, refresh: true, .none, .empty400, returns: .signIn(.refreshRefused), leaves: .same,
            sends: [.refresh], next: .stored),
        Row(
            .rejected, refresh: true, .same, .empty400, returns: .new, leaves: .new,
            sends: [.refresh, .authorize, .code], next: .stored),
        Row(
            .rejected, refresh: true, .none, .lost, returns: .error(.transport), leaves: .same, sends: [.refresh],
            next: .stored),
        Row(
            .rejected, refresh: true, .none, .cancelled, returns: .cancelled, leaves: .new, sends: [.refresh],
            next: .stored),
        Row(
            .rejected, refresh: false, .same, .ok, returns: .new, leaves: .new, sends: [.authorize, .code],
            next: .stored),
        Row(
            .rejected, refresh: false, .same, .authorizeUnavailable, returns: .error(.authorizationRefused),
            leaves: .same,
            sends: [.authorize], next: .stored),
        Row(
            .rejected, refresh: false, .none, .none, returns: .signIn(.accessTokenRejected), leaves: .same,
            next: .stored),
        Row(
            .rejected, refresh: false, .ended, .none, returns: .signIn(.sessionRefused), leaves: .same,
            sends: [.authorize], next: .stored),
    ]
}
