import AssentCore
import Foundation

/// What to do when an access token is wanted: a state machine without I/O, which is told what is stored and what came
/// of each step, and says the next step. Its table is `docs/token-life-cycle.md`.
struct TokenRenewal {
    /// What to do next.
    enum Step: Equatable {
        /// Read the store, at the beginning and whenever somebody else has changed it.
        case read
        /// Hand these out.
        case use(TokenSet)
        /// Give up; nothing is removed by that.
        case fail(TokenError)
        /// Remove the stored tokens.
        case remove(TokenSet, Removal)
        /// Remove the stored session, which the server does not accept any more.
        case removeSession
        /// Get the successor with the refresh token.
        case refresh(TokenSet, refreshToken: Secret)
        /// Get new tokens with the session.
        case authorize(Session)
        /// Store these in place of what was read, then hand them out.
        case store(TokenSet)
    }

    /// Why stored tokens are of no use to anybody any more.
    enum Removal: Equatable {
        /// They were got with another session than the one that is stored: another sign-in, perhaps another user.
        case orphaned
        /// The refresh token was refused for good.
        case refused
        /// The access token is over, and nothing renews it.
        case expired
        /// The key that they are bound to is gone. They are never sent as bearer tokens.
        case keyLost
    }

    /// What came of a refresh.
    enum RefreshAnswer {
        case granted(TokenSet)
        /// The server said that the refresh token is of no use any more.
        case refused
        /// The server refused the refresh token and gave no reason. It may mean the same, so the session is tried or
        /// the user has to sign in; but nothing is removed.
        case refusedWithoutReason
        /// The server said that this client, or what it asks for, may not be refreshed. It says nothing about the
        /// refresh token, which is kept; the session may still get tokens.
        case refusedClient(TokenError)
        /// Anything else: nobody knows, or it may pass.
        case failed(TokenError)
    }

    /// What came of an authorization with the session, or of the exchange of its code.
    enum AuthorizationAnswer {
        case granted(TokenSet)
        /// The server said that the session is of no use any more.
        case refused
        /// The server refused and gave no reason. It may mean the same, so the user has to sign in; but nothing is
        /// removed.
        case refusedWithoutReason
        /// Anything else: nobody knows, or it may pass.
        case failed(TokenError)
    }

    /// Seconds that an access token must still be good for, or else it is renewed.
    let margin: TimeInterval

    /// Seconds that the clock may have gone back without making a token doubtful.
    let leeway: TimeInterval

    /// An access token that a resource has refused, though it looks good.
    let rejected: Secret?

    /// Whether anything gets new tokens.
    private let renews: Bool

    private var session: Session?
    private var tokens: TokenSet?
    private var reason: SignInReason?
    private var readings = 0
    private var isKeyLost = false

    /// How often the store may turn out to have changed before this gives up.
    private static let maximumReadings = 6

    init(margin: TimeInterval, leeway: TimeInterval, rejected: Secret? = nil, renews: Bool = true) {
        self.renews = renews
        self.margin = margin
        self.leeway = leeway
        self.rejected = rejected
    }

    /// The store was read. `isKeyLost` says that the tokens are bound to a key which is gone.
    mutating func loaded(tokens: TokenSet?, session: Session?, isKeyLost: Bool = false, now: Date) -> Step {
        self.isKeyLost = isKeyLost
        self.tokens = tokens
        self.session = session.flatMap { $0.token.isEmpty ? nil : $0 }
        readings += 1
        guard readings <= Self.maximumReadings else {
            return .fail(.keepsChanging)
        }
        guard let tokens else { return authorizeOrSignIn(otherwise: .notSignedIn) }
        guard tokens.belongs(to: self.session) else { return .remove(tokens, .orphaned) }
        if isKeyLost { return .remove(tokens, .keyLost) }
        if isFresh(tokens, now) { return .use(tokens) }
        guard renews else { return withoutRenewal(tokens, now) }
        if let refreshToken = tokens.refreshToken { return .refresh(tokens, refreshToken: refreshToken) }
        if let session = self.session { return .authorize(session) }
        return withoutRenewal(tokens, now)
    }

