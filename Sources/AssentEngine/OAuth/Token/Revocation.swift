import AssentCore
import AssentStore

extension OAuthProvider {
    /// The revocation endpoint (RFC 7009). A refresh token takes its whole grant with it, an access token only itself;
    /// a token that we do not know, and none at all (the browser SDK sends none at times), are as good as revoked.
    ///
    /// - Throws: ``OAuthError`` `invalid_grant` for a token of another client (RFC 7009 §2.1), which stays as it is.
    package func revoke(_ parameters: OAuthParameters, authorization: String? = nil) async throws {
        let client = try client(authenticating: parameters, authorization: authorization)
        guard let token = parameters["token"].map(Secret.init) else { return }
        if token.reveal().contains(".") {
            try await revokeAccessToken(token, of: client)
        } else {
            try await revokeRefreshToken(token, of: client)
        }
    }

    /// Ends all grants of a user: their tokens stop counting at once. Returns how many grants there were.
    package func revokeAll(userID: String, because reason: String) async throws -> Int {
        let rows = try await context.database.run(
            .read(
                """
                SELECT \(GrantRecord.columns) FROM grants g JOIN users u ON u.id = g.user_id
                WHERE g.user_id = ?1 AND g.realm = ?2 AND g.revoked_at IS NULL
                """, [.text(userID), .text(configuration.realm)]))
        for row in rows {
            try await revoke(try GrantRecord(row), because: reason, event: "oauth.revoke")
        }
        return rows.count
    }

    private func revokeAccessToken(_ token: Secret, of client: OAuthClient) async throws {
        guard let claims = try await accessClaims(token), claims.expiresAt > now else { return }
        guard claims.clientID == client.id else { throw OAuthError.invalidGrant }
        var detail = JSONObject()
        detail["client"] = .string(client.id)
        detail["grant"] = .string(claims.grantID)
        detail["token"] = .string(claims.tokenID)
        _ = try await context.database.run([
            SQLStatement(
                """
                INSERT INTO revoked_access_tokens (id, grant_id, expires_at) VALUES (?1, ?2, ?3)
                ON CONFLICT (id) DO NOTHING
                """, [.text(claims.tokenID), .text(claims.grantID), .integer(claims.expiresAt)]),
            audit.statement(
                AuditRecord(
                    "oauth.revoke", .success, reason: "access_token", realm: configuration.realm,
                    userID: claims.subject, detail: detail)),
        ])
    }

    private func revokeRefreshToken(_ token: Secret, of client: OAuthClient) async throws {
        let row = try await context.database.run(
            .read(
                """
                SELECT \(GrantRecord.columns)
                FROM refresh_tokens r JOIN grants g ON g.id = r.grant_id JOIN users u ON u.id = g.user_id
                WHERE r.id = ?1 AND g.realm = ?2
                """, [.text(TokenHash.of(token)), .text(configuration.realm)])
        ).first
        guard let grant = try row.map(GrantRecord.init) else { return }
        guard grant.clientID == client.id else { throw OAuthError.invalidGrant }
        try await revoke(grant, because: "refresh_token", event: "oauth.revoke")
    }
}
