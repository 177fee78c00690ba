import AssentStore

extension OAuthProvider {
    /// Deletes what nobody can use any more: grants with their codes and refresh tokens, notes of revoked access tokens
    /// that have expired, sealed successors whose grace is over. Returns how many grants there were.
    package func purge() async throws -> Int {
        let results = try await context.database.run([
            SQLStatement(
                """
                UPDATE refresh_tokens SET sealed_successor = NULL
                WHERE sealed_successor IS NOT NULL AND used_at <= ?1
                """, [.integer(now - configuration.refreshGrace)]),
            SQLStatement("DELETE FROM revoked_access_tokens WHERE expires_at <= ?1", [.integer(now)]),
            SQLStatement(
                "DELETE FROM grants WHERE expires_at <= ?1 AND realm = ?2 RETURNING id",
                [.integer(now), .text(configuration.realm)]),
        ])
        return results.last?.count ?? 0
    }
}
