public import AssentCore

/// The installation's own access token, which speaks for no user (RFC 6749 §4.4): asked for with the installation's
/// key (`private_key_jwt`), bound to it (RFC 9449), and kept in memory alone.
///
/// However many tasks want a token at once, one request is sent. The token is renewed before it expires, and once when
/// a resource has refused it. It ends with the registration.
public final class DeviceTokens: AccessTokenSource {
    private let tokens: MemoryTokens

    /// Calls of the installation.
    public var kind: CallKind { .device }

    init(_ configuration: TokenConfiguration, provider: ProviderClient, clock: any WallClock) {
        tokens = MemoryTokens(
            configuration, provider: provider, missing: MemoryTokenLife.notAuthenticated, clock: clock
        ) { try await provider.clientCredentials($0) }
    }

    /// Gets a token for these scopes, unless there is one already. An installation that is to register does so first.
    ///
    /// - Parameter scopes: what access is asked for: scopes that need no user.
    /// - Throws: ``TokenError``: `scopeRefused` when the server does not grant all of them; `notRegistered` when the
    ///   server has ended the registration, and then it is forgotten; `invalidConfiguration` when this client has no
    ///   key; as ``AppRegistration/register()``; `tokenRefused`, `transport`; `CancellationError`.
    public func authenticate(scopes: [String]) async throws {
        try await tokens.authenticate(scopes: Set(scopes))
    }

    /// The token of ``authenticate(scopes:)``, renewed when it is about to expire or was refused.
    ///
    /// - Throws: ``TokenError``: `deviceNotAuthenticated` when nothing was asked for, or the registration has ended; as
    ///   ``authenticate(scopes:)``.
    public func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        try await tokens.token(rejecting: rejected)
    }
}
