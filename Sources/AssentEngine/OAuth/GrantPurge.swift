import AssentStore

extension OAuthProvider {
    /// Deletes what nobody can use any more: grants with their codes and refresh tokens, notes of revoked access tokens
    /// that have expired, sealed successors whose grace period has ended, spent assertions of clients, instances of
    /// apps that nobody uses, and links into a browser. Returns how many grants there were.
    package func purge() async throws -> Int {
        // All steps look at one moment, so that a session without a token does not stay when its grant goes.
        let now = now
        let isPast: SQL = "expires_at <= \(now) AND realm = \(configuration.realm)"
        // First: what must not be read any more is gone also where the deleting takes long.
        try await context.update(
            "refresh_tokens", set: "sealed_successor = NULL",
            where: """
                sealed_successor IS NOT NULL AND used_at <= \(context.sharedTime) - \(configuration.refreshGrace)
                """)
        _ = try await context.delete(
            from: "consents", key: "user_id, client_id", where: "\(isPast) AND NOT \(Consent.goesOn(at: now))")
        // By the clock of another node the token may not have expired, and without the note it would be valid there.
        _ = try await context.delete(
            from: "revoked_access_tokens", where: "expires_at <= \(now - NodeClocks.difference)")
        // A node whose clock is behind may be prolonging one. The statement that ends it waits for that, and looks
        // again; those that delete what belongs to it would not. What has ended nobody prolongs.
        try await context.update(
            "grants", set: "revoked_at = \(now), revoked_because = 'expired'",
            where: "revoked_at IS NULL AND \(isPast)")
        let hasEnded: SQL = "revoked_at IS NOT NULL AND \(isPast)"
        // Nothing else could use them.
        _ = try await context.delete(
            from: "sessions",
            where: """
                \(TokenlessSession.isMeant(by: "id")) AND id IN (SELECT session_id FROM grants WHERE \(hasEnded))
                """)
        // The database would delete them with their grants, of which one may have had very many.
        _ = try await context.delete(
            from: "refresh_tokens", where: "grant_id IN (SELECT id FROM grants WHERE \(hasEnded))")
        let count = try await context.delete(from: "grants", where: hasEnded)
        try await ClientAssertion.purge(context)
        try await ClientInstance.purge(context)
        try await WebLinks.purge(context)
        return count
    }
}
