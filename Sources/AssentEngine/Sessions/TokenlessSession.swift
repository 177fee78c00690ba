import AssentCore
import AssentStore

/// A session of a user who has signed in elsewhere than in a journey. It begins when its statement is run, and carries
/// a grant. Without a token it ends with that, and nobody can present it: sessions are found by the hash of theirs.
struct TokenlessSession: Sendable {
    /// The key in the store (``LiveSession/id``).
    let id: String

    /// The id for the audit log, which is the `sid` of ID tokens.
    let auditID: String

    /// When the user has signed in, in seconds since 1970.
    let authTime: Int64

    /// Its token, which belongs to the key of the grant; `nil` for one without.
    let token: Secret?

    /// What begins it.
    let statement: SQLStatement

    /// What stands in the place of a token's hash. No hash has a colon (``TokenHash``).
    static let idPrefix = "no-token:"

    /// That a session has no token, by its column `id`.
    static func isMeant(by id: SQL) -> SQL { "substr(\(id), 1, 9) = \(idPrefix)" }
}

extension LiveSession {
    /// Whether somebody can present it. A session without a token is found by the grants that belong to it alone.
    package var hasToken: Bool { !id.hasPrefix(TokenlessSession.idPrefix) }
}

extension Sessions {
    /// A session for a grant without a redirect.
    ///
    /// - Parameters:
    ///   - signIn: what its user has proved. A time that has yet to come is now.
    ///   - kind: for what it is made.
    ///   - limits: how long it lives. The longest life begins with the sign-in, and the time without
    ///     use now.
    ///   - sender: the key that its token belongs to; without one it has no token.
    /// - Returns: the session; `nil` when its time is over already.
    func prepareTokenless(
        for signIn: ProvedSignIn, as kind: SessionKind, limits: SessionLimits, sender: SenderBinding? = nil
    ) -> TokenlessSession? {
        let now = context.clock.epochSeconds
        let authTime = min(signIn.authTime, now)
        guard authTime + limits.maxSession > now else { return nil }
        let token = sender.map { _ in Secret(context.random.token()) }
        let new = NewSession(
            id: token.map(TokenHash.of) ?? TokenlessSession.idPrefix + context.random.uuid(),
            auditID: context.random.uuid(),
            userID: signIn.user.id, epoch: signIn.user.epoch, realm: signIn.user.realm, authLevel: signIn.authLevel,
            authTime: authTime, limits: limits, kind: kind, isOfJourney: false, sender: sender, acr: signIn.acr,
            amr: signIn.amr, container: signIn.container)
        return TokenlessSession(
            id: new.id, auditID: new.auditID, authTime: authTime, token: token, statement: new.statement(at: now))
    }
}
