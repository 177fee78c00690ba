import AssentCore
package import AssentStore

/// Gives a client tokens of a user who has signed in elsewhere than in a journey: on a device, or by a key. No browser
/// comes with a session that the grant could hang on, so it gets one of its own: without a token, but for a user who
/// has signed in with the PIN of a container.
///
/// It is for the engine's own use: which requests lead here is up to each type of grant.
package struct GrantWithoutRedirect: Sendable {
    private let provider: OAuthProvider

    /// The grants of a provider.
    package init(_ provider: OAuthProvider) {
        self.provider = provider
    }

    /// Makes the session, the grant and its tokens: all or nothing. Unless the client implies the consent, that of a
    /// signed-in user is remembered, and anybody else must have given it before: they agree to nothing now.
    ///
    /// - Parameters:
    ///   - signIn: what the user has proved.
    ///   - kind: for what the session is made. One that is not of a signed-in user lives as long as its access token,
    ///     has no refresh token, and nothing outlives it.
    ///   - scopes: what the user has granted. What the client may not have is left out.
    ///   - caller: the client, which has authenticated.
    ///   - keyThumbprint: the key whose proof came with the request, by its RFC 7638 thumbprint.
    ///   - spending: the statements that spend what the client shows for it, each with the count that it needs.
    ///   - claim: spends that proof, when everything else of the request is valid.
    /// - Returns: the tokens.
    /// - Throws: ``OAuthError``: `invalid_grant` when the sign-in is too long ago, the user is of another realm, was
    ///   locked or changed since, or `spending` finds nothing to spend; with the reason `consent_required` when the
    ///   user had to agree before, and has not. ``StoreError``.
    package func tokens(
        for signIn: ProvedSignIn, as kind: SessionKind = .user, scopes: [String], to caller: AuthenticatedClient,
        keyThumbprint: String?, spending: [SQLStatement], claimingProof claim: @Sendable () async throws -> Void
    ) async throws -> IssuedTokens {
        let (client, realm) = (caller.client, provider.configuration.realm)
        guard keyThumbprint != nil || !client.requiresProof else {
            throw OAuthError(.invalidDPoPProof, "This client gets tokens only with a proof of its key (DPoP).")
        }
        // What a container has signed is all that its device has stored: nothing may go on without it.
        let goesOn = kind == .user && signIn.container == nil
        let scopes = try OAuthClient.allowed(
            scopes, where: { client.scopes.contains($0) && (goesOn || $0 != OAuthClient.offlineAccess) })
        let lifetime = client.accessTokenLifetime
        let limits =
            kind == .user
            ? provider.configuration.sessionLimits : SessionLimits(maxSession: lifetime, maxIdle: lifetime)
        let isPresented = kind == .user && signIn.container != nil
        guard signIn.user.isActive, signIn.user.realm == realm,
            let session = provider.sessions.prepareTokenless(
                for: signIn, as: kind, limits: limits,
                sender: isPresented ? SenderBinding(keyThumbprint: keyThumbprint) : nil)
        else { throw OAuthError.invalidGrant }
        var consent: [SQLStatement] = []
        if !client.consentImplied {
            let earlier = try await provider.consent(of: signIn.user.id, to: client)
            if kind == .user {
                consent = provider.remembering(
                    scopes, to: client, earlier: earlier, of: signIn.user.id, sessionAuditID: session.auditID)
            } else {
                guard let earlier, earlier.covers(scopes) else {
                    throw OAuthError.invalidGrant(because: .consentRequired)
                }
                consent = [provider.using(earlier, of: signIn.user.id)]
            }
        }
        try await claim()

        let grant = NewGrant(
            id: provider.context.random.uuid(), client: client, scopes: scopes,
            owner: ResourceOwner(
                user: signIn.user, session: nil, sessionAuditID: session.auditID, authTime: session.authTime,
                authLevel: signIn.authLevel, amr: signIn.amr), sessionID: session.id, acr: signIn.acr)
        let isRefreshed = goesOn && client.grantTypes.contains(.refreshToken)
        let refreshToken = isRefreshed ? Secret(provider.context.random.token()) : nil
        var reply = try await provider.mint(
            grant.record, client: client, scopes: scopes, nonce: nil, keyThumbprint: keyThumbprint,
            refreshToken: refreshToken)
        reply.session = session.token
        let now = provider.now
        do {
            try await caller.run(
                spending + consent + [
                    session.statement,
                    grant.statement(realm: realm, now: now, expiresAt: now + client.accessTokenLifetime),
                ] + provider.issuing(refreshToken, grant: grant.record, client: client, keyThumbprint: keyThumbprint)
                    + [
                        provider.audit.statement(
                            provider.record(.oauthAuthorize, .success, reason: "noRedirect", grant.record))
                    ])
        } catch let error as StoreError where error.code == .unexpectedCount {
            throw OAuthError.invalidGrant
        }
        return reply
    }
}
