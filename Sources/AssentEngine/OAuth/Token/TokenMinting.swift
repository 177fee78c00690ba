package import AssentCore
import AssentJOSE
import AssentStore
import Crypto

extension OAuthProvider {
    /// The `typ` of access tokens (RFC 9068 §2.1).
    static let accessTokenType = "at+jwt"

    /// The `typ` of ID tokens.
    static let idTokenType = "JWT"

    /// The claim of an access token that names its grant, so that it stops counting at once when the grant is revoked.
    package static let grantClaim = "assent_grant"

    /// What signs the tokens of a client: asked for before a code or a refresh token is spent that was not looked at,
    /// so that afterwards nothing is asked of the database.
    func preparedMint(for client: OAuthClient) async throws -> PreparedMint {
        let issuedAt = now
        let accessToken = try await keys.signer(for: .accessToken, with: client.accessTokenAlgorithm)
        guard client.scopes.contains("openid") else {
            return PreparedMint(issuedAt: issuedAt, accessToken: accessToken, idToken: nil)
        }
        let idToken = try await keys.signer(for: .idToken, with: client.idTokenAlgorithm)
        return PreparedMint(issuedAt: issuedAt, accessToken: accessToken, idToken: idToken)
    }

    /// Signs an access token and, for `openid`, an ID token: by what was prepared, where something was.
    func mint(
        _ grant: GrantRecord, client: OAuthClient, scopes: [String], nonce: String?, keyThumbprint: String?,
        refreshToken: Secret?, by prepared: PreparedMint? = nil
    ) async throws -> IssuedTokens {
        let issuedAt = prepared?.issuedAt ?? now
        let audience = client.audience.isEmpty ? [configuration.issuer] : client.audience
        var claims = JSONObject()
        claims["iss"] = .string(configuration.issuer)
        claims["sub"] = .string(grant.owner?.user.id ?? client.id)
        claims["aud"] =
            audience.count == 1 ? audience.first.map(JSONValue.string) : .array(audience.map(JSONValue.string))
        claims["client_id"] = .string(client.id)
        claims["scope"] = .string(scopes.joined(separator: " "))
        claims["iat"] = .integer(issuedAt)
        claims["exp"] = .integer(issuedAt + client.accessTokenLifetime)
        claims["jti"] = .string(context.random.token(byteCount: 16))
        claims["auth_time"] = (grant.owner?.authTime).map(JSONValue.integer)
        claims["acr"] = grant.acr.map(JSONValue.string)
        claims[Self.grantClaim] = .string(grant.id)
        if let keyThumbprint { claims["cnf"] = ["jkt": .string(keyThumbprint)] }
        let signer =
            if let prepared {
                prepared.accessToken
            } else {
                try await keys.signer(for: .accessToken, with: client.accessTokenAlgorithm)
            }
        let accessToken = try await signer.sign(claims, type: Self.accessTokenType)
        var idToken: Secret?
        if let owner = grant.owner, scopes.contains("openid") {
            idToken = try await mintIDToken(
                owner, acr: grant.acr, client: client, scopes: scopes, nonce: nonce, accessToken: accessToken,
                by: prepared)
        }
        return IssuedTokens(
            accessToken: accessToken, tokenType: TokenScheme(boundTo: keyThumbprint).rawValue,
            expiresIn: client.accessTokenLifetime, refreshToken: refreshToken, idToken: idToken, scopes: scopes)
    }

