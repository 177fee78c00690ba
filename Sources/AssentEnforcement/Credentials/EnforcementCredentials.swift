public import AssentCore

/// The credentials by which a service shows the server that it may ask about others: for ``PolicyClient`` a session of
/// a user of its own, who has the role `pep` (``ServiceAccount``); for ``EnforcementClient`` an access token of a
/// client of its own (``ClientAccount``).
public protocol EnforcementCredentials: Sendable {
    /// The session, or the access token.
    ///
    /// - Parameter refused: one that the server does not accept any more; `nil` when nothing is known against
    ///   the present one.
    /// - Returns: the present one, or another one than `refused`.
    /// - Throws: ``EnforcementError`` `notSignedIn` when there is none, `unavailable` when the server cannot be asked.
    func session(replacing refused: Secret?) async throws(EnforcementError) -> Secret
}

/// A session that somebody else looks after.
public struct GivenSession: EnforcementCredentials {
    private let token: Secret

    /// Credentials of a session's token.
    public init(_ token: Secret) { self.token = token }

    /// The session, unless it was refused.
    public func session(replacing refused: Secret?) async throws(EnforcementError) -> Secret {
        guard refused == nil || refused != token else {
            throw EnforcementError(.notSignedIn, "The session that was given to the service has ended.")
        }
        return token
    }
}
