import AssentStore

extension OAuthProvider {
    /// Deletes what nobody can use any more: grants with their codes and refresh tokens, notes of revoked access tokens
    /// that have expired, sealed successors whose grace period has ended, spent assertions of clients, instances of
    /// apps that nobody uses, and links into a browser. Returns how many grants there were.
    package func purge() async throws -> Int {
        let results = try await context.database.run([
            SQLStatement(
                """
                UPDATE refresh_tokens SET sealed_successor = NULL
                WHERE sealed_successor IS NOT NULL AND used_at <= \(now - configuration.refreshGrace)
                """),
            SQLStatement("DELETE FROM consents WHERE expires_at <= \(now) AND realm = \(configuration.realm)"),
            SQLStatement("DELETE FROM revoked_access_tokens WHERE expires_at <= \(now)"),
            // Nothing else could use them.
            SQLStatement(
                """
                DELETE FROM sessions WHERE \(TokenlessSession.isMeant(by: "id")) AND id IN
                    (SELECT session_id FROM grants WHERE expires_at <= \(now) AND realm = \(configuration.realm))
                """),
            // One that has followed its session in a step-up is all that leads from an ID token's `sid` to the session
            // that lives now (``EndSessionEndpoint``), so it stays as long as that.
            SQLStatement(
                """
                DELETE FROM grants WHERE expires_at <= \(now) AND realm = \(configuration.realm)
                    AND NOT EXISTS (SELECT 1 FROM sessions s
                        WHERE s.id = grants.session_id AND s.audit_id <> grants.session_audit_id)
                RETURNING id
                """),
        ])
        try await ClientAssertion.purge(context)
        try await ClientInstance.purge(context)
        try await WebLinks.purge(context)
        return results.last?.count ?? 0
    }
}
