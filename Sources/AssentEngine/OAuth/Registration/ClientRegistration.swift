package import AssentCore
import AssentStore
import Logging

/// Registers installations of apps as clients (RFC 7591), and lets these look at, change and end themselves (RFC 7592).
package struct ClientRegistration: Sendable {
    private let context: EngineContext
    private let audit: AuditLog
    private let configuration: OAuthProviderConfiguration

    init(_ context: EngineContext, _ configuration: OAuthProviderConfiguration) {
        self.context = context
        self.configuration = configuration
        audit = AuditLog(context)
    }

    private var realm: String { configuration.realm }

    private var now: Int64 { context.clock.epochSeconds }

    /// An instance as it is told (RFC 7591 §3.2.1).
    package struct Registered: Sendable {
        /// Its client id.
        package let id: String
        /// What it has now, after all that its app was narrowed by.
        package let metadata: InstanceMetadata
        /// When it has registered, in seconds since 1970.
        package let createdAt: Int64
        /// Its registration token, which was just made or was presented.
        package let token: Secret
    }

    /// Counts a request of an address to register with an app.
    ///
    /// - Throws: ``EngineError`` `tooManyRequests`; ``StoreError``.
    package func countAttempt(at address: String?, _ app: OAuthApp) async throws {
        guard let address else { return }
        try await count("register:\(realm):\(app.id):\(address)", limit: app.registrationsPerAddress)
    }

    private func count(_ counter: String, limit: Int64) async throws {
        guard try await AttemptCounter(context).attempt(counter, limit: limit, window: 60) else {
            throw EngineError(.tooManyRequests, "Too many registrations. Try again in a minute.")
        }
    }

    /// Registers an instance.
    ///
    /// - Parameters:
    ///   - metadata: what it wants. The caller has verified a proof of its key.
    ///   - app: its app.
    ///   - token: the initial access token of the request.
    ///   - isSealed: whether the request has come sealed.
    ///   - claim: spends the proof. It is asked when everything else is known to be right.
    /// - Returns: the instance, with its registration token.
    /// - Throws: ``OAuthError`` `invalid_token`; `access_denied` when the app has all its instances;
    ///   `invalid_client_metadata` when the key is registered at another app; ``EngineError`` `tooManyRequests`;
    ///   ``StoreError``; what `claim` throws.
    package func register(
        _ metadata: InstanceMetadata, of app: OAuthApp, token: Secret?, isSealed: Bool = false,
        claimingProof claim: @Sendable () async throws -> Void
    ) async throws -> Registered {
        try app.admit(metadata, isSealed: isSealed)
        if let refusal = app.versions.registrationRefusal(of: metadata.version) { throw refusal }
        let use = try await admission(to: app, token)
        // Counted here, and by the token where there is one, so that somebody who has nothing or little to show does
        // not keep others from registering.
        let whose = token.map { ":" + TokenHash.of($0) } ?? ""
        try await count("register:\(realm):\(app.id)\(whose)", limit: app.registrationsPerMinute)
        try await claim()
        let id = "\(app.id)\(OAuthApp.separator)\(context.random.token(byteCount: OAuthApp.randomBytes))"
        let own = Secret(context.random.token())
        let record = record(.registrationCreate, .success, ["client": .string(id)])
        let statements: [GuardedStatement<Obstacle>] = [
            // Sessions before the app's number of instances, as where one ends, so that neither waits for the other.
            .also(ClientInstance.endingLeftovers(of: metadata.keyThumbprint, before: id, realm: realm)),
            .one(
                """
                INSERT INTO registered_apps (realm, app, instances) VALUES (\(realm), \(app.id), 1)
                ON CONFLICT (realm, app) DO UPDATE SET instances = registered_apps.instances + 1
                WHERE registered_apps.instances < \(app.maximumInstances) RETURNING instances
                """, else: .instances),
            .one(
                """
                INSERT INTO client_instances (id, realm, app, key_thumbprint, metadata, token_hash, created_at, used_at,
                    expires_at, app_version, app_platform)
                SELECT \(id), \(realm), \(app.id), \(metadata.keyThumbprint), \(Self.stored(metadata)),
                    \(TokenHash.of(own)), \(now), \(now), \(InstanceUse.firstEnd(at: now, days: app.days)),
                    \(metadata.version), \(metadata.platform)
                WHERE \(ClientInstance.isFree(metadata.keyThumbprint, for: app.id, in: realm))
                """, else: .key),
            .also(audit.statement(record)),
        ]
        switch try await context.database.attempt([use].compactMap(\.self) + statements) {
        case .refused(.token): throw try await refusedToken(app)
        case .refused(.instances): throw OAuthError(.accessDenied, "The app has as many instances as it may have.")
        case .refused(.key): throw Self.keyOfAnotherApp
        case .done: return Registered(id: id, metadata: metadata.narrowed(to: app), createdAt: now, token: own)
        }
    }

    /// Why an instance is not registered after all.
    private enum Obstacle {
        /// The initial access token has been used up, or has expired.
        case token
        /// The app has all its instances.
        case instances
        /// Another app has the key.
        case key
    }

    /// The statement that uses an initial access token; `nil` for an app that demands none.
    private func admission(to app: OAuthApp, _ token: Secret?) async throws -> GuardedStatement<Obstacle>? {
        switch (app.admission, token) {
        case (.statement, nil), (.open, nil): return nil
        case (.token, nil): throw OAuthError.missingToken
        case (.statement, _?), (.open, _?): throw try await refusedToken(app)
        case (.token, let token?):
            let isValid: SQL = """
                hash = \(TokenHash.of(token)) AND realm = \(realm) AND app = \(app.id) AND uses_left > 0
                    AND expires_at > \(now)
                """
            let known = try await context.database.run(
                .read("SELECT uses_left FROM registration_tokens WHERE \(isValid)"))
            guard !known.isEmpty else { throw try await refusedToken(app) }
            return .one("UPDATE registration_tokens SET uses_left = uses_left - 1 WHERE \(isValid)", else: .token)
        }
    }

    private func refusedToken(_ app: OAuthApp) async throws -> OAuthError {
        try await audit.write(
            record(.registrationCreate, .refused, reason: "token", ["app": .string(app.id)]))
        return .invalidToken
    }

    /// Notes that a software statement was refused.
    ///
    /// - Throws: ``StoreError``.
    package func noteRefusedStatement(for app: OAuthApp) async throws {
        try await audit.write(
            record(.registrationCreate, .refused, reason: "statement", ["app": .string(app.id)]))
    }

    private func record(
        _ event: AuditEvent, _ outcome: AuditRecord.Outcome, reason: String? = nil, _ detail: JSONObject
    ) -> AuditRecord {
        AuditRecord(event, outcome, reason: reason, realm: realm, detail: detail)
    }

    /// What a key stands for would else depend on who asks.
    private static var keyOfAnotherApp: OAuthError {
        .clientMetadata("The key is registered at another app. Make one for each app.")
    }

    private static func stored(_ metadata: InstanceMetadata) -> String {
        JSONValue.object(JSONObject(metadata.members)).serialized()
    }
}

