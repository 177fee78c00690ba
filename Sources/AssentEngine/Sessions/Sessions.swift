package import AssentCore
package import AssentStore
import Logging

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

/// A session that begins when its statement is run.
package struct PreparedSession: Sendable {
    /// The token, which is kept nowhere.
    package let token: Secret

    /// Its row.
    var row: NewSession

    /// When it was prepared, in seconds since 1970.
    let preparedAt: Int64

    /// The key in the store (``LiveSession/id``).
    var id: String { row.id }

    /// The id for the audit log.
    package var auditID: String { row.auditID }

    /// How strongly the user has proved who they are.
    var authLevel: Int { row.authLevel }

    /// What begins it.
    package var statement: SQLStatement { row.statement(at: preparedAt) }
}

/// The sessions in the store.
package struct Sessions: Sendable {
    let context: EngineContext

    /// That session `s` is of a kind that the file still allows.
    private let isLetIn: SQL

    /// The text that looks a session up.
    private let template: SQLTemplate

    /// AM writes the time of the latest access at most once a minute: every read of a session would else be a write.
    package static let accessUpdateInterval: Int64 = 60

    /// The sessions of a context's database.
    ///
    /// - Parameters:
    ///   - context: the context.
    ///   - apps: the apps of the file, by realm: a session of the kind `stateless` counts only while an app allows such
    ///     sessions that its key is an installation's of. `nil` where that is not asked.
    package init(_ context: EngineContext, apps: [String: [OAuthApp]]? = nil) {
        self.context = context
        isLetIn = apps.map(SessionSQL.isLetIn(by:)) ?? "1 = 1"
        template = apps == nil ? Self.usualTemplate : Self.lookingUp(isLetIn: isLetIn)
    }

    private static let usualTemplate = lookingUp(isLetIn: "1 = 1")

    /// The text of a look-up: nearly every request with a session runs it, so it is put together once.
    private static func lookingUp(isLetIn: SQL) -> SQLTemplate {
        // No database takes a text with a NUL, so nothing that the file names is taken for it.
        let found = Self.found(id: "\0session", at: .min, isLetIn: isLetIn)
        return SQLTemplate(
            "SELECT \(found.columns) FROM \(found.source)", standIns: ["\0session", .integer(.min)])
    }

    /// What is read of a session that is alive, and where it comes from.
    private static func found(id: String, at now: Int64, isLetIn: SQL) -> (columns: SQL, source: SQL) {
        (
            columns: "s.user_id, \(LiveSession.joinedColumns), \(UserSQL.columns)",
            source: "\(SessionSQL.withUser) WHERE s.id = \(id) AND \(SessionSQL.isAlive(at: now)) AND \(isLetIn)"
        )
    }

    /// Begins a session and returns its token, which is kept nowhere. The `accompanying` statements succeed or fail
    /// together with it.
    package func begin(
        userID: String, realm: String, authLevel: Int = 0, limits: SessionLimits, properties: JSONObject = JSONObject(),
        sender: SenderBinding? = nil, accompanying: [SQLStatement] = []
    ) async throws -> (token: Secret, auditID: String) {
        let rows = try await context.database.run(.read("SELECT epoch FROM users WHERE id = \(userID)"))
        let session = prepare(
            userID: userID, epoch: try rows.first?.integer("epoch"), realm: realm, authLevel: authLevel,
            limits: limits, properties: properties, sender: sender)
        _ = try await context.database.run(accompanying + [session.statement])
        return (session.token, session.auditID)
    }

    /// A session of a journey, which begins when its statement is run: for what must know the token before. It fails
    /// unless the user's epoch is still the one under which they have proved who they are.
    package func prepare(
        userID: String, epoch: Int64?, realm: String, authLevel: Int, limits: SessionLimits, properties: JSONObject,
        sender: SenderBinding? = nil
    ) -> PreparedSession {
        let token = Secret(context.random.token())
        let id = TokenHash.of(token)
        let auditID = context.random.uuid()
        let now = context.clock.epochSeconds
        let new = NewSession(
            id: id, auditID: auditID, userID: userID, epoch: epoch, realm: realm, authLevel: authLevel, authTime: now,
            limits: limits, kind: .user, isOfJourney: true, journeyLevel: authLevel,
            properties: properties, sender: sender)
        return PreparedSession(token: token, row: new, preparedAt: now)
    }

    /// The session of a token, if it is alive; `nil` says nothing about why it is not.
    package func live(token: Secret) async throws -> LiveSession? {
        try await live(id: TokenHash.of(token))
    }

    /// The session with that id (``LiveSession/id``), if it is alive.
    package func live(id: String) async throws -> LiveSession? {
        try await context.database.run(lookUp(id: id) { "1 = 1" }.reading).first.map(LiveSession.init(found:))
    }

    /// Whether a session ends with the container that has signed its user in, or with the grant of the link that has
    /// begun it, there or before a step-up. That never changes in its life.
    func endsWithItsOrigin(_ session: LiveSession) async throws -> Bool {
        try await !context.database.run(
            .read(
                """
                SELECT id FROM sessions
                WHERE id = \(session.id) AND (did IS NOT NULL OR grant_id IS NOT NULL)
                """)
        ).isEmpty
    }

    /// How the session of a token is found, together with a proof: the session is valid if it belongs to the realm and
    /// to the proof's key.
    func lookUp(token: Secret, realm: String, keyThumbprint: String?) -> SessionLookUp {
        lookUp(id: TokenHash.of(token)) {
            "s.realm = \(realm) AND s.sender = \(SenderBinding(keyThumbprint: keyThumbprint)?.stored ?? "")"
        }
    }

    /// As ``lookUp(token:realm:keyThumbprint:)``, for a session of whatever realm.
    func lookUp(token: Secret, keyThumbprint: String?) -> SessionLookUp {
        lookUp(id: TokenHash.of(token)) {
            "s.sender = \(SenderBinding(keyThumbprint: keyThumbprint)?.stored ?? "")"
        }
    }

    private func lookUp(id: String, isValid: @escaping @Sendable () -> SQL) -> SessionLookUp {
        let now = context.clock.epochSeconds
        return SessionLookUp(reading: .read(template.with([.text(id), .integer(now)]))) { [isLetIn] in
            let found = Self.found(id: id, at: now, isLetIn: isLetIn)
            return ProofLookUp(columns: found.columns, source: found.source, isValid: isValid)
        }
    }

    /// Notes that the session was used, at most once in ``accessUpdateInterval``.
    package func touch(_ session: LiveSession) async throws {
        guard let statement = touching(session) else { return }
        _ = try await context.database.run(statement)
    }

    /// Notes that the session was used, as ``touch(_:)`` does, where the database can be written. The note lets nobody
    /// in, and a session without it ends the sooner: while the disk is full, what only reads goes on.
    ///
    /// - Throws: ``StoreError`` for what is wrong with the statement or the stored data.
    package func noteUse(of session: LiveSession) async throws { try await note(touching(session)) }

    /// Runs a statement that notes a use, if there is one, where the database can be written.
    func note(_ use: SQLStatement?) async throws {
        guard let use else { return }
        do {
            _ = try await context.database.run(use)
        } catch let error as StoreError where [StoreError.Code.unavailable, .outcomeUnknown].contains(error.code) {
            context.logger.info("the use of a session was not noted", metadata: ["detail": "\(error.detail)"])
        }
    }

    /// The statement that notes that the session was used; `nil` when that was noted within
    /// ``accessUpdateInterval``.
    func touching(_ session: LiveSession) -> SQLStatement? {
        let now = context.clock.epochSeconds
        guard now - session.latestAccess >= Self.accessUpdateInterval else { return nil }
        return SQLStatement(
            "UPDATE sessions SET latest_access = \(now) WHERE id = \(session.id) AND latest_access < \(now)")
    }

    /// The statement that notes that a session was used, unless that was noted within ``accessUpdateInterval``; `query`
    /// gives its id.
    func touching(whoseIDIs query: SQL) -> SQLStatement {
        let now = context.clock.epochSeconds
        return SQLStatement(
            """
            UPDATE sessions SET latest_access = \(now)
            WHERE id = (\(query)) AND latest_access <= \(now - Self.accessUpdateInterval)
            """)
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
        SQLStatement("DELETE FROM sessions WHERE id = \(id)", expecting: mustExist ? .exactly(1) : .any)
    }

    /// Ends all sessions of a user. Returns how many there were.
    package func endAll(userID: String) async throws -> Int {
        try await context.database.run(
            SQLStatement("DELETE FROM sessions WHERE user_id = \(userID) RETURNING id")
        ).count
    }

    /// Deletes the sessions that have expired. Returns how many.
    package func purge() async throws -> Int {
        let now = context.clock.epochSeconds
        return try await context.delete(
            from: "sessions", where: "expires_at <= \(now) OR latest_access + max_idle <= \(now)")
    }
}
