import AssentCore
import AssentJOSE
import AssentStore

/// What is written when an instance of an app authenticates: that it is used, at most once a day.
struct InstanceUse: Sendable, Hashable {
    /// When it was last written, in seconds since 1970.
    let writtenAt: Int64

    /// Whether the instance has not been used since it registered. Its first use is written at once.
    let isFirst: Bool

    /// For how many days without use the instance is kept.
    let days: Int64

    /// How many seconds a use is not written again.
    private static let pause: Int64 = 86_400

    /// When an instance that is used now is deleted, in seconds since 1970. The pause is not taken from its time.
    static func end(at now: Int64, days: Int64) -> Int64 { now + days * 86_400 + pause }

    /// When an instance that never authenticates is deleted, in seconds since 1970: its answer may have been lost, and
    /// it takes a place of its app.
    static func firstEnd(at now: Int64, days: Int64) -> Int64 { min(now + 7 * 86_400, end(at: now, days: days)) }

    /// The statement that writes it; `nil` when it is too early.
    func statement(of id: String, at now: Int64) -> SQLStatement? {
        guard isFirst || now - writtenAt >= Self.pause else { return nil }
        return SQLStatement(
            """
            UPDATE client_instances SET used_at = \(now), expires_at = \(Self.end(at: now, days: days))
            WHERE id = \(id) AND used_at <= \(now)
            """)
    }
}

/// An installation of an app that has registered, as it is in the store.
package struct ClientInstance: Sendable {
    /// Its client id.
    package let id: String

    /// What it has registered.
    package let metadata: InstanceMetadata

    /// The hash of its registration token.
    let tokenHash: String

    /// When it has registered, in seconds since 1970.
    package let createdAt: Int64

    /// When its last use was written, in seconds since 1970.
    package let usedAt: Int64

    /// The columns of ``init(_:known:)``.
    static let columns: SQL = "id, metadata, token_hash, created_at, used_at"

    /// - Parameters:
    ///   - row: the row.
    ///   - known: what was read lately, for who asks about one that makes requests.
    /// - Throws: ``StoreError`` when the row is damaged.
    init(_ row: SQLRow, known: KnownInstances? = nil) throws {
        id = try row.text("id")
        let text = try row.text("metadata")
        let read = if let known { known.metadata(stored: text) } else { InstanceMetadata(stored: text) }
        guard let metadata = read else {
            throw StoreError(.corrupt, "the metadata of an instance cannot be read")
        }
        self.metadata = metadata
        tokenHash = try row.text("token_hash")
        createdAt = try row.integer("created_at")
        usedAt = try row.integer("used_at")
    }

    /// The instance of a client id; `nil` when it does not exist, or its app is not in the file.
    ///
    /// - Throws: ``StoreError``.
    static func find(
        _ id: String, in configuration: OAuthProviderConfiguration, _ context: EngineContext
    ) async throws -> (ClientInstance, OAuthApp)? {
        guard let app = configuration.app(ofInstance: id) else { return nil }
        let row = try await context.database.run(
            .read("SELECT \(columns) FROM client_instances WHERE id = \(id) AND realm = \(configuration.realm)")
        ).first
        return try row.map { (try ClientInstance($0, known: context.instances), app) }
    }

    /// The client of an id: one of the file, or an instance.
    ///
    /// - Throws: ``StoreError``.
    static func client(
        _ id: String, in configuration: OAuthProviderConfiguration, _ context: EngineContext
    ) async throws -> OAuthClient? {
        if let client = configuration.client(id) { return client }
        return try await find(id, in: configuration, context).map { $0.client(of: $1) }
    }

    /// That the key of instance `i` is registered at no other app of its realm: ``ClientRegistration`` sees to it, but
    /// for two that PostgreSQL writes at the same moment. Who asks for an instance by its key alone asks this, too,
    /// so that what belongs to the key is never taken for another app's.
    static let isOfOneApp: SQL = """
        NOT EXISTS (SELECT 1 FROM client_instances io
            WHERE io.realm = i.realm AND io.key_thumbprint = i.key_thumbprint AND io.app <> i.app)
        """

    /// That a key is registered at no other app of a realm.
    static func isFree(_ keyThumbprint: String, for app: String, in realm: String) -> SQL {
        """
        NOT EXISTS (SELECT 1 FROM client_instances io
            WHERE io.realm = \(realm) AND io.key_thumbprint = \(keyThumbprint) AND io.app <> \(app))
        """
    }

    /// The client that it is now: never more than its app.
    func client(of app: OAuthApp) -> OAuthClient {
        let left = metadata.narrowed(to: app)
        var client = app.client
        client.id = id
        client.kind = .keyed(ClientKeys(.listed(JWKSet([left.key]))))
        client.redirectURIs = left.redirectURIs
        client.scopes = left.scopes
        client.defaultScopes = client.defaultScopes.filter(left.scopes.contains)
        client.grantTypes = Set(left.grantTypes)
        client.requiresProof = left.requiresProof
        client.isDisabled = app.versions.status(of: metadata.version) == .disabled
        client.requiresSealing = app.versions.sealing(of: metadata.version) == .required
        client.use = InstanceUse(writtenAt: usedAt, isFirst: usedAt == createdAt, days: app.days)
        return client
    }
}

// MARK: - The end

extension ClientInstance {
    /// How many instances are ended in a row.
    static let batch = 200

