public import AssentCore
import Foundation

extension TokenManager {
    /// What came of a sign-in in a browser.
    public struct BrowserSignIn: Sendable {
        /// The user's tokens, stored.
        public let tokens: TokenSet

        /// The AM session of the sign-in before, which is not stored any more; ending it at AM is up to the caller.
        public let replacedSession: Session?

        /// Whose tokens they are, and nobody's who has signed in since.
        package let user: SignInTokens
    }

    /// Signs in through a browser (RFC 8252): the user signs in at the server's own page, and the redirect brings a
    /// code.
    ///
    /// There is no AM session afterwards; the tokens live by their refresh token. Session and tokens of an earlier
    /// sign-in are removed, its tokens revoked as far as possible.
    ///
    /// The answer is the one with this request's `state`; others are refused and do not end the wait, since any page
    /// and any program on this machine can send some. An answer with the right `state` ends it, good or bad: with
    /// another server's `iss` the request is known to others, so nothing that comes after it can be trusted.
    ///
    /// - Parameters:
    ///   - receiver: opens the browser and receives the redirect, at a redirect URI that the server allows.
    ///   - parameters: more items of the request, for example `login_hint` or `prompt`.
    /// - Returns: the tokens, and the session of the sign-in before.
    /// - Throws: ``TokenError``: `authorizationRefused` with the server's `oauthError` (for example `access_denied`),
    ///   `foreignAnswer`, `malformedReply`, `keyUnavailable`, `clientKeyMissing` and `clientKeyUnavailable` before the
    ///   browser opens, and what a token request throws; `CancellationError`; the receiver's errors.
    public func signIn(
        through receiver: any RedirectReceiver, parameters: [FormItems.Item] = []
    ) async throws -> BrowserSignIn {
        try await provider.client.check()
        // While the user is busy elsewhere nobody is kept waiting.
        let key = try await proofs.keys.forSignIn(until: clock.now.addingTimeInterval(configuration.patience))
        let attempt = try await provider.attempt(
            redirectURI: receiver.redirectURI, parameters: parameters, key: key?.binding)
        let redirect = try await receiver.receive(opening: attempt.url) { attempt.isAnswer($0) }
        let tokens = try await provider.tokens(for: attempt, redirect: redirect, key: key)
        let replaced = try await takeOver(tokens)
        // Before the revocation, which may take long: somebody else may sign in meanwhile.
        let user = SignInTokens(self)
        if let old = replaced.tokens { await orphans.revoke(old) }
        return BrowserSignIn(tokens: tokens, replacedSession: replaced.session, user: user)
    }

    /// Stores tokens in place of those of the user who was signed in.
    private func takeOver(_ tokens: TokenSet) async throws -> (tokens: TokenSet?, session: Session?) {
        do {
            var isMarked = false
            defer { if isMarked { storage.markSignIn() } }
            let before = try await exclusively {
                let contents = try await storage.load()
                // Somebody may have signed out meanwhile, and so removed the key.
                if let binding = tokens.key { _ = try await proofs.keys.key(of: binding, isAnew: true) }
                // Where it fails before, the user is still who it was.
                isMarked = true
                storage.markSignIn()
                // The session first: whatever stops this between the two, tokens and session are never of two users.
                if contents.session != nil { try await storage.save(nil) }
                guard try await storage.save(tokens, since: contents.tokensVersion) else {
                    throw TokenError.keepsChanging
                }
                try await storage.forgetAttempt()
                return (contents.tokens, contents.session)
            }
            unsaved = nil
            return before
        } catch {
            // Nobody will ever use them.
            await orphans.revoke(tokens)
            throw error
        }
    }
}
