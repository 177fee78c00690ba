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
        /// The one that was used last comes last.
        private var all: [(user: String, sign: LoginSigner)] = []

        /// Keeps a signer, in the place of the one that was not used for the longest time when there are too many.
        mutating func keep(_ sign: @escaping LoginSigner, for user: String) {
            all.removeAll { $0.user == user }
            if all.count >= ImplicitTokens.users { all.removeFirst() }
            all.append((user, sign))
        }

        /// Who signs for a user; it is used now.
        mutating func use(_ user: String?) -> LoginSigner? {
            guard let index = all.firstIndex(where: { $0.user == user }) else { return nil }
            let signer = all.remove(at: index)
            all.append(signer)
            return signer.sign
        }
    }

    /// Calls of a remembered user.
    public var kind: CallKind { .implicit }

    init(_ configuration: TokenConfiguration, provider: ProviderClient, clock: any WallClock) {
        let signers = Locked(Signers())
        self.signers = signers
        tokens = MemoryTokens(
            configuration, provider: provider, missing: MemoryTokenLife.notImplicit, clock: clock
        ) { ask in
            guard let sign = signers.withLock({ $0.use(ask.user) }) else { throw MemoryTokenLife.notImplicit }
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
        signers.withLock { $0.keep(sign, for: user) }
        try await tokens.authenticate(scopes: Set(scopes), user: user)
    }

    /// How many users' signers are kept at once.
    private static let users = 8

    /// The token of `authenticate(user:scopes:sign:)`, renewed when it is about to expire or was refused.
    ///
    /// - Throws: ``TokenError``: `implicitUserMissing` when nobody was authenticated, or the registration has ended;
    ///   `sessionChanged` when another user was authenticated meanwhile.
    public func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        try await tokens.token(rejecting: rejected)
    }

    /// Forgets the token, as when the user's container has ended here.
    package func end() { tokens.end() }
}