    /// Ends an instance, with its grants and all that hangs on them, which the database deletes with its row, the
    /// consents given to it, its containers with their sessions, its sessions of payload encryption, and of the
    /// sessions that its grants hang on those that are without a token or belong to its key. Its own end is written
    /// down, and that of each container.
    ///
    /// - Throws: ``StoreError`` `unexpectedCount`, and nothing has changed, when it has ended already, or is not one of
    ///   `condition`.
    static func end(
        _ id: String, of app: String, realm: String, if condition: SQL = "1 = 1", noting record: AuditRecord,
        in context: EngineContext
    ) async throws {
        var statements = ending(
            id, of: app, realm: realm, at: context.clock.epochSeconds, if: condition, noting: record,
            in: AuditLog(context))
        // One process without a shared database has them in memory alone.
        if context.database.isShared { statements.append(StoredPayloadSession.ending(client: id)) }
        _ = try await context.database.run(statements)
        context.ended.tell(id)
    }

    private static func ending(
        _ id: String, of app: String, realm: String, at now: Int64, if condition: SQL,
        noting record: AuditRecord, in audit: AuditLog
    ) -> [SQLStatement] {
        let container = AuditRecord(
            .signingContainer, .success, realm: realm,
            detail: ["step": "revoked", "why": "registration", "client": .string(id)])
        return [
            // A login and a change of the key begin with this row, too, so that neither waits for the other. Who gives
            // the instance a grant does not wait for this, but for the row's deletion.
            SQLStatement(
                "UPDATE client_instances SET used_at = used_at WHERE id = \(id) AND realm = \(realm) AND \(condition)",
                expecting: .exactly(1)),
            // Who agrees writes in this order, too, so that neither waits for the other.
            SQLStatement("DELETE FROM consents WHERE client_id = \(id) AND realm = \(realm)"),
        ] + LoginSQL.endContainers(of: id, at: now, noting: container, in: audit) + [
            endingSessions(of: id),
            SQLStatement(
                "DELETE FROM client_instances WHERE id = \(id) AND realm = \(realm) AND \(condition)",
                expecting: .exactly(1)),
            // Also one that was given meanwhile, by a request that the last statement has waited for.
            SQLStatement("DELETE FROM consents WHERE client_id = \(id) AND realm = \(realm)"),
            SQLStatement(
                "UPDATE registered_apps SET instances = instances - 1 WHERE realm = \(realm) AND app = \(app)"),
            audit.statement(record),
        ]
    }

    /// The statement that ends, of the sessions that an instance's grants hang on, those that nothing but its key could
    /// use: without a token, or of this key or, without one, of the key that is registered when it runs.
    static func endingSessions(of id: String, key: String? = nil) -> SQLStatement {
        let registered: SQL = "(SELECT 'jkt:' || i.key_thumbprint FROM client_instances i WHERE i.id = \(id))"
        let sender = SenderBinding(keyThumbprint: key).map { "\($0.stored)" as SQL } ?? registered
        return SQLStatement(
            """
            DELETE FROM sessions WHERE id IN (SELECT session_id FROM grants WHERE instance_id = \(id))
                AND (\(TokenlessSession.isMeant(by: "id")) OR sender = \(sender))
            """)
    }

    /// The statement that ends the sessions of the kind `stateless` that a key has left of earlier installations, where
    /// instance `id` gets the key: they would live again with it. If another instance has the key, they live.
    static func endingLeftovers(of keyThumbprint: String, before id: String, realm: String) -> SQLStatement {
        SQLStatement(
            """
            DELETE FROM sessions
            WHERE kind = 'stateless' AND sender = \(SenderBinding.key(thumbprint: keyThumbprint).stored)
                AND realm = \(realm) AND NOT EXISTS (SELECT 1 FROM client_instances io
                    WHERE io.realm = \(realm) AND io.key_thumbprint = \(keyThumbprint) AND io.id <> \(id))
            """)
    }

    /// The statement that holds an instance's key until the transaction ends. A change of the key waits for that, and
    /// then sees what was done with the old key. If the change came first, this waits for it, and fails.
    static func holding(key thumbprint: String, of id: String) -> SQLStatement {
        SQLStatement(
            "UPDATE client_instances SET used_at = used_at WHERE id = \(id) AND key_thumbprint = \(thumbprint)",
            expecting: .exactly(1))
    }

    /// Deletes the instances that nobody has used for long, and the initial access tokens that have expired, also those
    /// of realms that are not in the file any more.
    ///
    /// - Throws: ``StoreError``.
    static func purge(_ context: EngineContext) async throws {
        let now = context.clock.epochSeconds
        _ = try await context.delete(from: "registration_tokens", key: "hash", where: "expires_at <= \(now)")
        while true {
            let rows = try await context.database.run(
                .read(
                    """
                    SELECT id, realm, app FROM client_instances WHERE expires_at <= \(now) LIMIT \(batch)
                    """))
            for row in rows {
                let (id, realm, app) = (try row.text("id"), try row.text("realm"), try row.text("app"))
                let record = AuditRecord(
                    .registrationEnd, .success, reason: "unused", realm: realm, detail: ["client": .string(id)])
                do {
                    try await end(
                        id, of: app, realm: realm, if: "expires_at <= \(now)", noting: record, in: context)
                } catch let error as StoreError where error.code == .unexpectedCount {
                    // It was used, or has ended, in between.
                }
            }
            guard rows.count == batch else { return }
        }
    }
}
