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

    /// For what it was made.
    package var kind = SessionKind.user

    /// Whether a journey has made it, so that its user has just signed in when it began.
    package var isOfJourney = false

    /// How strongly that journey itself has proved who the user is. After a step-up ``authLevel`` may be higher: it
    /// keeps what was proved before.
    package var journeyLevel = 0

    /// What journeys have noted.
    package let properties: JSONObject

    /// The key that the session belongs to: each request that presents it proves that key (RFC 9449). `nil` for a
    /// session that anyone may use who has its token, as AM's are.
    package var sender: SenderBinding?

    /// When it ends unless it is used.
    package var idleExpiresAt: Int64 { min(latestAccess + maxIdle, expiresAt) }
}

extension LiveSession {
    /// What stands before the names of the columns in ``joinedColumns``. It is short because a text of more than 15
    /// bytes needs memory of its own, and these are compared for each request.
    static let joinedPrefix = "s_"

    /// The columns of a session `s` beside those of other tables, all NULL when there is none.
    static let joinedColumns = SQL(
        verbatim: [
            "id", "audit_id", "realm", "auth_level", "created_at", "latest_access", "max_idle", "expires_at",
            "properties", "kind", "is_of_journey", "journey_level",
        ].map { "s.\($0) AS \(joinedPrefix)\($0)" }.joined(separator: ", ")
            + ", s.sender AS \(joinedSender)")

    private static let joinedSender = joinedPrefix + "sender"

    /// A session from what ``Sessions`` looks up.
    init(found row: SQLRow) throws {
        try self.init(joined: row, user: User(row, id: row.text("user_id")))
    }

    /// A session from ``joinedColumns``. Their names stand here as a whole, behind ``joinedPrefix``: each request would
    /// put them together.
    init(joined row: SQLRow, user: User) throws {
        self.init(
            id: try row.text("s_id"), auditID: try row.text("s_audit_id"), user: user,
            realm: try row.text("s_realm"), authLevel: Int(try row.integer("s_auth_level")),
            createdAt: try row.integer("s_created_at"), latestAccess: try row.integer("s_latest_access"),
            maxIdle: try row.integer("s_max_idle"), expiresAt: try row.integer("s_expires_at"),
            kind: try row.sessionKind("s_kind"), isOfJourney: try row.bool("s_is_of_journey"),
            journeyLevel: Int(try row.integer("s_journey_level")),
            properties: try JSONValue.parse(row.text("s_properties")).object ?? JSONObject(),
            sender: try row.sender(Self.joinedSender))
    }
}
