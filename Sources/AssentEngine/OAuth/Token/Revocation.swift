import AssentCore
import AssentStore

extension OAuthProvider {
    /// The revocation endpoint (RFC 7009). A refresh token takes its whole grant with it, an access token only itself;
    /// a token that we do not know is as good as revoked.
    ///
    /// - Parameters:
    ///   - parameters: the form.
    ///   - authorization: the field `Authorization`.
    ///   - isSealed: whether the request has come sealed.
    /// - Throws: ``OAuthError`` `invalid_grant` for a token of another client (RFC 7009 §2.1), which stays as it is;
    ///   `invalid_request` without a token.
    package func revoke(
        _ parameters: OAuthParameters, authorization: String? = nil, isSealed: Bool = false
    ) async throws {
        let caller = try await clients.client(
            of: parameters, authorization: authorization, at: .revocation, isSealed: isSealed)
        try await caller.answering {
            let token = Secret(try parameters.required("token"))
            if token.reveal().contains(".") {
                try await revokeAccessToken(token, by: caller)
            } else {
                try await revokeRefreshToken(token, by: caller)
            }
        }
    }

    /// Ends all grants of a user: their tokens stop counting at once. Returns how many grants there were.
    package func revokeAll(userID: String, because reason: String) async throws -> Int {
        let rows = try await context.database.run(
            .read(
                """
                SELECT \(GrantRecord.columns) FROM \(GrantRecord.joined(at: now))
                WHERE g.user_id = \(userID) AND g.realm = \(configuration.realm) AND g.revoked_at IS NULL
                """))
        for row in rows {
            try await revoke(try GrantRecord(row), because: reason, event: .oauthRevoke)
        }
        return rows.count
    }

    private func revokeAccessToken(_ token: Secret, by caller: AuthenticatedClient) async throws {
        // One that has expired by this node's clock may be valid by another's (``purge()`` keeps the note as long).
        guard let claims = try await accessClaims(token), claims.expiresAt > now - NodeClocks.difference else { return }
        guard claims.clientID == caller.client.id else { throw OAuthError.invalidGrant }
        let detail: JSONObject = [
            "client": .string(caller.client.id), "grant": .string(claims.grantID), "token": .string(claims.tokenID),
        ]
        try await caller.run([
            SQLStatement(
                """
                INSERT INTO revoked_access_tokens (id, grant_id, expires_at)
                VALUES (\(claims.tokenID), \(claims.grantID), \(claims.expiresAt))
                ON CONFLICT (id) DO NOTHING
                """),
            audit.statement(
                AuditRecord(
                    .oauthRevoke, .success, reason: "access_token", realm: configuration.realm,
                    userID: claims.isOfClientItself ? nil : claims.subject, detail: detail)),
        ])
    }

    private func revokeRefreshToken(_ token: Secret, by caller: AuthenticatedClient) async throws {
        let row = try await context.database.run(
            .read(
                """
                SELECT \(GrantRecord.columns)
                FROM \(GrantRecord.joined("refresh_tokens r JOIN grants g ON g.id = r.grant_id", at: now))
                WHERE r.id = \(TokenHash.of(token)) AND g.realm = \(configuration.realm)
                """)
        ).first
        guard let grant = try row.map(GrantRecord.init) else { return }
        guard grant.clientID == caller.client.id else { throw OAuthError.invalidGrant }
        try await revoke(grant, because: "refresh_token", event: .oauthRevoke, by: caller)
    }
}
