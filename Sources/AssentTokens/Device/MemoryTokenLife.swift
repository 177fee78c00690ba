import AssentCore
import Foundation

/// What a token that is in memory alone is good for, the installation's or a remembered user's: a state machine
/// without I/O, which is told what the server answered and what ended, and says the next step. Its table is in
/// `docs/token-life-cycle.md`.
struct MemoryTokenLife: Sendable {
    /// What the server gave, as it is used.
    struct Grant: Sendable {
        let token: AccessToken
        /// What was asked for, and is granted.
        let scopes: Set<String>
        let expiresAt: Date?
        let obtainedAt: Date
        /// The remembered user whose it is; `nil` for the installation's own.
        var user: String?
    }

    /// One request for a token.
    struct Ask: Sendable, Equatable {
        let scopes: Set<String>
        /// Which installation it is for, counted: the answer is nobody's once that has ended.
        let era: UInt64
        /// Whether an installation that is not registered registers for it.
        let mayRegister: Bool
        /// The remembered user for whom it is.
        var user: String?
    }

    /// What to do next.
    enum Step: Sendable {
        case use(Grant)
        /// Get a token from the server.
        case ask(Ask)
        case fail(TokenError)
    }

    /// What came of a request.
    enum Answer: Sendable {
        /// The token, and the scopes that the server granted.
        case granted(Grant, scopes: Set<String>)
        /// The server has ended the registration, or nothing is registered.
        case ended(TokenError)
        /// Anything else: the token that is there may still do.
        case failed(TokenError)
    }

    /// Seconds that a token must still be good for, or else it is renewed.
    let margin: TimeInterval

    /// Seconds that the clock may have gone back without making a token doubtful.
    let leeway: TimeInterval

    /// What calls fail with that want a token which nobody has asked for.
    private let missing: TokenError

    private struct Asked: Equatable {
        let scopes: Set<String>
        let user: String?
    }

    private var grant: Grant?
    private var asked: Asked?

    /// The remembered user whose calls get the token; `nil` for the installation, or while it is nobody.
    var user: String? { asked?.user }
    private var era: UInt64 = 0

    init(margin: TimeInterval, leeway: TimeInterval, missing: TokenError = Self.notAuthenticated) {
        self.missing = missing
        self.margin = margin
        self.leeway = leeway
    }

    /// The app authenticates the installation, or a remembered user, for these scopes.
    func authenticate(_ scopes: Set<String>, user: String? = nil, now: Date) -> Step {
        if let grant, grant.scopes == scopes, grant.user == user, isFresh(grant, nil, now) { return .use(grant) }
        return .ask(Ask(scopes: scopes, era: era, mayRegister: true, user: user))
    }

    /// A call wants the token.
    func wanted(rejecting rejected: Secret?, now: Date) -> Step {
        guard let asked else { return .fail(missing) }
        if let grant, isFresh(grant, rejected, now) { return .use(grant) }
        return .ask(Ask(scopes: asked.scopes, era: era, mayRegister: false, user: asked.user))
    }

    /// The server answered a request.
    mutating func answered(_ ask: Ask, _ answer: Answer, rejecting rejected: Secret?, now: Date) -> Step {
        guard ask.era == era else {
            // Reading the registration has ended it already, and the reason is the answer's.
            if case .ended(let error) = answer { return .fail(error) }
            return .fail(missing)
        }
        switch answer {
        case .granted(let new, let scopes):
            guard ask.scopes.isSubset(of: scopes) else { return .fail(Self.scopeRefused) }
            // The app may have asked for other scopes, or another user's, since the call began.
            let wanted = Asked(scopes: ask.scopes, user: ask.user)
            guard ask.mayRegister || asked == wanted else { return .use(new) }
            (grant, asked) = (new, wanted)
            return .use(new)
        case .ended(let error):
            end()
            return .fail(error)
        case .failed(let error):
            guard let grant, grant.scopes == ask.scopes, grant.user == ask.user, isUsable(grant, rejected, now) else {
                return .fail(error)
            }
            return .use(grant)
        }
    }

    /// The installation's registration has ended, here or at the server. What is under way is nobody's.
    mutating func end() {
        grant = nil
        asked = nil
        era &+= 1
    }

    private func isFresh(_ grant: Grant, _ rejected: Secret?, _ now: Date) -> Bool {
        guard grant.token.value != rejected, grant.obtainedAt <= now.addingTimeInterval(leeway) else { return false }
        return grant.expiresAt.map { now.addingTimeInterval(margin) < $0 } ?? true
    }

    private func isUsable(_ grant: Grant, _ rejected: Secret?, _ now: Date) -> Bool {
        grant.token.value != rejected && grant.expiresAt.map { now < $0 } ?? true
    }

    static let notAuthenticated = TokenError(
        .deviceNotAuthenticated, "This installation has not asked for a token, or its registration has ended.")

    static let notImplicit = TokenError(
        .implicitUserMissing, "No remembered user is implicitly authenticated, or what remembered them has ended.")

    static let scopeRefused = TokenError(.scopeRefused, "The server does not grant all scopes that were asked for.")
}
