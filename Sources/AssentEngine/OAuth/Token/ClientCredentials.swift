import AssentCore
import AssentStore

extension OAuthProvider {
    /// Gives a client a token of its own (RFC 6749 §4.4): there is no user, no session, no refresh token and no ID
    /// token. The subject is the client (RFC 9068 §2.2). Only the access token belongs to a key.
    func clientCredentials(
        _ parameters: OAuthParameters, by caller: AuthenticatedClient, keyThumbprint: String?,
        _ claimProof: @Sendable () async throws -> Void
    ) async throws -> IssuedTokens {
        let client = caller.client
        let scopes = try OAuthClient.allowed(
            parameters.scopes() ?? client.defaultScopes.filter { !OAuthClient.needsUser($0) },
            where: { client.scopes.contains($0) && !OAuthClient.needsUser($0) })
        try await claimProof()
        let expiresAt = now + client.accessTokenLifetime
        let grant = NewGrant(id: context.random.uuid(), client: client, scopes: scopes)
        let tokens = try await mint(
            grant.record, client: client, scopes: scopes, nonce: nil, keyThumbprint: keyThumbprint, refreshToken: nil)
        try await caller.run([
            grant.statement(realm: configuration.realm, now: now, expiresAt: expiresAt),
            audit.statement(record(.oauthClient, .success, grant.record)),
        ])
        return tokens
    }
}

extension OAuthClient {
    /// Whether a scope means nothing without a user.
    static func needsUser(_ scope: String) -> Bool {
        scope == "openid" || scope == offlineAccess || UserClaims.table.contains { $0.scope == scope }
    }

    /// The scope of a grant that outlives its session (OpenID Connect Core §11).
    static let offlineAccess = "offline_access"
}
