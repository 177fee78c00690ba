package import AssentCore
import AssentStore

/// A link that signs a browser in, as the app gets it.
package struct IssuedWebLink: Sendable {
    /// What stands in the URL. It is kept nowhere.
    package let id: Secret

    /// For how many seconds it may be used.
    package let expiresIn: Int64
}

/// A link that may still be used, as it is shown to who opens it.
package struct OpenedWebLink: Sendable {
    /// The key in the store: the hash of what stands in the URL.
    let id: String

    /// Who is signed in by it.
    package let user: User

    /// The client that has asked for it.
    package let clientID: String

    /// Where it leads.
    package let target: String

    /// The grant with which the browser's session ends.
    let grantID: String

    /// The session that the grant was given in (``LiveSession/id``).
    let sessionID: String

    /// The audit id of the session that the grant was given in.
    let sessionAuditID: String

    /// Who asks for it, for a record.
    func record(_ outcome: AuditRecord.Outcome, reason: String? = nil, session: String? = nil) -> AuditRecord {
        var detail: JSONObject = [
            "client": .string(clientID), "grant": .string(grantID), "target": .string(target),
        ]
        detail["made"] = session.map(JSONValue.string)
        return AuditRecord(
            .webLinkUse, outcome, reason: reason, realm: user.realm, userID: user.id, sessionAuditID: sessionAuditID,
            detail: detail)
    }
}

