import AssentCore
import AssentStore

/// A grant and its user, as they are in the store.
struct GrantRecord: Sendable {
    let id: String
    let clientID: String
    let user: User
    let sessionID: String
    let sessionAuditID: String
    let scopes: [String]
    let authTime: Int64
    let authLevel: Int
    let keyThumbprint: String?
    let isRevoked: Bool

    /// The columns of ``init(_:)``, from `grants g JOIN users u`.
    static let columns = """
        g.id AS grant_id, g.client_id AS grant_client, g.user_id, g.session_id, g.session_audit_id, g.scope, g.auth_time,
        g.auth_level, g.key_thumbprint, g.revoked_at, u.realm, u.username, u.active, u.roles, u.attributes
        """

    init(_ row: SQLRow) throws {
        id = try row.text("grant_id")
        clientID = try row.text("grant_client")
        user = User(
            id: try row.text("user_id"), realm: try row.text("realm"), username: try row.text("username"),
            isActive: try row.bool("active"),
            roles: Set(try row.text("roles").split(separator: " ").compactMap { Role(rawValue: String($0)) }),
            attributes: try JSONValue.parse(row.text("attributes")).object ?? JSONObject())
        sessionID = try row.text("session_id")
        sessionAuditID = try row.text("session_audit_id")
        scopes = try row.text("scope").split(separator: " ").map(String.init)
        authTime = try row.integer("auth_time")
        authLevel = Int(try row.integer("auth_level"))
        keyThumbprint = try row.optionalText("key_thumbprint")
        isRevoked = try row.optionalInteger("revoked_at") != nil
    }
}

extension OAuthProvider {
    /// The statements that end a grant and note it in the audit log. They fail as a whole when it has ended already.
    func revocation(of grant: GrantRecord, because reason: String, event: String) -> [SQLStatement] {
        [
            SQLStatement(
                "UPDATE grants SET revoked_at = ?1, revoked_because = ?2 WHERE id = ?3 AND revoked_at IS NULL",
                [.integer(now), .text(reason), .text(grant.id)], expecting: .exactly(1)),
            // Nothing needs the sealed successors of a grant that has ended.
            SQLStatement(
                "UPDATE refresh_tokens SET sealed_successor = NULL WHERE grant_id = ?1", [.text(grant.id)]),
            audit.statement(record(event, event == "oauth.revoke" ? .success : .refused, reason: reason, grant)),
        ]
    }

    /// Ends a grant, so that none of its tokens is valid any more. Nothing happens, and nothing is noted, when it has
    /// ended.
    func revoke(_ grant: GrantRecord, because reason: String, event: String) async throws {
        do {
            _ = try await context.database.run(revocation(of: grant, because: reason, event: event))
        } catch let error as StoreError where error.code == .unexpectedCount {
            return
        }
    }

    func record(
        _ event: String, _ outcome: AuditRecord.Outcome, reason: String? = nil, _ grant: GrantRecord
    ) -> AuditRecord {
        AuditRecord(
            event, outcome, reason: reason, realm: configuration.realm, userID: grant.user.id,
            sessionAuditID: grant.sessionAuditID,
            detail: JSONObject([
                .init(name: "client", value: .string(grant.clientID)), .init(name: "grant", value: .string(grant.id)),
            ]))
    }
}
