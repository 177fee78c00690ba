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