// MARK: - What an instance does itself (RFC 7592)

extension ClientRegistration {
    /// The instance of a client id, to somebody who has its registration token. Its key is yet to be proved.
    ///
    /// - Throws: ``OAuthError`` `invalid_token` also when the instance does not exist, `temporarily_unavailable` when
    ///   its app is not in the file; ``StoreError``.
    package func instance(_ id: String, token: Secret) async throws -> (ClientInstance, OAuthApp) {
        if let app = OAuthApp.id(ofInstance: id), configuration.apps[app] == nil {
            // By a mistake in one node's file nobody may believe that they have been ended.
            throw OAuthError(.temporarilyUnavailable, "This server does not know the app.")
        }
        guard let (instance, app) = try await ClientInstance.find(id, in: configuration, context),
            ConstantTime.equal(instance.tokenHash, TokenHash.of(token))
        else { throw OAuthError.invalidToken }
        return (instance, app)
    }

    /// What an instance has now. It hears the token that it has presented, as RFC 7592 §3 asks.
    package func told(_ instance: ClientInstance, of app: OAuthApp, token: Secret) -> Registered {
        Registered(
            id: instance.id, metadata: instance.metadata.narrowed(to: app), createdAt: instance.createdAt, token: token)
    }

    /// Replaces what an instance has registered. The caller has verified a proof of its key and, where that changes, of
    /// the new one. Another key ends the sessions of payload encryption that the old one has made, and the users'
    /// sessions that its end would end: the old key is then anybody's to register, and may have been stolen.
    ///
    /// - Throws: ``OAuthError``: `invalid_token` when it has ended, or has another key since; `invalid_client_metadata`
    ///   when the new key is registered at another app. ``StoreError``.
    package func change(
        _ instance: ClientInstance, of app: OAuthApp, to metadata: InstanceMetadata, token: Secret
    ) async throws -> Registered {
        var detail: JSONObject = ["client": .string(instance.id)]
        let isNewKey = metadata.keyThumbprint != instance.metadata.keyThumbprint
        let isFree: SQL = isNewKey ? ClientInstance.isFree(metadata.keyThumbprint, for: app.id, in: realm) : "1 = 1"
        if isNewKey { detail["newKey"] = true }
        // The instance first, as where it ends, so that the two cannot wait for each other.
        var statements = [
            SQLStatement(
                """
                UPDATE client_instances
                SET metadata = \(Self.stored(metadata)), key_thumbprint = \(metadata.keyThumbprint),
                    app_version = \(metadata.version), app_platform = \(metadata.platform)
                WHERE id = \(instance.id) AND key_thumbprint = \(instance.metadata.keyThumbprint) AND \(isFree)
                """, expecting: .exactly(1)),
            audit.statement(record(.registrationUpdate, .success, detail)),
        ]
        // Also one that was begun meanwhile, by a login that the change has waited for.
        if isNewKey {
            statements.append(ClientInstance.endingSessions(of: instance.id, key: instance.metadata.keyThumbprint))
            statements.append(
                ClientInstance.endingLeftovers(of: metadata.keyThumbprint, before: instance.id, realm: realm))
        }
        // One process without a shared database has them in memory alone.
        if isNewKey, context.database.isShared { statements.append(StoredPayloadSession.ending(client: instance.id)) }
        do {
            _ = try await context.database.run(statements)
        } catch let error as StoreError where error.code == .unexpectedCount {
            let isTaken = try await context.database.run(.read("SELECT 1 AS n WHERE NOT (\(isFree))")).first != nil
            throw isTaken ? Self.keyOfAnotherApp : OAuthError.invalidToken
        }
        if isNewKey { context.ended.tell(instance.id, newKey: metadata.keyThumbprint) }
        return Registered(
            id: instance.id, metadata: metadata.narrowed(to: app), createdAt: instance.createdAt, token: token)
    }

    /// Ends an instance, as its owner asks.
    ///
    /// - Throws: ``OAuthError`` `invalid_token` when it has ended, or has another key since; ``StoreError``.
    package func end(_ instance: ClientInstance, of app: OAuthApp) async throws {
        let record = record(.registrationEnd, .success, reason: "own", ["client": .string(instance.id)])
        do {
            try await ClientInstance.end(
                instance.id, of: app.id, realm: realm,
                if: "key_thumbprint = \(instance.metadata.keyThumbprint)", noting: record, in: context)
        } catch let error as StoreError where error.code == .unexpectedCount {
            throw OAuthError.invalidToken
        }
    }
}
