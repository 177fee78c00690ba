import AssentCore

/// Tokens that nobody will use: those of another sign-in, or those that came when nobody wanted them any more. They are
/// revoked as far as possible.
final class OrphanedTokens: Sendable {
    private let provider: ProviderClient
    private let noted = Locked<[TokenSet]>([])

    init(_ provider: ProviderClient) {
        self.provider = provider
    }

    /// Revokes these.
    func revoke(_ tokens: TokenSet) async {
        await provider.discard(refreshToken: tokens.refreshToken, accessToken: tokens.accessToken)
    }

    /// Notes tokens that are to be revoked when the renewal has ended that has found them.
    func add(_ tokens: TokenSet) { noted.withLock { $0.append(tokens) } }

    /// Revokes those that are noted. One of several callers does it, and the others do not wait.
    func revokeNoted() async {
        let tokens = noted.withLock { noted in
            defer { noted = [] }
            return noted
        }
        for orphan in tokens { await revoke(orphan) }
    }
}
