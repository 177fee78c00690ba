import AssentCore
import AssentStore

/// What a user has agreed to.
package struct Consent: Sendable, Hashable {
    /// The client that may have it.
    package let clientID: String

    /// What it may have.
    package let scopes: [String]

    /// When the user agreed last, in seconds since 1970.
    package let grantedAt: Int64

    /// When a code was issued by it last, in seconds since 1970.
    package let usedAt: Int64

    /// When the user is asked again, in seconds since 1970.
    package let expiresAt: Int64

    /// Whether it is enough for these scopes.
    func covers(_ wanted: [String]) -> Bool { Set(wanted).isSubset(of: scopes) }
}

extension Consent {
    init(_ row: SQLRow) throws {
        clientID = try row.text("client_id")
        scopes = try row.text("scope").split(separator: " ").map(String.init)
        grantedAt = try row.integer("granted_at")
        usedAt = try row.integer("used_at")
        expiresAt = try row.integer("expires_at")
    }

    /// That the client of a row of `consents` has a grant of that user which outlives its session. It may be refreshed
    /// long after the consent has expired, and by that alone the user sees it and can take it back.
    static func goesOn(at now: Int64) -> SQL {
        """
        EXISTS (SELECT 1 FROM grants g
            WHERE g.user_id = consents.user_id AND g.client_id = consents.client_id AND g.is_offline = 1
                AND g.revoked_at IS NULL AND g.expires_at > \(now))
        """
    }
}

extension OAuthProvider {
    /// What a user has agreed to, by client: also a consent that has expired, while a grant by it goes on.
    package func consents(of session: LiveSession) async throws -> [Consent] {
        guard session.realm == configuration.realm else { return [] }
        return try await context.database.run(
            .read(
                """
                SELECT * FROM consents
                WHERE user_id = \(session.user.id) AND realm = \(configuration.realm)
                    AND (expires_at > \(now) OR \(Consent.goesOn(at: now)))
                ORDER BY client_id
                """)
        ).map(Consent.init)
    }

    /// Takes a consent back, together with all that the client has got by it: its tokens stop counting at once. Returns
    /// whether there was one.
    package func withdrawConsent(to clientID: String, by session: LiveSession) async throws -> Bool {
        let userID = session.user.id
        let ended: SQL = "user_id = \(userID) AND client_id = \(clientID) AND realm = \(configuration.realm)"
        do {
            _ = try await context.database.run([
                SQLStatement("DELETE FROM consents WHERE \(ended)", expecting: .exactly(1)),
                SQLStatement(
                    """
                    UPDATE refresh_tokens SET sealed_successor = NULL
                    WHERE grant_id IN (SELECT id FROM grants WHERE \(ended) AND revoked_at IS NULL)
                    """),
                // Sessions without a token are of no other use.
                SQLStatement(
                    """
                    DELETE FROM sessions WHERE user_id = \(userID) AND \(TokenlessSession.isMeant(by: "id"))
                        AND id IN (SELECT session_id FROM grants WHERE \(ended) AND revoked_at IS NULL)
                    """),
                SQLStatement(
                    """
                    UPDATE grants SET revoked_at = \(now), revoked_because = 'consent'
                    WHERE \(ended) AND revoked_at IS NULL
                    """),
                audit.statement(
                    AuditRecord(
                        .oauthConsent, .success, reason: "withdrawn", realm: configuration.realm, userID: userID,
                        sessionAuditID: session.auditID, detail: ["client": .string(clientID)])),
            ])
            return true
        } catch let error as StoreError where error.code == .unexpectedCount {
            return false
        }
    }

    /// What the user has agreed to give to a client.
    func consent(of userID: String, to client: OAuthClient) async throws -> Consent? {
        try await context.database.run(
            .read(
                """
                SELECT * FROM consents
                WHERE user_id = \(userID) AND client_id = \(client.id) AND realm = \(configuration.realm)
                    AND expires_at > \(now)
                """)
        ).first.map(Consent.init)
    }

    /// The statement that a code needs which is issued by a remembered consent: that it is as it was when we looked.
    func using(_ consent: Consent, of userID: String) -> SQLStatement {
        SQLStatement(
            """
            UPDATE consents SET used_at = \(now)
            WHERE user_id = \(userID) AND client_id = \(consent.clientID) AND realm = \(configuration.realm)
                AND scope = \(consent.scopes.joined(separator: " ")) AND expires_at > \(now)
            """, expecting: .exactly(1))
    }

    /// The statements that remember that the user has agreed, now, to these scopes and still to the earlier ones. What
    /// they have taken back since it was read does not come back with that.
    func remembering(
        _ scopes: [String], to client: OAuthClient, earlier: Consent?, of userID: String, sessionAuditID: String
    ) -> [SQLStatement] {
        let all = (earlier?.scopes ?? []).filter { !scopes.contains($0) && client.scopes.contains($0) } + scopes
        let (text, own) = (all.joined(separator: " "), scopes.joined(separator: " "))
        // Who takes it back waits for the first statement, or this waits for them: the next one sees what is left.
        let lock = earlier.map { _ in
            SQLStatement(
                """
                UPDATE consents SET used_at = \(now)
                WHERE user_id = \(userID) AND client_id = \(client.id) AND realm = \(configuration.realm)
                """)
        }
        let isLeft: SQL =
            earlier.map { earlier -> SQL in
                """
                EXISTS (SELECT 1 FROM consents WHERE user_id = \(userID) AND client_id = \(client.id)
                    AND scope = \(earlier.scopes.joined(separator: " ")))
                """
            } ?? "1 = 0"
        return [lock].compactMap(\.self) + [
            SQLStatement(
                """
                INSERT INTO consents (user_id, client_id, realm, scope, granted_at, used_at, expires_at)
                VALUES (\(userID), \(client.id), \(configuration.realm),
                    CASE WHEN \(isLeft) THEN \(text) ELSE \(own) END, \(now), \(now),
                    \(now + client.consentLifetime))
                ON CONFLICT (user_id, client_id) DO UPDATE SET scope = excluded.scope,
                    granted_at = excluded.granted_at, used_at = excluded.used_at, expires_at = excluded.expires_at
                """, expecting: .exactly(1)),
            audit.statement(
                AuditRecord(
                    .oauthConsent, .success, reason: "given", realm: configuration.realm, userID: userID,
                    sessionAuditID: sessionAuditID,
                    detail: ["client": .string(client.id), "scope": .string(own)])),
        ]
    }
}
