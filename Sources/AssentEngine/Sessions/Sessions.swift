package import AssentCore
package import AssentStore

/// How long sessions live.
package struct SessionLimits: Sendable, Hashable {
    /// Seconds from sign-in to the end in any case. AM's default is 120 minutes.
    package var maxSession: Int64

    /// Seconds without use until the end. AM's default is 30 minutes.
    package var maxIdle: Int64

    /// Limits; the defaults are AM's.
    package init(maxSession: Int64 = 120 * 60, maxIdle: Int64 = 30 * 60) {
        self.maxSession = maxSession
        self.maxIdle = maxIdle
    }
}

/// The sessions in the store.
package struct Sessions: Sendable {
    private let context: EngineContext

    /// AM writes the time of the latest access at most once a minute: every read of a session would else be a write.
    package static let accessUpdateInterval: Int64 = 60

    /// The sessions of a context's database.
    package init(_ context: EngineContext) {
        self.context = context
    }

    /// Begins a session and returns its token, which is kept nowhere. The `accompanying` statements succeed or fail
    /// together with it.
    package func begin(
        userID: String, realm: String, authLevel: Int = 0, limits: SessionLimits, properties: JSONObject = JSONObject(),
        accompanying: [SQLStatement] = []
    ) async throws -> (token: Secret, auditID: String) {
        let session = prepare(
            userID: userID, realm: realm, authLevel: authLevel, limits: limits, properties: properties)
        _ = try await context.database.run(accompanying + [session.statement])
        return (session.token, session.auditID)
    }

    /// A session that begins when its statement is run: for what must know the token beforehand.
    package func prepare(
        userID: String, realm: String, authLevel: Int, limits: SessionLimits, properties: JSONObject
    ) -> (token: Secret, auditID: String, statement: SQLStatement) {
        let token = Secret(context.random.token())
        let auditID = context.random.uuid()
        let now = context.clock.epochSeconds
        let insert = SQLStatement(
            """
            INSERT INTO sessions
                (id, audit_id, user_id, realm, auth_level, created_at, latest_access, max_idle, expires_at, properties)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9)
            """,
            [
                .text(TokenHash.of(token)), .text(auditID), .text(userID), .text(realm), SQLValue(authLevel),
                .integer(now), .integer(limits.maxIdle), .integer(now + limits.maxSession),
                .text(JSONValue.object(properties).serialized()),
            ], expecting: .exactly(1))
        return (token, auditID, insert)
    }

    /// The session of a token, if it is alive; `nil` says nothing about why it is not.
    package func live(token: Secret) async throws -> LiveSession? {
        try await live(id: TokenHash.of(token))
    }

    /// The session with that id (``LiveSession/id``), if it is alive.
    package func live(id: String) async throws -> LiveSession? {
        let now = context.clock.epochSeconds
        let rows = try await context.database.run(
            .read(
                """
                SELECT s.*, u.username, u.active, u.roles, u.attributes FROM sessions s JOIN users u ON u.id = s.user_id
                WHERE s.id = ?1 AND s.expires_at > ?2 AND s.latest_access + s.max_idle > ?2 AND u.active = 1
                """, [.text(id), .integer(now)]))
        guard let row = rows.first else { return nil }
        let user = User(
            id: try row.text("user_id"), realm: try row.text("realm"), username: try row.text("username"),
            isActive: try row.bool("active"),
            roles: Set(try row.text("roles").split(separator: " ").compactMap { Role(rawValue: String($0)) }),
            attributes: try JSONValue.parse(row.text("attributes")).object ?? JSONObject())
        return try LiveSession(row, user: user)
    }

    /// Notes that the session was used, at most once in ``accessUpdateInterval``.
    package func touch(_ session: LiveSession) async throws {
        let now = context.clock.epochSeconds
        guard now - session.latestAccess >= Self.accessUpdateInterval else { return }
        _ = try await context.database.run(
            SQLStatement(
                "UPDATE sessions SET latest_access = ?1 WHERE id = ?2 AND latest_access < ?1",
                [.integer(now), .text(session.id)]))
    }

    /// Ends a session, and puts `record` into the audit log: both or neither. Returns whether there was one.
    package func end(id: String, recording record: AuditRecord? = nil) async throws -> Bool {
        let note = record.map { AuditLog(context).statement($0) }
        do {
            _ = try await context.database.run([ending(id: id, mustExist: true)] + [note].compactMap(\.self))
            return true
        } catch let error as StoreError where error.code == .unexpectedCount {
            return false
        }
    }

    /// The statement that ends a session; with `mustExist` it fails when that has ended already.
    package func ending(id: String, mustExist: Bool) -> SQLStatement {
        SQLStatement("DELETE FROM sessions WHERE id = ?1", [.text(id)], expecting: mustExist ? .exactly(1) : .any)
    }

    /// Ends all sessions of a user. Returns how many there were.
    package func endAll(userID: String) async throws -> Int {
        try await context.database.run(
            SQLStatement("DELETE FROM sessions WHERE user_id = ?1 RETURNING id", [.text(userID)])
        ).count
    }

    /// Deletes the sessions that have expired. Returns how many.
    package func purge() async throws -> Int {
        try await context.database.run(
            SQLStatement(
                "DELETE FROM sessions WHERE expires_at <= ?1 OR latest_access + max_idle <= ?1 RETURNING id",
                [.integer(context.clock.epochSeconds)])
        ).count
    }
}
