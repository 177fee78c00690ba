import AssentCore
import AssentStore
import Crypto

/// Changes codes for tokens (RFC 6749 §4.1.3, RFC 7636 §4.6).
struct CodeExchange: Sendable {
    private let provider: OAuthProvider

    init(_ provider: OAuthProvider) { self.provider = provider }

    /// Gives tokens for a code.
    ///
    /// The code is spent by one statement that names everything it is bound to. A code that comes a second time ends
    /// its grant.
    ///
    /// Where that saves a round trip, this statement runs before the code is looked up. A code that it does not spend
    /// is looked up afterwards, so that each refusal has the same reason and the same record.
    func tokens(
        _ parameters: OAuthParameters, by caller: AuthenticatedClient, keyThumbprint: String?,
        _ claimProof: @Sendable () async throws -> Void
    ) async throws -> IssuedTokens {
        let client = caller.client
        let codeID = TokenHash.of(Secret(try parameters.required("code")))
        let redirectURI = try parameters.required("redirect_uri")
        if caller.isServedUnread,
            let tokens = try await unread(
                codeID, redirectURI: redirectURI, verifier: parameters["code_verifier"], by: caller,
                keyThumbprint: keyThumbprint, claimProof)
        {
            return tokens
        }
        let row = try await context.database.run(.read(reading(codeID, at: now))).first
        guard let row else { throw OAuthError.invalidGrant }
        let grant = try GrantRecord(row)
        guard try row.optionalInteger("used_at") == nil else {
            guard !grant.isRevoked else { throw OAuthError.invalidGrant }
            // A request that is sent a second time, with its proof, ends nothing.
            try await claimProof()
            try await provider.revoke(grant, because: "code_reuse", event: .oauthCode, by: caller)
            throw OAuthError.invalidGrant
        }
        let challenge = try row.text("code_challenge")
        guard try row.text("client_id") == client.id, try row.text("redirect_uri") == redirectURI,
            Self.verifies(parameters["code_verifier"], challenge: challenge),
            SenderBinding.allows(keyThumbprint, where: try row.sender("code_sender"))
        else { throw try await refused(grant, because: "binding", by: caller) }

        guard try row.integer("expires_at") > now else { throw OAuthError.invalidGrant }
        if let refusal = grant.refusal {
            // What ended the grant has its own record.
            guard refusal != .grantEnded else { throw OAuthError.invalidGrant }
            throw try await refused(grant, because: refusal.rawValue, by: caller)
        }
        try await claimProof()

        // Signed before the code is spent: if signing fails, the code is still whole.
        let isRefreshed =
            client.grantTypes.contains(.refreshToken) && Door.renewal.admits(grant.kind(isOfInstance: false))
        let refreshToken = isRefreshed ? Secret(context.random.token()) : nil
        let scopes = grant.scopes.filter(client.scopes.contains)
        let reply = try await provider.mint(
            grant, client: client, scopes: scopes, nonce: try row.optionalText("nonce"),
            keyThumbprint: keyThumbprint, refreshToken: refreshToken)
        do {
            try await caller.run(
                spending(
                    codeID, redirectURI: redirectURI, challenge: challenge, client: client,
                    sender: SenderBinding(keyThumbprint: keyThumbprint), at: now,
                    whereGrant: """
                        SELECT 1 FROM \(SessionSQL.withUser) JOIN grants g ON g.session_id = s.id
                        WHERE g.id = oauth_codes.grant_id AND g.revoked_at IS NULL AND s.user_id = g.user_id
                            AND \(SessionSQL.isAlive(at: now))
                        """)
                    + provider.issuing(refreshToken, grant: grant, client: client, keyThumbprint: keyThumbprint)
                    + [audit.statement(provider.record(.oauthCode, .success, grant))])
        } catch let error as StoreError where error.code == .unexpectedCount {
            try await endIfSpent(codeID, grant: grant, by: caller)
            throw OAuthError.invalidGrant
        }
        return reply
    }

    /// Writes down why a code is refused.
    ///
    /// - Returns: what its client is told.
    private func refused(
        _ grant: GrantRecord, because reason: String, by caller: AuthenticatedClient
    ) async throws -> OAuthError {
        try await caller.run([audit.statement(provider.record(.oauthCode, .refused, reason: reason, grant))])
        return .invalidGrant
    }

    /// The statement names again what was compared when the code was read. What was read says why, writes down a
    /// refusal, and spends no proof for it; only the statement is of the moment in which the code is spent.
    private func spending(
        _ codeID: String, redirectURI: String, challenge: String, client: OAuthClient, sender: SenderBinding?,
        at now: Int64, whereGrant isValid: SQL
    ) -> [SQLStatement] {
        [
            SQLStatement(
                """
                UPDATE oauth_codes SET used_at = \(now)
                WHERE id = \(codeID) AND client_id = \(client.id) AND redirect_uri = \(redirectURI)
                    AND code_challenge = \(challenge) AND used_at IS NULL AND expires_at > \(now)
                    AND (sender IS NULL OR sender = \(sender?.stored))
                    AND EXISTS (\(isValid))
                """, expecting: .exactly(1))
        ]
    }

