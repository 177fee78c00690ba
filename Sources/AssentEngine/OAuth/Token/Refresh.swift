import AssentCore
import AssentStore

/// A refresh token as it is in the store.
private struct RefreshRecord {
    let grant: GrantRecord
    let clientID: String
    let expiresAt: Int64
    /// Seconds since its use, by the clock that all nodes share; `nil` for one that is unused.
    let sinceUse: Int64?
    let attemptHash: String?
    let sealedSuccessor: [UInt8]?
    let successorIsUnused: Bool

    init(_ row: SQLRow) throws {
        grant = try GrantRecord(row)
        clientID = try row.text("client_id")
        expiresAt = try row.integer("expires_at")
        let readAt = try row.integer("read_at")
        sinceUse = try row.optionalInteger("used_at").map { readAt - $0 }
        attemptHash = try row.optionalText("attempt_hash")
        sealedSuccessor = try row.optionalBlob("sealed_successor")
        successorIsUnused =
            try row.optionalText("successor_id") != nil && row.optionalInteger("successor_used_at") == nil
    }
}

/// Changes refresh tokens for new tokens (RFC 6749 §6, RFC 9700 §4.14.2).
package struct TokenRefresh: Sendable {
    private let provider: OAuthProvider

    /// The refreshes of a provider.
    package init(_ provider: OAuthProvider) { self.provider = provider }

    /// How many characters an `attempt_id` has. It is the client's proof that it is the one that asked before, so a
    /// short one that could be guessed is refused.
    package static let attemptIDLength = 16...128

    /// Gives new tokens for a refresh token.
    ///
    /// Each use makes a successor. When the reply was lost, the same client with the same key and the same `attempt_id`
    /// gets the same successor once more, for a short while and as long as it is unused. Any other second use means
    /// that two parties hold the token, and ends the grant.
    ///
    /// The token of a public client belongs to the grant's key; without one, the first proof that comes gives it one. A
    /// confidential client authenticates, and its new access token belongs to whatever key it proves (RFC 9449 §5).
    ///
    /// Where that saves a round trip, the statement that spends comes without a look before, as for codes.
    func tokens(
        _ parameters: OAuthParameters, by caller: AuthenticatedClient, keyThumbprint: String?,
        _ claimProof: @Sendable () async throws -> Void
    ) async throws -> IssuedTokens {
        let client = caller.client
        let tokenID = TokenHash.of(Secret(try parameters.required("refresh_token")))
        let attemptHash = try Self.attemptHash(parameters["attempt_id"])
        // Which scopes it may ask for, only the grant tells.
        if caller.isServedUnread, parameters["scope"] == nil,
            let tokens = try await unread(
                tokenID, attemptHash: attemptHash, by: caller, keyThumbprint: keyThumbprint, claimProof)
        {
            return tokens
        }
        guard let known = try await refreshRecord(tokenID) else { throw OAuthError.invalidGrant }
        if known.sinceUse != nil {
            guard !known.grant.isRevoked else { throw OAuthError.invalidGrant }
            // A request that is sent a second time, with its proof, ends nothing.
            try await claimProof()
            return try await repeated(
                known, tokenID: tokenID, attemptHash: attemptHash, parameters, by: caller,
                keyThumbprint: keyThumbprint)
        }
        guard known.clientID == client.id,
            client.kind != .public || SenderBinding.allows(keyThumbprint, where: known.grant.sender)
        else {
            try await caller.run(
                [audit.statement(provider.record(.oauthRefresh, .refused, reason: "binding", known.grant))])
            throw OAuthError.invalidGrant
        }
        if let refusal = known.grant.refusalByFile(mayOutlive: configuration.mayOutlive(client.id)) {
            // What ended the grant has its own record.
            guard refusal != .grantEnded else { throw OAuthError.invalidGrant }
            try await caller.run(
                [audit.statement(provider.record(.oauthRefresh, .refused, reason: refusal.rawValue, known.grant))])
            throw OAuthError.invalidGrant
        }
        guard known.expiresAt > now, known.grant.owner?.session.map(Door.renewal.admits) ?? true else {
            throw OAuthError.invalidGrant
        }
        let scopes = try narrowed(parameters, grant: known.grant, client: client)
        try await claimProof()

        // Signed before the token is spent: if signing fails, the token is still whole.
        let successor = Secret(context.random.token())
        let reply = try await provider.mint(
            known.grant, client: client, scopes: scopes, nonce: nil, keyThumbprint: keyThumbprint,
            refreshToken: successor)
        do {
            try await caller.run(
                try rotating(tokenID, to: successor, attemptHash: attemptHash, client: client)
                    + provider.issuing(successor, grant: known.grant, client: client, keyThumbprint: keyThumbprint)
                    + [audit.statement(provider.record(.oauthRefresh, .success, known.grant))]
                    + [provider.use(of: known.grant.owner, isOffline: known.grant.isOffline)].compactMap(\.self))
            return reply
        } catch let error as StoreError where error.code == .unexpectedCount {
            guard let spent = try await refreshRecord(tokenID), spent.sinceUse != nil else {
                throw OAuthError.invalidGrant
            }
            return try await repeated(
                spent, tokenID: tokenID, attemptHash: attemptHash, parameters, by: caller,
                keyThumbprint: keyThumbprint)
        }
    }

    /// Gives new tokens for a refresh token that nobody has looked at, by one transaction, as ``CodeExchange`` does.
    ///
    /// - Returns: `nil` when something stands against it: then nothing has changed, and the look tells what.
    private func unread(
        _ tokenID: String, attemptHash: String?, by caller: AuthenticatedClient, keyThumbprint: String?,
        _ claimProof: @Sendable () async throws -> Void
    ) async throws -> IssuedTokens? {
        let client = caller.client
        let prepared = try await provider.preparedMint(for: client)
        let successor = Secret(context.random.token())
        try await claimProof()
        // The successor is new: only a token that this transaction has spent has it.
        let grantID: SQL = """
            (SELECT grant_id FROM refresh_tokens
                WHERE id = \(tokenID) AND successor_id = \(TokenHash.of(successor)))
            """
        let record = AuditRecord(
            .oauthRefresh, .success, realm: configuration.realm, detail: ["client": .string(client.id)])
        let isRightGrant: SQL = """
            g.realm = \(configuration.realm) AND g.client_id = \(client.id)
                AND (s.id IS NULL OR \(GrantRecord.isAdmitted(to: .renewal)))
            """
        let read = SQLStatement.read(
            "SELECT \(GrantRecord.columns) FROM \(GrantRecord.joined(at: now)) WHERE g.id = \(grantID)",
            expecting: .exactly(1))
        let last: [SQLStatement?] = [
            audit.statement(record, ofGrant: grantID), provider.use(ofGrant: grantID), read,
        ]
        let rows = try await caller.attempt(
            try rotating(tokenID, to: successor, attemptHash: attemptHash, client: client, where: isRightGrant)
                + provider.issuing(successor, grantID: grantID, client: client, keyThumbprint: keyThumbprint)
                + last.compactMap(\.self))
        guard let rows else { return nil }
        guard let row = rows.last?.first else {
            throw EngineError.internalFailure("a refresh token was spent and not read")
        }
        let grant = try GrantRecord(row)
        return try await provider.mint(
            grant, client: client, scopes: grant.scopes.filter(client.scopes.contains), nonce: nil,
            keyThumbprint: keyThumbprint, refreshToken: successor, by: prepared)
    }

    private func rotating(
        _ tokenID: String, to successor: Secret, attemptHash: String?, client: OAuthClient,
        where isRightGrant: SQL = "1 = 1"
    ) throws -> [SQLStatement] {
        // Without an attempt id nobody can ask for the successor again, so it is not kept.
        let sealed = try attemptHash.map { _ in
            try context.masterKey.seal(successor, for: .refreshSuccessor, context: tokenID)
        }
        let goesOn: SQL = configuration.mayOutlive(client.id) ? "1 = 1" : GrantRecord.hasItsSession
        return [
            SQLStatement(
                """
                UPDATE refresh_tokens
                SET used_at = \(context.sharedTime), attempt_hash = \(attemptHash),
                    successor_id = \(TokenHash.of(successor)), sealed_successor = \(sealed)
                WHERE id = \(tokenID) AND client_id = \(client.id) AND used_at IS NULL AND expires_at > \(now)
                    AND EXISTS (
                        SELECT 1 FROM \(GrantRecord.joined(at: now))
                        WHERE g.id = refresh_tokens.grant_id AND \(GrantRecord.isValid) AND \(goesOn)
                            AND \(isRightGrant))
                """, expecting: .exactly(1)),
            // Who uses a successor has received it: the copy beside its predecessor has done its work.
            SQLStatement(
                "UPDATE refresh_tokens SET sealed_successor = NULL WHERE successor_id = \(tokenID)"),
        ]
    }

    /// A second use: the same successor for the client that asks again in time, the end of the grant for anybody else.
    ///
    /// It gives no grant a key, also where the client has come to one since: otherwise somebody with a copy of what was
    /// sent could take the grant from its owner, whose use of the successor would not show it. The successor does.
    private func repeated(
        _ spent: RefreshRecord, tokenID: String, attemptHash: String?, _ parameters: OAuthParameters,
        by caller: AuthenticatedClient, keyThumbprint: String?
    ) async throws -> IssuedTokens {
        let client = caller.client
        guard !spent.grant.isRevoked else { throw OAuthError.invalidGrant }
        guard let sinceUse = spent.sinceUse, let sealed = spent.sealedSuccessor, spent.successorIsUnused,
            spent.clientID == client.id,
            client.kind != .public || SenderBinding.allows(keyThumbprint, where: spent.grant.sender),
            let attemptHash, let first = spent.attemptHash, ConstantTime.equal(attemptHash, first),
            (-configuration.refreshGrace..<configuration.refreshGrace).contains(sinceUse)
        else {
            try await provider.revoke(spent.grant, because: "refresh_reuse", event: .oauthRefresh, by: caller)
            throw OAuthError.invalidGrant
        }
        guard spent.grant.refusalByFile(mayOutlive: configuration.mayOutlive(client.id)) == nil else {
            throw OAuthError.invalidGrant
        }
        let scopes = try narrowed(parameters, grant: spent.grant, client: client)
        let successor = try context.masterKey.open(sealed, for: .refreshSuccessor, context: tokenID)
        return try await provider.mint(
            spent.grant, client: client, scopes: scopes, nonce: nil, keyThumbprint: keyThumbprint,
            refreshToken: successor)
    }

    private func refreshRecord(_ tokenID: String) async throws -> RefreshRecord? {
        try await context.database.run(
            .read(
                """
                SELECT r.client_id, r.expires_at, r.used_at, r.attempt_hash, r.successor_id, r.sealed_successor,
                    next.used_at AS successor_used_at, \(context.sharedTime) AS read_at, \(GrantRecord.columns)
                FROM \(GrantRecord.joined("refresh_tokens r JOIN grants g ON g.id = r.grant_id", at: now))
                    LEFT JOIN refresh_tokens next ON next.id = r.successor_id
                WHERE r.id = \(tokenID) AND g.realm = \(configuration.realm)
                """)
        ).first.map(RefreshRecord.init)
    }

    /// The scopes of the new access token: those of the grant that the client may still have and, if it asks for some,
    /// those among them.
    private func narrowed(
        _ parameters: OAuthParameters, grant: GrantRecord, client: OAuthClient
    ) throws(OAuthError) -> [String] {
        let allowed = grant.scopes.filter(client.scopes.contains)
        guard let asked = try parameters.scopes() else { return allowed }
        return try OAuthClient.allowed(asked, where: allowed.contains)
    }

    private static func attemptHash(_ attemptID: String?) throws(OAuthError) -> String? {
        guard let attemptID else { return nil }
        guard attemptIDLength.contains(attemptID.utf8.count), attemptID.utf8.allSatisfy(\.isURIUnreserved)
        else { throw .invalidRequest("An attempt_id has 16 to 128 letters, digits and - . _ ~.") }
        return TokenHash.of(Secret(attemptID))
    }

    private var context: EngineContext { provider.context }
    private var configuration: OAuthProviderConfiguration { provider.configuration }
    private var now: Int64 { provider.now }
    private var audit: AuditLog { provider.audit }
}
