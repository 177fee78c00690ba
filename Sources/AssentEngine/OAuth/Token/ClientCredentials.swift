import AssentCore
import AssentStore

extension OAuthProvider {
    /// Gives a client a token of its own (RFC 6749 §4.4): there is no user, no session, no refresh token and no ID
    /// token. The subject is the client (RFC 9068 §2.2).
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
        let grant = GrantRecord(id: context.random.uuid(), client: client, scopes: scopes)
        let tokens = try await mint(
            grant, client: client, scopes: scopes, nonce: nil, keyThumbprint: keyThumbprint, refreshToken: nil)
        try await caller.run([
            SQLStatement(
                """
                INSERT INTO grants (id, realm, client_id, scope, is_offline, created_at, expires_at,
                    instance_id)
                VALUES (\(grant.id), \(configuration.realm), \(client.id), \(scopes.joined(separator: " ")), 0,
                    \(now), \(expiresAt), \(client.instanceID))
                """, expecting: .exactly(1)),
            audit.statement(record(.oauthClient, .success, grant)),
        ])
        return tokens
    }
}

extension GrantRecord {
    /// A new grant of a client to itself. Only its access token belongs to a key.
    fileprivate init(id: String, client: OAuthClient, scopes: [String]) {
        self.id = id
        clientID = client.id
        owner = nil
        self.scopes = scopes
        keyThumbprint = nil
        isRevoked = false
        acr = nil
        isOffline = false
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
