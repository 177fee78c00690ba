import AssentCore
import AssentStore

/// A session without a token, which begins when its statement is run. It carries a grant whose user has signed in
/// elsewhere than in a journey, and ends with it. Nobody can present it: it has no token, and sessions are found by the
/// hash of theirs.
struct TokenlessSession: Sendable {
    /// The key in the store (``LiveSession/id``).
    let id: String

    /// The id for the audit log, which is the `sid` of ID tokens.
    let auditID: String

    /// When the user has signed in, in seconds since 1970.
    let authTime: Int64

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
    /// A session without a token.
    ///
    /// - Parameters:
    ///   - signIn: what its user has proved. A time that has yet to come is now.
    ///   - kind: for what it is made.
    ///   - limits: how long it lives. The longest life begins with the sign-in, and the time without
    ///     use now.
    /// - Returns: the session; `nil` when its time is over already.
    func prepareTokenless(
        for signIn: ProvedSignIn, as kind: SessionKind, limits: SessionLimits
    ) -> TokenlessSession? {
        let now = context.clock.epochSeconds
        let authTime = min(signIn.authTime, now)
        guard authTime + limits.maxSession > now else { return nil }
        let new = NewSession(
            id: TokenlessSession.idPrefix + context.random.uuid(), auditID: context.random.uuid(),
            userID: signIn.user.id, epoch: signIn.user.epoch, realm: signIn.user.realm, authLevel: signIn.authLevel,
            authTime: authTime, limits: limits, kind: kind, isOfJourney: false, acr: signIn.acr, amr: signIn.amr)
        return TokenlessSession(
            id: new.id, auditID: new.auditID, authTime: authTime, statement: new.statement(at: now))
    }
}