    /// Signs an ID token: for an access token that is given with it, or without one for a client that only checks the
    /// session.
    func mintIDToken(
        _ owner: ResourceOwner, acr: String?, client: OAuthClient, scopes: [String], nonce: String?,
        accessToken: Secret?, by prepared: PreparedMint? = nil
    ) async throws -> Secret {
        let issuedAt = prepared?.issuedAt ?? now
        var claims = JSONObject()
        let about = UserClaims.claims(about: owner.user, scopes: scopes)
        for name in client.idTokenClaims { claims[name] = about[name] }
        claims["iss"] = .string(configuration.issuer)
        claims["sub"] = .string(owner.user.id)
        claims["aud"] = .string(client.id)
        claims["azp"] = .string(client.id)
        claims["iat"] = .integer(issuedAt)
        claims["exp"] = .integer(issuedAt + client.idTokenLifetime)
        claims["auth_time"] = .integer(owner.authTime)
        claims["acr"] = acr.map(JSONValue.string)
        if !owner.amr.isEmpty { claims["amr"] = .array(owner.amr.map(JSONValue.string)) }
        claims["nonce"] = nonce.map(JSONValue.string)
        // Both ES256 and RS256 hash with SHA-256, so at_hash does too (OpenID Connect Core §3.1.3.6).
        claims["at_hash"] = accessToken.map { token in
            .string(Base64URL.encode(token.withUnsafeBytes { Array(SHA256.hash(data: $0).prefix(16)) }))
        }
        claims["sid"] = .string(owner.sessionAuditID)
        let signer =
            if let idToken = prepared?.idToken {
                idToken
            } else {
                try await keys.signer(for: .idToken, with: client.idTokenAlgorithm)
            }
        return try await signer.sign(claims, type: Self.idTokenType)
    }

    /// The statements that put a new refresh token in the store and keep the grant for as long as anything of it
    /// counts. The grant of a public client takes the first key that comes, and no other afterwards; that of a
    /// confidential client belongs to the client, which authenticates (RFC 9449 §5).
    ///
    /// Who refreshes has compared the key with that of the grant before, as it was read: a refusal then is written down
    /// and spends no proof. This statement sets the key, so it has the condition again: no caller, and no
    /// change in between, can give a grant another key.
    func issuing(
        _ refreshToken: Secret?, grant: GrantRecord, client: OAuthClient, keyThumbprint: String?
    ) -> [SQLStatement] {
        issuing(refreshToken, grantID: "\(grant.id)", client: client, keyThumbprint: keyThumbprint)
    }

    /// The same for a grant that only the statements before them know; `grantID` is a query in parentheses.
    func issuing(
        _ refreshToken: Secret?, grantID: SQL, client: OAuthClient, keyThumbprint: String?
    ) -> [SQLStatement] {
        let refreshLifetime = refreshToken == nil ? 0 : client.refreshTokenLifetime
        let expiresAt = now + max(client.accessTokenLifetime, refreshLifetime)
        let isPublic = client.kind == .public
        let sender = isPublic ? SenderBinding(keyThumbprint: keyThumbprint)?.stored : nil
        let isRightSender: SQL =
            isPublic ? "(sender IS NULL OR sender = \(sender))" : SenderBinding.isProvable("sender")
        var statements = [
            SQLStatement(
                """
                UPDATE grants SET sender = \(sender),
                    expires_at = CASE WHEN expires_at > \(expiresAt) THEN expires_at ELSE \(expiresAt) END
                WHERE id = \(grantID) AND revoked_at IS NULL AND \(isRightSender)
                """, expecting: .exactly(1))
        ]
        if let refreshToken {
            statements.append(
                SQLStatement(
                    """
                    INSERT INTO refresh_tokens (id, grant_id, client_id, issued_at, expires_at)
                    SELECT \(TokenHash.of(refreshToken)), g.id, \(client.id), \(now), \(now + refreshLifetime)
                    FROM grants g WHERE g.id = \(grantID)
                    """, expecting: .exactly(1)))
        }
        return statements
    }

    /// The claims of an ID token of ours; `nil` for anything else. A hint may have expired (OpenID Connect Core
    /// §3.1.2.1). Whether the token's session is still alive is not looked at.
    package func claims(ofIDToken idToken: Secret, mayHaveExpired: Bool) async throws -> JSONObject? {
        let claims = try await keys.claims(
            of: idToken, type: Self.idTokenType, for: .idToken, includesExpiredKeys: true)
        guard let claims, claims.iss == configuration.issuer else { return nil }
        guard mayHaveExpired || claims.object["exp"]?.integer.map({ $0 > now }) == true else { return nil }
        return claims.object
    }
}

/// What signs tokens, and as of when they are issued.
struct PreparedMint: Sendable {
    /// Seconds since 1970.
    let issuedAt: Int64
    let accessToken: ServerKeys.Signer
    /// `nil` for a client that never gets an ID token.
    let idToken: ServerKeys.Signer?
}
