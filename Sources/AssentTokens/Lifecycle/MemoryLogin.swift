package import AssentCore
import AssentVault
import Foundation

/// A user who is signed in as long as this process lives: one who is remembered and has typed a PIN, or one of whom
/// nothing is to be left.
package struct MemoryLogin: Sendable {
    /// Session and tokens, in memory alone.
    package let tokens: TokenManager

    /// Proves the key that the session belongs to.
    package let proofs: SessionProofs

    /// The id of a remembered user; `nil` for somebody of whom nothing is to be left.
    package var user: String?

    private init(tokens: TokenManager, proofs: SessionProofs) {
        self.tokens = tokens
        self.proofs = proofs
    }
}

extension MemoryLogin {
    /// Signs a remembered user in by what the user's container signs. Session and tokens belong to the installation's
    /// key and are kept in memory; those of `manager` stay as they are. They are not renewed: the user types the PIN
    /// again.
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
        let provider = manager.provider
        let login = try await provider.login(scopes: scopes, sign: sign)
        guard let token = login.session else {
            await provider.discard(refreshToken: nil, accessToken: login.tokens.accessToken)
            throw TokenError(.malformedReply, "The token endpoint gave no session to a login with a PIN.")
        }
        try await self.init(
            beside: manager, over: provider.exchange.transport, scopes: scopes, renews: false, ending: ending)
        var session = Session(token: token, keyThumbprint: login.key.binding.thumbprint)
        session.keyName = login.key.binding.name
        try await tokens.storage.save(session)
        _ = try await tokens.storage.save(login.tokens, since: nil)
    }

    /// A sign-in that leaves nothing behind, before its journey: the session is taken over when that has ended. It
    /// belongs to the installation's key, and gives tokens as long as it lives.
    ///
    /// - Parameters:
    ///   - manager: the installation's.
    ///   - transport: carries requests, and keeps nothing of them.
    ///   - scopes: what access is asked for.
    ///   - ending: ends the session when the user signs out.
    /// - Throws: ``TokenError``: `notRegistered`.
    package init(
        statelessBeside manager: TokenManager, over transport: any HTTPTransport, scopes: [String],
        ending: (SessionProofs) -> any SessionEnding
    ) async throws {
        try await self.init(beside: manager, over: transport, scopes: scopes, renews: true, ending: ending)
    }

    private init(
        beside manager: TokenManager, over transport: any HTTPTransport, scopes: [String], renews: Bool,
        ending: (SessionProofs) -> any SessionEnding
    ) async throws {
        let (provider, configuration, clock) = (manager.provider, manager.configuration, manager.clock)
        let identity = try await provider.client.knownIdentity()
        guard let place = identity.key else { throw TokenError(.notRegistered, "This installation has no key.") }
        var settings = try TokenConfiguration(
            issuer: configuration.issuer, clientID: identity.id, redirectURI: configuration.redirectURI,
            scopes: scopes, sessionCookieName: configuration.sessionCookieName)
        (settings.limits, settings.leeway) = (configuration.limits, configuration.leeway)
        settings.patience = configuration.patience
        settings.clientAuthentication = .privateKeyJWT(keys: place.provider, named: place.name)
        settings.renews = renews
        settings.dpop = .kept(keys: InstallationKeys())
        let proofs = SessionProofs(
            settings, store: MemorySecretStore(clock: clock), clock: clock, random: manager.random)
        proofs.proofs.keys.attach(provider.registration, place.provider, isOthers: true)
        let tokens = TokenManager(
            configuration: settings, transport: transport, proving: proofs, sessions: ending(proofs), clock: clock,
            random: manager.random, logger: manager.logger)
        // Its journeys prove this key, and a step-up may give another session, which belongs to the same one.
        _ = try await tokens.storage.keyName(random: manager.random)
        self.init(tokens: tokens, proofs: proofs)
    }
}
