public import AssentCore

/// The access token of a remembered user who has typed nothing: the device key of the user's container signs for it. It
/// is bound to the installation's key, and in memory alone.
///
/// However many tasks want it at once, one login is sent. It is renewed before it expires, and once when a resource has
/// refused it. There is one remembered user at a time, and the token ends with the registration.
public final class ImplicitTokens: AccessTokenSource {
    private let tokens: MemoryTokens
    private let signers: Locked<Signers>

    /// Who signs for a user: two may want to be the one user at once, and the last one stays.
    private struct Signers {
        var all: [String: LoginSigner] = [:]
    }

    /// Calls of a remembered user.
    public var kind: CallKind { .implicit }

    init(_ configuration: TokenConfiguration, provider: ProviderClient, clock: any WallClock) {
        let signers = Locked(Signers())
        self.signers = signers
        tokens = MemoryTokens(
            configuration, provider: provider, missing: MemoryTokenLife.notImplicit, clock: clock
        ) { ask in
            guard let sign = signers.withLock({ $0.all[ask.user ?? ""] }) else { throw MemoryTokenLife.notImplicit }
            return try await provider.implicitLogin(ask, sign: sign)
        }
    }

    /// Authenticates a remembered user for these scopes, unless that is done already.
    ///
    /// - Parameters:
    ///   - user: the user's id.
    ///   - scopes: what the app's implicit logins may have.
    ///   - sign: signs by the device key of the user's container.
    /// - Throws: ``TokenError``: `scopeRefused`, `notRegistered`, `tokenRefused` with ``TokenError/loginRefusal``,
    ///   `transport`; what `sign` throws; `CancellationError`.
    package func authenticate(user: String, scopes: [String], sign: @escaping LoginSigner) async throws {
        signers.withLock { signers in
            if signers.all.count >= Self.users { signers.all = [:] }
            signers.all[user] = sign
        }
        try await tokens.authenticate(scopes: Set(scopes), user: user)
    }

    /// How many users' signers are kept at once.
    private static let users = 8

    /// The token of ``authenticate(user:scopes:sign:)``, renewed when it is about to expire or was refused.
    ///
    /// - Throws: ``TokenError``: `implicitUserMissing` when nobody was authenticated, or the registration has ended.
    public func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        try await tokens.token(rejecting: rejected)
    }

    /// Forgets the token, as when the user's container has ended here.
    package func end() { tokens.end() }
}
