package import AssentCore
package import AssentJOSE

/// The tokens of who is signed in now, and of nobody who signs in later: what was asked for one user is not given of
/// another.
package struct SignInTokens: Sendable {
    private let manager: TokenManager
    private let signIn: SignInMark

    /// Tokens of the user whom `manager` has now.
    package init(_ manager: TokenManager) {
        self.manager = manager
        signIn = manager.storage.signIn
    }

    /// Good tokens: the stored ones, or renewed.
    ///
    /// - Parameter rejected: an access token that was just refused; it is not returned again.
    /// - Returns: the tokens.
    /// - Throws: ``TokenError`` as ``TokenManager/tokens(rejecting:)``; `sessionChanged` when somebody has signed out,
    ///   or in, since this was made: also while the tokens were waited for.
    package func tokens(rejecting rejected: Secret? = nil) async throws -> TokenSet {
        let good = try await manager.tokens(rejecting: rejected)
        guard manager.storage.signIn === signIn else { throw TokenError.userChanged }
        return good
    }

    /// New tokens, whether or not the stored ones are good.
    ///
    /// - Returns: the tokens.
    /// - Throws: ``TokenError`` as ``tokens(rejecting:)``.
    package func refresh() async throws -> TokenSet {
        try await tokens(rejecting: try await manager.storedTokens()?.accessToken)
    }

    /// Whether nobody has signed out, or in, since this was made.
    package var isCurrent: Bool { manager.storage.signIn === signIn }

    /// Whether they are tokens of this manager.
    ///
    /// - Parameter other: the manager.
    /// - Returns: whether they are.
    package func areOf(_ other: TokenManager) -> Bool { manager === other }

    /// Revokes them and forgets them, as ``TokenManager/revoke()``.
    ///
    /// - Returns: what could not be done. Where somebody has signed in since this was made, nothing is, and
    ///   `localFailure` has the code `sessionChanged`.
    package func revoke() async -> SignOutResult { await manager.forget(session: false, of: signIn) }

    /// Signs out as ``TokenManager/signOut()``.
    ///
    /// - Returns: as ``revoke()``.
    package func signOut() async -> SignOutResult { await manager.forget(session: true, of: signIn) }

    /// See ``TokenManager/userInfo()``.
    ///
    /// - Returns: the claims.
    /// - Throws: ``TokenError`` as ``tokens(rejecting:)``, and `userInfoRefused`.
    package func userInfo() async throws -> JWTClaims {
        let current = try await tokens()
        do {
            return JWTClaims(try await manager.provider.userInfo(current))
        } catch let error as TokenError where error.refusal == .token {
            let renewed = try await tokens(rejecting: current.accessToken)
            return JWTClaims(try await manager.provider.userInfo(renewed))
        }
    }
}