    /// Gives tokens for a code that nobody has looked at, by one transaction. The statement that spends it has every
    /// condition of the look; those after it take the grant from the code that it has spent, and the last reads what
    /// the tokens say. They are signed when that is committed, with keys that were there before.
    ///
    /// - Returns: `nil` when something stands against it: then nothing has changed, and the look tells what.
    private func unread(
        _ codeID: String, redirectURI: String, verifier: String?, by caller: AuthenticatedClient,
        keyThumbprint: String?, _ claimProof: @Sendable () async throws -> Void
    ) async throws -> IssuedTokens? {
        guard let challenge = Self.challenge(of: verifier) else { return nil }
        let client = caller.client
        let prepared = try await provider.preparedMint(for: client)
        let (now, realm) = (prepared.issuedAt, configuration.realm)
        let refreshToken = client.grantTypes.contains(.refreshToken) ? Secret(context.random.token()) : nil
        try await claimProof()
        // A code that was used earlier gives no grant, so that the statements after it change nothing.
        let grantID: SQL = "(SELECT grant_id FROM oauth_codes WHERE id = \(codeID) AND used_at = \(now))"
        let record = AuditRecord(.oauthCode, .success, realm: realm, detail: ["client": .string(client.id)])
        let last = [
            audit.statement(record, ofGrant: grantID),
            SQLStatement.read(reading(codeID, at: now), expecting: .exactly(1)),
        ]
        let rows = try await caller.attempt(
            spending(
                codeID, redirectURI: redirectURI, challenge: challenge, client: client,
                sender: SenderBinding(keyThumbprint: keyThumbprint), at: now,
                whereGrant: """
                    SELECT 1 FROM \(GrantRecord.joined(at: now))
                    WHERE g.id = oauth_codes.grant_id AND g.realm = \(realm) AND g.client_id = \(client.id)
                        AND \(GrantRecord.isValid) AND s.id IS NOT NULL AND \(GrantRecord.isAdmitted(to: .renewal))
                    """)
                + provider.issuing(refreshToken, grantID: grantID, client: client, keyThumbprint: keyThumbprint) + last)
        guard let rows else { return nil }
        guard let row = rows.last?.first else { throw EngineError.internalFailure("a code was spent and not read") }
        let grant = try GrantRecord(row)
        return try await provider.mint(
            grant, client: client, scopes: grant.scopes.filter(client.scopes.contains),
            nonce: try row.optionalText("nonce"), keyThumbprint: keyThumbprint, refreshToken: refreshToken,
            by: prepared)
    }

    private func reading(_ codeID: String, at now: Int64) -> SQL {
        """
        SELECT c.client_id, c.redirect_uri, c.code_challenge, c.nonce, c.expires_at, c.used_at,
            c.sender AS code_sender, \(GrantRecord.columns)
        FROM \(GrantRecord.joined("oauth_codes c JOIN grants g ON g.id = c.grant_id", at: now))
        WHERE c.id = \(codeID) AND g.realm = \(configuration.realm)
        """
    }

    private func endIfSpent(_ codeID: String, grant: GrantRecord, by caller: AuthenticatedClient) async throws {
        let rows = try await context.database.run(
            .read("SELECT used_at FROM oauth_codes WHERE id = \(codeID) AND used_at IS NOT NULL"))
        guard !rows.isEmpty else { return }
        try await provider.revoke(grant, because: "code_reuse", event: .oauthCode, by: caller)
    }

    /// Whether a verifier belongs to a challenge, in constant time. An empty challenge goes with no verifier: who sends
    /// one has asked for a check that somebody has taken out of the request (RFC 9700 §4.8.2).
    private static func verifies(_ verifier: String?, challenge: String) -> Bool {
        Self.challenge(of: verifier).map { ConstantTime.equal($0, challenge) } ?? false
    }

    /// The challenge that a verifier belongs to: an empty one without a verifier, `nil` for a malformed one.
    private static func challenge(of verifier: String?) -> String? {
        guard let verifier else { return "" }
        guard (43...128).contains(verifier.utf8.count), verifier.utf8.allSatisfy(\.isURIUnreserved) else {
            return nil
        }
        return Base64URL.encode(Array(SHA256.hash(data: Array(verifier.utf8))))
    }

    private var context: EngineContext { provider.context }
    private var configuration: OAuthProviderConfiguration { provider.configuration }
    private var now: Int64 { provider.now }
    private var audit: AuditLog { provider.audit }
}