    /// The server answered a refresh. `isRepeated` says that an earlier attempt with the same refresh token had no
    /// answer.
    mutating func refreshed(_ answer: RefreshAnswer, isRepeated: Bool, now: Date) -> Step {
        switch answer {
        case .granted(let new): return .store(new)
        case .failed(let error): return useWhileGood(now, otherwise: error)
        case .refusedClient(let error):
            if let session { return .authorize(session) }
            return useWhileGood(now, otherwise: error)
        case .refusedWithoutReason:
            reason = isRepeated ? .refreshInterrupted : .refreshRefused
            if session == nil, let tokens = stillGood(now) { return .use(tokens) }
            return authorizeOrSignIn(otherwise: .refreshRefused)
        case .refused:
            reason = isRepeated ? .refreshInterrupted : .refreshRefused
            guard let tokens else { return authorizeOrSignIn(otherwise: .notSignedIn) }
            return .remove(tokens, .refused)
        }
    }

    /// The server answered an authorization with the session, or the exchange of its code.
    mutating func authorized(_ answer: AuthorizationAnswer, now: Date) -> Step {
        switch answer {
        case .granted(let new): return .store(new)
        case .failed(let error): return useWhileGood(now, otherwise: error)
        case .refused:
            reason = .sessionRefused
            return .removeSession
        case .refusedWithoutReason:
            reason = .sessionRefused
            guard let tokens else { return .fail(.signInNeeded(.sessionRefused)) }
            return withoutRenewal(tokens, now)
        }
    }

    /// The stored session was removed. Tokens that were got with it stand for themselves.
    mutating func removedSession(now: Date) -> Step {
        session = nil
        guard let tokens else { return .fail(.signInNeeded(.sessionRefused)) }
        return withoutRenewal(tokens, now)
    }

    /// The stored tokens were removed.
    mutating func removed(_ removal: Removal) -> Step {
        switch removal {
        case .expired: return .fail(.signInNeeded(reason ?? .expired))
        case .keyLost:
            reason = .keyLost
            tokens = nil
            return authorizeOrSignIn(otherwise: .keyLost)
        case .orphaned, .refused:
            tokens = nil
            return authorizeOrSignIn(otherwise: .notSignedIn)
        }
    }

    /// Somebody else holds the lease, or the store cannot be written: the stored tokens may still do.
    func unable(_ error: TokenError, now: Date) -> Step { useWhileGood(now, otherwise: error) }

    private func authorizeOrSignIn(otherwise: SignInReason) -> Step {
        session.flatMap { renews ? .authorize($0) : nil } ?? .fail(.signInNeeded(reason ?? otherwise))
    }

    private func withoutRenewal(_ tokens: TokenSet, _ now: Date) -> Step {
        if isUsable(tokens, now) { return .use(tokens) }
        // A resource's word alone removes nothing, nor does a refusal without a reason.
        guard !tokens.isValid(at: now), tokens.refreshToken == nil || !renews else {
            return .fail(.signInNeeded(reason ?? .accessTokenRejected))
        }
        return .remove(tokens, .expired)
    }

    private func useWhileGood(_ now: Date, otherwise error: TokenError) -> Step {
        stillGood(now).map { .use($0) } ?? .fail(error)
    }

    private func stillGood(_ now: Date) -> TokenSet? {
        tokens.flatMap { $0.belongs(to: session) && isUsable($0, now) ? $0 : nil }
    }

    /// Good enough not to think of renewing it.
    private func isFresh(_ tokens: TokenSet, _ now: Date) -> Bool {
        guard tokens.isValid(at: now, margin: margin), tokens.accessToken != rejected else { return false }
        // Tokens from the future: the clock went back, so nobody knows how old they are.
        return tokens.obtainedAt.map { $0 <= now.addingTimeInterval(leeway) } ?? true
    }

    private func isUsable(_ tokens: TokenSet, _ now: Date) -> Bool {
        tokens.isValid(at: now) && tokens.accessToken != rejected && !isKeyLost
    }
}
