package import AssentCore
import AssentStore

/// A session that was valid when it was looked up: not ended, not expired, its user active.
package struct LiveSession: Sendable, Hashable {
    /// The key in the store: the hash of the token.
    package let id: String

    /// The id for the audit log and for bindings (`AMCtxId`).
    package let auditID: String

    /// Whose session it is.
    package let user: User

    /// The realm it was made in.
    package let realm: String

    /// How strongly the user has proved who they are.
    package let authLevel: Int

    /// When it began, in seconds since 1970.
    package let createdAt: Int64

    /// When it was last used, in seconds since 1970, to within a minute.
    package let latestAccess: Int64

    /// After how many seconds without use it ends.
    package let maxIdle: Int64

    /// When it ends in any case, in seconds since 1970.
    package let expiresAt: Int64

    /// What journeys have noted.
    package let properties: JSONObject

    /// When it ends unless it is used.
    package var idleExpiresAt: Int64 { min(latestAccess + maxIdle, expiresAt) }
}

extension LiveSession {
    init(_ row: SQLRow, user: User) throws {
        self.init(
            id: try row.text("id"), auditID: try row.text("audit_id"), user: user, realm: try row.text("realm"),
            authLevel: Int(try row.integer("auth_level")), createdAt: try row.integer("created_at"),
            latestAccess: try row.integer("latest_access"), maxIdle: try row.integer("max_idle"),
            expiresAt: try row.integer("expires_at"),
            properties: try JSONValue.parse(row.text("properties")).object ?? JSONObject())
    }
}
