import AssentCore
import AssentJOSE
package import AssentSigningProtocol
import AssentStore

/// Tells installations of a realm's apps what they may do, signed (docs/device-configuration.md).
///
/// All nodes share one number for each app, which grows when a node starts with another content: a client that has seen
/// the newer one keeps it, whichever node it asks while the change is rolled out.
package final class DeviceConfigurations: Sendable {
    /// A question, as it has come.
    package struct Question: Sendable {
        let app: String
        let version: String
        let platform: String

        /// A question about a version of an app, on a platform.
        ///
        /// - Throws: ``OAuthError`` `invalid_request` for texts that nothing is called.
        package init(app: String, version: String, platform: String) throws(OAuthError) {
            guard AudiencePart.isValid(app), AudiencePart.isValid(platform), AppVersions.isName(version) else {
                throw .invalidRequest(
                    "app and platform have 1 to 64 letters, digits and . _ -, version 1 to 64 visible ASCII characters."
                )
            }
            (self.app, self.version, self.platform) = (app, version, platform)
        }
    }

    /// What an installation is told.
    package struct Answer: Sendable {
        /// The value of `ETag`, the same as long as nothing but the time has changed.
        package let tag: String
        /// The compact JWS; `nil` when the client has what it says.
        package let document: String?
    }

    private let context: EngineContext
    private let realm: String
    private let apps: [String: OAuthApp]
    private let settings: DeviceConfigurationSettings
    private let pin: PasswordRules?
    private let kid: String
    /// The version of each app.
    private let versions = Locked<[String: Int]>([:])

    /// What a realm tells its apps.
    ///
    /// - Parameters:
    ///   - context: the database and the clock.
    ///   - realm: the realm.
    ///   - apps: its apps, by id.
    ///   - settings: the key and the environment.
    ///   - pin: what a new PIN must be like that signs users in; `nil` where none does.
    /// - Throws: ``EngineError`` for a key that is not one on P-256.
    package init(
        _ context: EngineContext, realm: String, apps: [String: OAuthApp], settings: DeviceConfigurationSettings,
        pin: PasswordRules? = nil
    ) throws {
        (self.context, self.realm, self.apps, self.settings, self.pin) = (context, realm, apps, settings, pin)
        guard let key = try? ProtocolKey(settings.key) else {
            throw EngineError.internalFailure("the key of device configurations is not one on P-256")
        }
        kid = key.thumbprint.text
    }

    /// Takes the number of each app, or the next one where the content is another than the one that was served last.
    /// Due once, before the first question.
    ///
    /// - Throws: ``StoreError``.
    package func begin() async throws {
        let names = apps.keys.sorted()
        var statements: [SQLStatement] = []
        for name in names {
            guard let app = apps[name] else { continue }
            let digest = Self.digest(of: app, settings, pin: pin)
            statements.append(taking(name, digest: digest, at: context.clock.epochSeconds))
        }
        guard !statements.isEmpty else { return }
        let rows = try await context.database.run(statements)
        var taken: [String: Int] = [:]
        for (name, found) in zip(names, rows) {
            guard let version = try found.first?.integer("version") else {
                throw StoreError(.corrupt, "a device configuration has no version")
            }
            taken[name] = Int(version)
        }
        let result = taken
        versions.withLock { $0 = result }
    }

    /// The statement that takes a number. It is a time, so that a restored backup gives none twice; and it grows by
    /// one at least, whatever the clock says.
    private func taking(_ app: String, digest: String, at now: Int64) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO device_configs (realm, app, version, digest)
            VALUES (\(realm), \(app), \(max(1, now)), \(digest))
            ON CONFLICT (realm, app) DO UPDATE SET
                version = CASE
                    WHEN device_configs.digest = excluded.digest THEN device_configs.version
                    WHEN device_configs.version < excluded.version THEN excluded.version
                    ELSE device_configs.version + 1 END,
                digest = excluded.digest
            RETURNING version
            """)
    }

    /// The answer to a question.
    ///
    /// - Parameters:
    ///   - question: the question.
    ///   - known: the values of `If-None-Match`.
    /// - Returns: the answer; `nil` for an app that there is not.
    /// - Throws: ``EngineError`` before ``begin()``, and when signing fails.
    package func answer(_ question: Question, known: [String]) async throws -> Answer? {
        guard let app = apps[question.app] else { return nil }
        guard let version = versions.withLock({ $0[question.app] }) else { throw EngineError.unavailable }
        let timeless = content(of: app, question, version: version, at: 0)
        let hash = SHA2.sha256(timeless.encoded())
        let tag = "\"\(Base64URL.encode(hash.prefix(16)))\""
        guard !known.contains(tag), !known.contains("W/" + tag) else { return Answer(tag: tag, document: nil) }
        let now = Int(context.clock.epochSeconds)
        let header: JSONObject = [
            "typ": .string(DeviceConfigurationContent.type), "kid": .string(kid),
        ]
        let document = try await JWS.sign(
            content(of: app, question, version: version, at: now).encoded(), header: header, with: settings.key)
        return Answer(tag: tag, document: document)
    }

    private func content(
        of app: OAuthApp, _ question: Question, version: Int, at now: Int
    ) -> DeviceConfigurationContent {
        DeviceConfigurationContent(
            audience: "\(app.id)/\(question.platform)/\(settings.environment)", appVersion: question.version,
            version: version, issuedAt: now, expires: now + DeviceConfigurationContent.lifetime,
            status: app.versions.status(of: question.version).served,
            minimumVersion: app.minimumVersion,
            payloadEncryption: app.versions.sealing(of: question.version) == .off ? .off : .on,
            implicit: app.implicitScopes != nil, stateless: app.allowsStateless, webLinks: app.webLinks, pin: pin)
    }

    /// The hash of all that any version of an app is told, with the parameters of
    /// ``init(_:realm:apps:settings:pin:)``.
    package static func digest(
        of app: OAuthApp, _ settings: DeviceConfigurationSettings, pin: PasswordRules?
    ) -> String {
        let versions = app.versions
        let named = versions.named.keys.sorted().map { name in
            JSONValue.array([
                .string(name), .string(versions.status(of: name).rawValue),
                .string(versions.sealing(of: name).rawValue),
            ])
        }
        let told: JSONValue = [
            1, .string(settings.environment), .array(named), .string(versions.others.rawValue),
            .string(versions.othersSealing.rawValue), .string(app.minimumVersion?.text ?? ""),
            .bool(app.implicitScopes != nil), .bool(app.allowsStateless), .array(app.webLinks.map(JSONValue.string)),
            pin?.json ?? .null,
        ]
        return Base64URL.encode(SHA2.sha256(told.serializedBytes()))
    }
}

extension AppVersions.Status {
    /// The word in a device configuration.
    fileprivate var served: ServedStatus {
        switch self {
        case .enabled: .enabled
        case .loginOnly: .loginOnly
        case .disabled: .disabled
        }
    }
}
