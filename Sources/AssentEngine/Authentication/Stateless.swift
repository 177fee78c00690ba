import AssentCore
import AssentJOSE
import AssentStore

/// Sessions of the kind `stateless`: of users who sign in at an app that keeps nothing of it. They belong to the key of
/// an installation of that app and live as long as one access token.
extension Authentication {
    /// How many installations of one key are looked at. More have no use.
    private static let instanceLimit: Int64 = 16

    /// How long such a session lives that belongs to a key, in seconds.
    ///
    /// - Parameters:
    ///   - key: the key's thumbprint, which the sender has proved.
    ///   - realm: the realm.
    /// - Returns: the lifetime of the app's access tokens.
    /// - Throws: ``EngineError`` `statelessRefused` when it is not the key of an installation of an app that allows
    ///   such sessions, in a version that may be used, or is a key of several apps. ``StoreError``.
    func statelessLifetime(of key: String?, in realm: String) async throws -> Int64 {
        guard let key, let configuration = clients[realm], configuration.apps.values.contains(where: \.allowsStateless)
        else { throw EngineError(.statelessRefused) }
        let rows = try await context.database.run(
            .read(
                """
                SELECT \(ClientInstance.columns) FROM client_instances i
                WHERE realm = \(realm) AND key_thumbprint = \(key) AND \(ClientInstance.isOfOneApp)
                ORDER BY created_at DESC LIMIT \(Self.instanceLimit)
                """))
        for row in rows {
            let instance = try ClientInstance(row, known: context.instances)
            guard let app = configuration.app(ofInstance: instance.id), app.allowsStateless else { continue }
            let client = instance.client(of: app)
            guard !client.isDisabled else { continue }
            return client.accessTokenLifetime
        }
        throw EngineError(.statelessRefused)
    }
}

extension OAuthProviderConfiguration {
    /// Whether a client may get a code by a session: any client by a user's, and by one of the kind `stateless` the
    /// installation alone to whose key it belongs.
    func admits(_ session: LiveSession, to client: OAuthClient) -> Bool {
        if Door.renewal.admits(session) { return true }
        guard Door.ownCode.admits(session), app(ofInstance: client.id)?.allowsStateless == true,
            let key = session.sender?.keyThumbprint, case .keyed(let keys) = client.kind,
            case .listed(let listed) = keys.source
        else { return false }
        return listed.keys.contains { ConstantTime.equal($0.thumbprint, key) }
    }
}
