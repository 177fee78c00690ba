import AssentCore
import AssentStore

extension WebLinks {
    /// The most links that an app may ask for in a minute for one grant.
    static let perMinute: Int64 = 30

    /// The endpoint at which an app asks for a link that signs a browser in. It gives no token to anybody: who has the
    /// link opens a page, which asks.
    ///
    /// - Parameters:
    ///   - target: where the link leads, which the app must list byte for byte.
    ///   - access: the user's token at the app.
    ///   - configuration: that of the token's realm.
    /// - Returns: the link.
    /// - Throws: ``OAuthError``: `web_link_disabled` when the client is not of an app that has links; `invalid_target`;
    ///   `login_required` when the user's session at the app has ended, or was begun by a link itself; ``EngineError``
    ///   `tooManyRequests`; ``StoreError``.
    package func make(
        to target: String?, for access: AccessGrant, in configuration: OAuthProviderConfiguration
    ) async throws -> IssuedWebLink {
        let now = context.clock.epochSeconds
        guard let id = access.app, let app = configuration.apps[id], !app.webLinks.isEmpty else {
            throw OAuthError(.webLinkDisabled, "Apps of this kind cannot sign a browser in here.")
        }
        guard let target, WebLinkTarget.isListed(target, by: app) else {
            throw OAuthError(.invalidTarget, "The target is not one that the app may lead a browser to.")
        }
        guard let owner = access.owner else { throw OAuthError.invalidToken }
        guard
            try await AttemptCounter(context).attempt(
                "web-link:\(access.grantID)", limit: Self.perMinute, window: 60)
        else { throw EngineError(.tooManyRequests) }
        let secret = Secret(context.random.token())
        do {
            _ = try await context.database.run([
                SQLStatement(
                    """
                    INSERT INTO web_links (id, realm, grant_id, target, created_at, expires_at)
                    SELECT \(TokenHash.of(secret)), g.realm, g.id, \(target), \(now), \(now + Self.lifetime)
                    FROM \(Self.grants)
                    WHERE g.id = \(access.grantID) AND g.realm = \(configuration.realm)
                        AND s.kind = \(SessionKind.user.rawValue) AND \(Self.mayBeginSession(at: now))
                    """, expecting: .exactly(1)),
                AuditLog(context).statement(
                    AuditRecord(
                        .webLinkCreate, .success, realm: configuration.realm, userID: owner.user.id,
                        sessionAuditID: owner.sessionAuditID,
                        detail: [
                            "client": .string(access.clientID), "grant": .string(access.grantID),
                            "target": .string(target),
                        ])),
            ])
        } catch let error as StoreError where error.code == .unexpectedCount || error.code == .constraint {
            // The grant has ended, or is deleted at this moment.
            throw OAuthError(
                .loginRequired, "The user's session at the app has ended, or a link has begun it: sign in again.")
        }
        return IssuedWebLink(id: secret, expiresIn: Self.lifetime)
    }
}
