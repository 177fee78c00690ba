import AssentStore

/// A grant as it begins.
struct NewGrant: Sendable {
    let id: String
    let client: OAuthClient
    let scopes: [String]
    /// `nil` for a grant of the client itself.
    var owner: ResourceOwner?
    /// The session that it hangs on (``LiveSession/id``).
    var sessionID: String?
    /// The class of the sign-in.
    var acr: String?

    private var isOffline: Bool { owner != nil && scopes.contains(OAuthClient.offlineAccess) }

    /// The grant as it is in the store when its statement has run. It belongs to no key yet.
    var record: GrantRecord {
        GrantRecord(id: id, clientID: client.id, owner: owner, scopes: scopes, acr: acr, isOffline: isOffline)
    }

    /// What begins it.
    ///
    /// - Parameters:
    ///   - realm: the realm.
    ///   - now: seconds since 1970.
    ///   - expiresAt: when nothing of it can be used any more, unless more is issued.
    /// - Returns: the statement.
    func statement(realm: String, now: Int64, expiresAt: Int64) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO grants
                (id, realm, client_id, user_id, session_id, session_audit_id, scope, is_offline, auth_time,
                auth_level, acr, amr, created_at, expires_at, epoch, instance_id)
            VALUES (\(id), \(realm), \(client.id), \(owner?.user.id), \(sessionID),
                \(owner?.sessionAuditID), \(scopes.joined(separator: " ")), \(isOffline), \(owner?.authTime),
                \(owner?.authLevel), \(acr), \(AuthenticationMethods.text(owner?.amr ?? [])), \(now), \(expiresAt),
                \(owner?.user.epoch ?? 0), \(client.instanceID))
            """, expecting: .exactly(1))
    }
}