/// The links that sign browsers in, of all realms.
package struct WebLinks: Sendable {
    let context: EngineContext

    /// For how many seconds a link may be used.
    package static let lifetime: Int64 = 60

    /// The most characters of what stands in a URL that are looked at.
    package static let longestID = 128

    /// How many forms of one used link are written down in a minute.
    private static let repetitionsPerMinute: Int64 = 10

    /// The links of a context's database.
    package init(_ context: EngineContext) { self.context = context }

    /// That the grant of link `l` is valid, with the session `s` that it was given in and its user `u`, all of which
    /// ``source`` has. A session that was begun by a link makes no further ones: each would have to end with all
    /// before it.
    static func mayBeginSession(at now: Int64) -> SQL {
        "g.revoked_at IS NULL AND g.epoch = u.epoch AND s.grant_id IS NULL AND \(SessionSQL.isAlive(at: now))"
    }

    /// Grants as `g` with their session and its user.
    static let grants: SQL = """
        grants g JOIN sessions s ON s.id = g.session_id AND s.user_id = g.user_id JOIN users u ON u.id = s.user_id
        """

    /// The link of what stands in a URL, while it may be used. Looking does not use it.
    ///
    /// - Returns: the link; `nil` when there is none, and for one that is used, has expired, or whose grant has ended.
    /// - Throws: ``StoreError``.
    package func find(_ secret: Secret) async throws -> OpenedWebLink? {
        let now = context.clock.epochSeconds
        let id = TokenHash.of(secret)
        let row = try await context.database.run(
            .read(
                """
                SELECT l.target, l.grant_id, g.client_id, g.session_audit_id, s.id, s.user_id, \(UserSQL.columns)
                FROM \(Self.grants) JOIN web_links l ON l.grant_id = g.id
                WHERE l.id = \(id) AND l.used_at IS NULL AND l.expires_at > \(now) AND \(Self.mayBeginSession(at: now))
                """)
        ).first
        return try row.map { row in
            OpenedWebLink(
                id: id, user: try User(row, id: row.text("user_id")), clientID: try row.text("client_id"),
                target: try row.text("target"), grantID: try row.text("grant_id"),
                sessionID: try row.text("id"),
                sessionAuditID: try row.text("session_audit_id"))
        }
    }

    /// Uses a link: begins a session of its user for the browser, which has proved no more than the app's session and
    /// ends with the app's grant. It is not a fresh authentication.
    ///
    /// - Parameters:
    ///   - link: the link, as it was found.
    ///   - other: the session that the browser has, which ends; but not when it is the app's own, with which the new
    ///     one would end.
    /// - Returns: the session's token, which is kept nowhere; `nil` when the link was used, has expired, or its grant
    ///   has ended since it was found.
    /// - Throws: ``StoreError``.
    package func use(_ link: OpenedWebLink, replacing other: LiveSession? = nil) async throws -> Secret? {
        let now = context.clock.epochSeconds
        let token = Secret(context.random.token())
        let auditID = context.random.uuid()
        let audit = AuditLog(context)
        let replaced = other.flatMap { $0.id == link.sessionID ? nil : $0 }
        // Sessions are locked before what hangs on grants.
        let ending = replaced.map { session in
            [
                Sessions(context).ending(id: session.id, mustExist: false),
                audit.statement(
                    AuditRecord(
                        .sessionEnd, .success, reason: "replaced", realm: session.realm, userID: session.user.id,
                        sessionAuditID: session.auditID)),
            ]
        }
        do {
            _ = try await context.database.run(
                (ending ?? []) + [
                    SQLStatement(
                        """
                        UPDATE web_links SET used_at = \(now)
                        WHERE id = \(link.id) AND used_at IS NULL AND expires_at > \(now) AND EXISTS (
                            SELECT 1 FROM \(Self.grants)
                            WHERE g.id = web_links.grant_id AND \(Self.mayBeginSession(at: now)))
                        """, expecting: .exactly(1)),
                    beginning(TokenHash.of(token), auditID: auditID, by: link, at: now),
                    audit.statement(link.record(.success, session: auditID)),
                ])
            return token
        } catch let error as StoreError where error.code == .unexpectedCount {
            _ = try await context.database.run(audit.statement(link.record(.refused, reason: "usedOrEnded")))
            return nil
        }
    }

    /// Writes down that somebody has sent the form of a link that was used: one of the two may not be its user. Nothing
    /// is written of a link that is unknown, or that nobody has used.
    ///
    /// - Parameter secret: what stands in the URL.
    /// - Throws: ``StoreError``.
    package func noteRepeated(_ secret: Secret) async throws {
        let id = TokenHash.of(secret)
        let row = try await context.database.run(
            .read(
                """
                SELECT l.realm, l.target, l.grant_id, g.client_id, g.user_id, g.session_audit_id
                FROM web_links l JOIN grants g ON g.id = l.grant_id WHERE l.id = \(id) AND l.used_at IS NOT NULL
                """)
        ).first
        guard let row,
            try await AttemptCounter(context).attempt(
                "web-link-used:\(id)", limit: Self.repetitionsPerMinute, window: 60)
        else { return }
        let record = AuditRecord(
            .webLinkUse, .refused, reason: "usedOrEnded", realm: try row.text("realm"),
            userID: try row.optionalText("user_id"), sessionAuditID: try row.optionalText("session_audit_id"),
            detail: [
                "client": .string(try row.text("client_id")), "grant": .string(try row.text("grant_id")),
                "target": .string(try row.text("target")),
            ])
        try await AuditLog(context).write(record)
    }

    /// The statement that begins the browser's session. All that it has proved, the app's session has.
    private func beginning(_ id: String, auditID: String, by link: OpenedWebLink, at now: Int64) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO sessions
                (id, audit_id, user_id, realm, auth_level, created_at, latest_access, max_idle, expires_at, properties,
                epoch, acr, amr, kind, is_of_journey, grant_id)
            SELECT \(id), \(auditID), s.user_id, s.realm,
                CASE WHEN g.auth_level < s.auth_level THEN g.auth_level ELSE s.auth_level END,
                s.created_at, \(now), s.max_idle, s.expires_at, '{}', s.epoch, s.acr, s.amr,
                \(SessionKind.user.rawValue), 0, g.id
            FROM \(Self.grants)
            WHERE g.id = \(link.grantID) AND s.kind = \(SessionKind.user.rawValue)
                AND \(Self.mayBeginSession(at: now))
            """, expecting: .exactly(1))
    }

    /// Deletes the links that nobody can use any more, a limited number of rows at a time.
    ///
    /// - Throws: ``StoreError``.
    static func purge(_ context: EngineContext) async throws {
        let now = context.clock.epochSeconds
        _ = try await context.delete(from: "web_links", where: "expires_at <= \(now)")
    }
}
