import AssentCore
import AssentStore

extension UserAdministration {
    /// A session of a user as an administrator sees it. What could be presented is not in it.
    package struct ListedSession: Sendable, Hashable {
        /// The id for the audit log, which is the `sid` of ID tokens.
        package let auditID: String
        /// When the user has proved who they are, in seconds since 1970.
        package let createdAt: Int64
        /// When it was last used, in seconds since 1970, to within a minute.
        package let latestAccess: Int64
        /// When it ends unless it is used, in seconds since 1970.
        package let idleExpiresAt: Int64
        /// When it ends in any case, in seconds since 1970.
        package let expiresAt: Int64
        /// How strongly the user has proved who they are.
        package let authLevel: Int
        /// For what it was made.
        package let kind: SessionKind
        /// The class of the sign-in, for a session without a token.
        package let acr: String?
        /// How the user has signed in, for a session without a token.
        package let amr: [String]
        /// Whether somebody can present it.
        package let hasToken: Bool
        /// Whether it belongs to a key, so that only that can present it.
        package let isBound: Bool
        /// The clients whose grants hang on it and live, in the order of their ids.
        package let clients: [String]
    }

    /// The most sessions that ``sessions(of:by:)`` gives.
    package static let listedSessions = 1000

    /// The sessions of a user of the administrator's realm that are alive, the latest first.
    ///
    /// Throws ``EngineError``: `forbidden` without the role `admin`, `notFound` for an unknown user.
    package func sessions(of username: String, by session: LiveSession) async throws -> [ListedSession] {
        let user = try await administration.subject(username, of: .adminSessions, by: session)
        let now = context.clock.epochSeconds
        let limit = Self.listedSessions
        let chosen: SQL = """
            SELECT s.* FROM \(SessionSQL.withUser) WHERE s.user_id = \(user.id) AND \(SessionSQL.isAlive(at: now))
            ORDER BY s.created_at DESC, s.audit_id LIMIT \(limit)
            """
        let results = try await context.database.run([
            .read(chosen),
            .read(
                """
                SELECT DISTINCT g.session_id, g.client_id FROM grants g JOIN (\(chosen)) c ON c.id = g.session_id
                WHERE g.user_id = \(user.id) AND g.revoked_at IS NULL AND g.epoch = \(user.epoch)
                    AND g.expires_at > \(now)
                ORDER BY g.client_id
                """),
        ])
        var clients: [String: [String]] = [:]
        for row in results.last ?? [] {
            clients[try row.text("session_id"), default: []].append(try row.text("client_id"))
        }
        let listed = try (results.first ?? []).map { row in
            try ListedSession(row, clients: clients[row.text("id")] ?? [])
        }
        try await administration.audit.write(administration.record(.adminSessions, by: session, about: user))
        return listed
    }

    /// Ends a session of a user of the administrator's realm, and with it the grants that hang on it, but for those
    /// that outlive their session.
    ///
    /// Throws ``EngineError``: `forbidden` without the role `admin`, `notFound` for an unknown user, and when the user
    /// has no such session.
    package func endSession(_ auditID: String, of username: String, by session: LiveSession) async throws {
        let user = try await administration.subject(username, of: .adminSessions, by: session)
        let record = AuditRecord(
            .sessionEnd, .success, reason: "administrator", realm: user.realm, userID: user.id,
            sessionAuditID: auditID,
            detail: ["administrator": .string(session.user.id), "session": .string(session.auditID)])
        do {
            _ = try await context.database.run([
                SQLStatement(
                    "DELETE FROM sessions WHERE audit_id = \(auditID) AND user_id = \(user.id)", expecting: .exactly(1)),
                administration.audit.statement(record),
            ])
        } catch let error as StoreError where error.code == .unexpectedCount {
            throw EngineError(.notFound, "The user has no such session.")
        }
    }
}

extension UserAdministration.ListedSession {
    fileprivate init(_ row: SQLRow, clients: [String]) throws {
        auditID = try row.text("audit_id")
        createdAt = try row.integer("created_at")
        latestAccess = try row.integer("latest_access")
        expiresAt = try row.integer("expires_at")
        idleExpiresAt = min(latestAccess + (try row.integer("max_idle")), expiresAt)
        authLevel = Int(clamping: try row.integer("auth_level"))
        kind = try row.sessionKind("kind")
        acr = try row.optionalText("acr")
        amr = AuthenticationMethods.read(try row.optionalText("amr"))
        hasToken = try !row.text("id").hasPrefix(TokenlessSession.idPrefix)
        isBound = try row.sender() != nil
        self.clients = clients
    }
}
