import AssentCore
import Foundation

/// What to do when an access token is wanted; decided from what is stored and the time alone.
enum TokenDecision: Equatable {
    /// This one is good.
    case use(TokenSet)
    /// Get its successor with the refresh token.
    case refresh(TokenSet, refreshToken: Secret)
    /// Get new ones with the session.
    case authorize(Session)
    /// Nothing helps but signing in.
    case signIn(SignInReason)

    /// Decides.
    ///
    /// - Parameters:
    ///   - tokens: the stored tokens.
    ///   - session: the stored session.
    ///   - now: the time.
    ///   - margin: seconds that an access token must still be good for.
    ///   - rejected: an access token that a resource has just refused, though it looks good.
    init(tokens: TokenSet?, session: Session?, now: Date, margin: TimeInterval, rejected: Secret? = nil) {
        let session = session.flatMap { $0.token.isEmpty ? nil : $0 }
        guard let tokens, Self.belongs(tokens, to: session) else {
            self = session.map { .authorize($0) } ?? .signIn(.notSignedIn)
            return
        }
        if tokens.isValid(at: now, margin: margin), tokens.accessToken != rejected {
            self = .use(tokens)
        } else if let refreshToken = tokens.refreshToken {
            self = .refresh(tokens, refreshToken: refreshToken)
        } else if let session {
            self = .authorize(session)
        } else {
            self = .signIn(.expired)
        }
    }

    /// Tokens of another session are another sign-in's, perhaps another user's. Where there is no session now, they stand
    /// for themselves.
    static func belongs(_ tokens: TokenSet, to session: Session?) -> Bool {
        guard let session else { return true }
        return tokens.sessionFingerprint == TokenSet.fingerprint(of: session)
    }
}
