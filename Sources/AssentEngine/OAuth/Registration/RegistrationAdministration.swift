package import AssentCore
import AssentStore

/// What administrators do with the instances of the apps of their realm, each act with its audit record.
package struct RegistrationAdministration: Sendable {
    private let administration: Administration

    private var context: EngineContext { administration.context }

    /// The instances in a context's database.
    package init(_ administration: Administration) { self.administration = administration }

    /// How many registrations one initial access token may be for.
    package static let counts: ClosedRange<Int64> = 1...1_000_000

    /// How many days one may be valid.
    package static let days: ClosedRange<Int64> = 1...365

    /// An instance as the list shows one.
    package struct Listed: Sendable, Hashable {
        /// Its client id.
        package let id: String
        /// Its app's id.
        package let app: String
        /// What it calls itself.
        package let name: String?
        /// Which version of the app it says that it is.
        package let version: String?
        /// On which platform it says that it runs.
        package let platform: String?
        /// What it calls its device.
        package let deviceName: String?
        /// The thumbprint of its key.
        package let keyThumbprint: String
        /// When it has registered, in seconds since 1970.
        package let createdAt: Int64
        /// When its last use was written, in seconds since 1970.
        package let usedAt: Int64
        /// How many containers it has that have not ended: by each it remembers a user.
        package let containers: Int64
    }

    /// Makes an initial access token (RFC 7591 §3), which nobody can read later.
    ///
    /// - Parameters:
    ///   - app: the app's id.
    ///   - count: how many instances it registers.
    ///   - days: how long it is valid.
    ///   - configuration: the provider of the administrator's realm.
    ///   - session: the administrator's.
    /// - Returns: the token.
    /// - Throws: ``EngineError``: `forbidden` without the role `admin`, `notFound` when the file has no such app,
    ///   `invalidRequest`.
    package func makeToken(
        for app: String, count: Int64, days: Int64, _ configuration: OAuthProviderConfiguration,
        by session: LiveSession
    ) async throws -> Secret {
        try await demandAdministrator(.registrationToken, session)
        guard Self.counts.contains(count), Self.days.contains(days) else {
            throw EngineError.invalidRequest("A token is for 1 to 1000000 registrations, and valid for 1 to 365 days.")
        }
        guard configuration.apps[app] != nil else {
            throw EngineError(.notFound, "The realm has no app of that name.")
        }
        let (token, now) = (Secret(context.random.token()), context.clock.epochSeconds)
        var record = administration.record(.registrationToken, by: session, about: nil)
        record.detail["app"] = .string(app)
        record.detail["count"] = .integer(count)
        record.detail["days"] = .integer(days)
        _ = try await context.database.run([
            SQLStatement(
                """
                INSERT INTO registration_tokens (hash, realm, app, uses_left, created_at, expires_at)
                VALUES (\(TokenHash.of(token)), \(session.realm), \(app), \(count), \(now), \(now + days * 86_400))
                """, expecting: .exactly(1)),
            administration.audit.statement(record),
        ])
        return token
    }

    /// The instances of the administrator's realm in the order of their ids, from the one after `id`, at most `limit`
    /// (1000); those of one app, if it is named.
    ///
    /// - Throws: ``EngineError`` `forbidden` without the role `admin`.
    package func list(
        of app: String?, after id: String = "", limit: Int, by session: LiveSession
    ) async throws -> [Listed] {
        try await demandAdministrator(.registrationList, session)
        let ofApp: SQL = app.map { "app = \($0)" } ?? "1 = 1"
        let containers = LoginSQL.containers(ofEach: "client_instances.id")
        let listed = try await context.database.run(
            .read(
                """
                SELECT app, \(ClientInstance.columns), \(containers) AS containers FROM client_instances
                WHERE realm = \(session.realm) AND \(ofApp) AND id > \(id)
                ORDER BY id LIMIT \(min(max(limit, 1), 1000))
                """)
        ).map { row in
            let instance = try ClientInstance(row)
            return Listed(
                id: instance.id, app: try row.text("app"), name: instance.metadata.name,
                version: instance.metadata.version, platform: instance.metadata.platform,
                deviceName: instance.metadata.deviceName, keyThumbprint: instance.metadata.keyThumbprint,
                createdAt: instance.createdAt, usedAt: instance.usedAt, containers: try row.integer("containers"))
        }
        try await administration.audit.write(administration.record(.registrationList, by: session, about: nil))
        return listed
    }

    /// Ends an instance, with all its grants.
    ///
    /// - Throws: ``EngineError``: `forbidden` without the role `admin`, `notFound` when no instance has this id.
    package func end(_ id: String, by session: LiveSession) async throws {
        try await demandAdministrator(.registrationEnd, session)
        guard let app = OAuthApp.id(ofInstance: id), try await end(id, of: app, by: session) else {
            throw EngineError(.notFound, "The realm has no instance of an app with that id.")
        }
    }

    /// Ends some hundred instances of an app, after its initial access tokens.
    ///
    /// - Returns: how many have ended. While there are some, there may be more.
    /// - Throws: ``EngineError`` `forbidden` without the role `admin`.
    package func endSome(of app: String, by session: LiveSession) async throws -> Int {
        try await demandAdministrator(.registrationEnd, session)
        let tokens: SQL = "registration_tokens WHERE realm = \(session.realm) AND app = \(app)"
        var record = administration.record(.registrationToken, by: session, about: nil)
        record.detail["app"] = .string(app)
        record.detail["act"] = .string("end")
        let results = try await context.database.run([
            // While they are there. Of many calls for one app, the first ends them.
            administration.audit.statement(record, when: "EXISTS (SELECT 1 FROM \(tokens))"),
            SQLStatement("DELETE FROM \(tokens)"),
            .read(
                """
                SELECT id FROM client_instances WHERE realm = \(session.realm) AND app = \(app)
                ORDER BY id LIMIT \(ClientInstance.batch)
                """),
        ])
        let ids = try results.last?.map { try $0.text("id") } ?? []
        var ended = 0
        for id in ids where try await end(id, of: app, by: session) { ended += 1 }
        return ended
    }

    private func end(_ id: String, of app: String, by session: LiveSession) async throws -> Bool {
        var record = administration.record(.registrationEnd, by: session, about: nil)
        record.detail["client"] = .string(id)
        do {
            try await ClientInstance.end(id, of: app, realm: session.realm, noting: record, in: context)
            return true
        } catch let error as StoreError where error.code == .unexpectedCount {
            return false
        }
    }

    private func demandAdministrator(_ event: AuditEvent, _ session: LiveSession) async throws {
        guard session.user.roles.contains(.admin) else {
            return try await administration.refuse(event, by: session, reason: "role")
        }
    }
}
