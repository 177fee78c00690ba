package import AssentCore
import AssentVault
import Foundation

/// A remembered user who has typed a PIN, as long as this process lives.
package struct RememberedLogin: Sendable {
    /// Session and tokens, in memory alone. They are not renewed: the user types the PIN again.
    package let tokens: TokenManager

    /// Proves the key that the session belongs to.
    package let proofs: SessionProofs

    private init(tokens: TokenManager, proofs: SessionProofs) {
        self.tokens = tokens
        self.proofs = proofs
    }
}

extension RememberedLogin {
    /// Signs a remembered user in by what the user's container signs. Session and tokens belong to the installation's
    /// key and are kept in memory; those of `manager` stay as they are.
    ///
    /// - Parameters:
    ///   - manager: the installation's.
    ///   - scopes: what access is asked for.
    ///   - sign: signs each sending, by a key that the PIN has just opened.
    ///   - ending: ends the session when the user signs out.
    /// - Throws: ``TokenError``: `notRegistered`, `scopeRefused`, `tokenRefused` with ``TokenError/loginRefusal``,
    ///   `transport`, `malformedReply`; what `sign` throws.
    package init(
        over manager: TokenManager, scopes: [String], sign: @Sendable (LoginFacts) async throws -> Secret,
        ending: (SessionProofs) -> any SessionEnding
    ) async throws {
        let (provider, configuration, clock) = (manager.provider, manager.configuration, manager.clock)
        let login = try await provider.login(scopes: scopes, sign: sign)
        guard let token = login.session else {
            await provider.discard(refreshToken: nil, accessToken: login.tokens.accessToken)
            throw TokenError(.malformedReply, "The token endpoint gave no session to a login with a PIN.")
        }
        let identity = try await provider.client.knownIdentity()
        guard let place = identity.key else { throw TokenError(.notRegistered, "This installation has no key.") }
        var settings = try TokenConfiguration(
            issuer: configuration.issuer, clientID: identity.id, redirectURI: configuration.redirectURI,
            scopes: scopes, sessionCookieName: configuration.sessionCookieName)
        (settings.limits, settings.leeway) = (configuration.limits, configuration.leeway)
        settings.patience = configuration.patience
        settings.clientAuthentication = .privateKeyJWT(keys: place.provider, named: place.name)
        settings.renews = false
        let keys = InstallationKeys()
        keys.attach(provider.registration, place.provider)
        settings.dpop = .kept(keys: keys)
        let proofs = SessionProofs(
            settings, store: MemorySecretStore(clock: clock), clock: clock, random: manager.random)
        let tokens = TokenManager(
            configuration: settings, transport: provider.exchange.transport, proving: proofs,
            sessions: ending(proofs), clock: clock, random: manager.random, logger: manager.logger)
        var session = Session(token: token, keyThumbprint: login.key.binding.thumbprint)
        session.keyName = login.key.binding.name
        // A step-up may give another session, which belongs to the same key.
        _ = try await tokens.storage.keyName(random: manager.random)
        try await tokens.storage.save(session)
        _ = try await tokens.storage.save(login.tokens, since: nil)
        self.init(tokens: tokens, proofs: proofs)
    }
}
