public import AssentCore
public import AssentJOSE
import AssentJourney
public import AssentTokens

extension Assent {
    /// A user who is signed in. When somebody else has signed in, or this one anew, it gives no tokens and no claims,
    /// and revokes and ends nothing: that may be another user's.
    public struct User: Sendable {
        /// AM's session; `nil` when there are only tokens.
        public let session: Session?

        /// The user's identity as the server signed it; `nil` before there are tokens: after a journey there is a
        /// session, and the first ``token()`` or call makes tokens with it.
        ///
        /// ```swift
        /// struct Person: Decodable { let email: String }
        /// return try user.idToken?.claims.decode(Person.self).email
        /// ```
        public let idToken: IDToken?

        let assent: Assent

        let tokens: SignInTokens

        /// Tokens whose access token is valid. They are renewed first when they are about to expire.
        ///
        /// ```swift
        /// let accessToken = try await user.token().accessToken
        /// ```
        ///
        /// - Throws: `TokenError` with code `signInNeeded` when nothing renews them, `sessionChanged` when somebody has
        ///   signed in since, or why the renewal failed.
        public func token() async throws -> TokenSet { try await tokens.tokens() }

        /// New tokens, although the stored ones may still be valid.
        ///
        /// - Throws: `TokenError` as ``token()``; the stored tokens are then still there.
        @discardableResult
        public func refresh() async throws -> TokenSet { try await tokens.refresh() }

        /// Revokes the tokens and forgets them. The session stays: the next ``token()`` gets new ones with it.
        ///
        /// - Returns: what the server could not be told. When somebody has signed in since, nothing was done, and
        ///   `localFailure` has the code `sessionChanged`.
        @discardableResult
        public func revoke() async -> SignOutResult { await tokens.revoke() }

        /// Claims about the user from the server's userinfo endpoint (OpenID Connect Core §5.3).
        ///
        /// ```swift
        /// struct Profile: Decodable { let name: String, email: String? }
        /// let profile = try await user.userInfo().decode(Profile.self)
        /// ```
        ///
        /// - Throws: `TokenError` as ``token()``, and `userInfoRefused`.
        public func userInfo() async throws -> JWTClaims { try await tokens.userInfo() }

        /// Signs out: forgets session, tokens and cookies here, whatever the server says, and tells the server.
        ///
        /// While another user is signed in in memory, that one stays so.
        ///
        /// - Returns: what the server could not be told; see ``Assent/retrySignOuts()``. When somebody has signed in
        ///   since, nothing was done, and `localFailure` has the code `sessionChanged`.
        @discardableResult
        public func signOut() async -> SignOutResult { await assent.signOut(of: tokens) }
    }
}

/// Ends AM's sessions when the token manager signs out.
struct JourneySessions: SessionEnding {
    let client: JourneyClient

    func end(_ session: Session) async throws {
        do {
            try await client.signOut(session)
        } catch let error as JourneyError {
            // AM says so of a session that has ended.
            if error.status == 401 { return }
            throw TokenError(.signOutRefused, "AM's session is not ended: \(error.explanation)", status: error.status)
        } catch let failure as JourneyFailure {
            throw Self.error(failure)
        }
    }

    /// What keeps the server from being told now, and not for ever, is said as such: the session would else live on,
    /// and give tokens.
    private static func error(_ failure: JourneyFailure) -> any Error {
        let detail = "AM's session is not ended: \(failure.explanation)"
        switch failure.code {
        case .cancelled: return CancellationError()
        case .keyUnavailable: return TokenError(.keyUnavailable, detail, suggestion: failure.suggestion)
        // Without an error of the transport, a layer of the app's own has failed.
        case .transport: return TokenError(.transport, failure.detail, transportError: failure.transportError)
        default: return TokenError(.signOutRefused, detail, status: failure.status)
        }
    }

    func isAccepted(_ session: Session) async -> Bool? { try? await client.isAccepted(session) }
}
