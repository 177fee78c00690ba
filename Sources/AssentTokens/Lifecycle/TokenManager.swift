public import AssentCore
public import AssentJOSE
import Foundation
public import Logging

/// The user's session and tokens: keeps them sealed, renews them when they end, and gives them to nobody else.
///
/// ```swift
/// let tokens = TokenManager(
///     configuration: try TokenConfiguration(
///         issuer: "https://am.bank.example/am/oauth2/realms/root/realms/alpha", clientID: "bank-app",
///         redirectURI: "https://bank.example/app/callback"),
///     transport: transport, store: vault)
/// try await tokens.install(session)
/// let accessToken = try await tokens.tokens().accessToken
/// ```
///
/// However many tasks and processes want a token at once, one of them renews it. A failure that may pass never removes
/// anything. A renewed token is stored before anybody sees it. `docs/token-life-cycle.md` says what happens in each
/// case.
public actor TokenManager {
    /// The authorization server and this client's registration there.
    public nonisolated let configuration: TokenConfiguration

    /// The installation's own token, which speaks for no user.
    public nonisolated let device: DeviceTokens

    /// A remembered user's token, for which nobody typed anything.
    public nonisolated let implicit: ImplicitTokens

    let provider: ProviderClient
    let orphans: OrphanedTokens
    let storage: TokenStorage
    let proofs: ProofMaker
    let clock: any WallClock
    let random: any RandomSource
    let logger: Logger
    let sessions: (any SessionEnding)?
    let pending: PendingSignOuts
    /// What the store said a moment ago. Behind a lock: before every request somebody asks for it, and need not wait
    /// for a turn of the actor.
    private nonisolated let memory = Locked(Memory())
    private var changes: UInt64 = 0
    /// What the server gave and the store has not taken yet.
    var unsaved: (tokens: TokenSet, since: UInt64?)?
    nonisolated let renewals: SignInRenewals

    /// Tokens that need no second look, and for how long.
    private struct Recent {
        /// Seconds that what was read from the store is believed: so long another process's sign-in may go unnoticed.
        static let lifetime: TimeInterval = 1

        let tokens: TokenSet
        let since: Date
        let until: Date
    }

    private struct Memory {
        var contents: TokenStorage.Contents?
        var readAt = Date.distantPast
        var recent: Recent?

        func contents(at now: Date) -> TokenStorage.Contents? {
            (0..<Recent.lifetime).contains(now.timeIntervalSince(readAt)) ? contents : nil
        }

        func tokens(at now: Date) -> TokenSet? {
            guard let recent, now < recent.until, now >= recent.since else { return nil }
            return recent.tokens
        }
    }

    /// A manager.
    ///
    /// - Parameters:
    ///   - configuration: the authorization server and this client's registration there.
    ///   - transport: carries requests.
    ///   - store: keeps session and tokens; several processes may share it.
    ///   - sessions: ends AM's session when the user signs out; `nil` leaves that to the caller.
    ///   - clock: where the time comes from.
    ///   - random: where PKCE verifiers, `state`, nonces and the names of proofs come from.
    ///   - logger: is told what happens, never a secret.
    public init(
        configuration: TokenConfiguration, transport: any HTTPTransport, store: any SecretStore,
        sessions: (any SessionEnding)? = nil, clock: any WallClock = SystemClock(),
        random: any RandomSource = SystemRandom(),
        logger: Logger = Logger(label: "assent.tokens")
    ) {
        self.init(
            configuration: configuration, transport: transport,
            proving: SessionProofs(configuration, store: store, clock: clock, random: random), sessions: sessions,
            clock: clock, random: random, logger: logger)
    }

    /// A manager whose sessions' keys are proved in journeys, too.
    ///
    /// - Parameters:
    ///   - configuration: the authorization server and this client's registration there.
    ///   - transport: carries requests.
    ///   - sessionProofs: knows the store and the key; it was made with the same configuration.
    ///   - sessions: ends AM's session when the user signs out; `nil` leaves that to the caller.
    ///   - clock: where the time comes from.
    ///   - random: where PKCE verifiers, `state`, nonces and the names of proofs come from.
    ///   - logger: is told what happens, never a secret.
    package init(
        configuration: TokenConfiguration, transport: any HTTPTransport, proving sessionProofs: SessionProofs,
        sessions: (any SessionEnding)?, clock: any WallClock, random: any RandomSource,
        logger: Logger = Logger(label: "assent.tokens")
    ) {
        self.configuration = configuration
        self.clock = clock
        self.random = random
        self.logger = logger
        storage = sessionProofs.storage
        renewals = SignInRenewals(storage)
        proofs = sessionProofs.proofs
        provider = ProviderClient(
            configuration, transport: transport, storage: storage, proofs: proofs, clock: clock, random: random,
            logger: logger)
        orphans = OrphanedTokens(provider)
        sessionProofs.proofs.keys.attach(provider.registration, configuration.registration?.keys, isOthers: false)
        device = DeviceTokens(configuration, provider: provider, clock: clock)
        implicit = ImplicitTokens(configuration, provider: provider, clock: clock)
        self.sessions = sessions
        pending = PendingSignOuts(store: storage.store, name: storage.pendingSignOuts, keys: proofs.keys)
    }

    /// This installation's registration; `nil` when the configuration asks for none.
    public nonisolated var registration: AppRegistration? { provider.registration }

    /// The stored session, or `nil` when nobody is signed in.
    ///
    /// - Throws: ``TokenError`` with code `storageFailed`.
    public nonisolated func session() async throws -> Session? {
        let now = clock.now
        if let known = memory.withLock({ $0.contents(at: now) }) { return known.session }
        return try await contents().session
    }

    /// Removes a session that a resource has refused if the server says that it has ended. A newer session stays.
    ///
    /// - Parameter refused: the session.
    /// - Returns: whether it has ended.
    /// - Throws: ``TokenError`` with code `storageFailed` or `busy`.
    func removeIfEnded(_ refused: Session) async throws -> Bool {
        guard await sessions?.isAccepted(refused) == false else { return false }
        try await exclusively {
            let contents = try await storage.load()
            guard contents.session?.token == refused.token else { return }
            if try await storage.removeSession(since: contents.sessionVersion) {
                logger.info("the session was removed", metadata: ["reason": "the server says that it has ended"])
            }
        }
        return true
    }

    /// The stored tokens as they are, good or not.
    ///
    /// - Throws: ``TokenError`` with code `storageFailed`.
    public func storedTokens() async throws -> TokenSet? { try await contents().tokens }

    /// What the server says of itself.
    ///
    /// - Throws: ``TokenError`` as ``ProviderMetadata/init(_:issuer:)``, and `transport`.
    public func metadata() async throws -> ProviderMetadata { try await provider.metadata() }

    /// Takes over the session of a new sign-in. Tokens of another session are removed, and revoked as far as possible.
    /// Cancelling the task does not stop it.
    ///
    /// - Throws: ``TokenError`` with code `storageFailed` or `busy`, and `signInNeeded` or `keyUnavailable` when the
    ///   session belongs to a key that is not there; then the old session is still there.
    public func install(_ session: Session) async throws {
        _ = try await install(session, isSignIn: true) { _ in true }
    }

    /// Does so if the stored session is the expected one; returns whether that was so. With `isSignIn`, another session
    /// than the stored one may be another user's.
    func install(
        _ session: Session, isSignIn: Bool = false, where isExpected: @escaping @Sendable (Session?) -> Bool
    ) async throws -> Bool {
        // Also where the caller is cancelled: the server may have ended the session before for this one.
        let (isTaken, old) = try await Task { () async throws -> (Bool, TokenSet?) in
            var isMarked = false
            // Not after the revocation below, which may take long: calls that begin meanwhile are the new user's.
            defer { if isMarked { storage.markSignIn() } }
            return try await exclusively { () async throws -> (Bool, TokenSet?) in
                let contents = try await storage.load()
                guard isExpected(contents.session) else { return (false, nil) }
                var session = session
                // Somebody may have signed out meanwhile, and so removed the key.
                session.keyName = try await proofs.keys.key(of: session, isAnew: true)?.binding.name
                if isSignIn, contents.session?.token != session.token {
                    isMarked = true
                    storage.markSignIn()
                }
                try await storage.save(session)
                guard let tokens = contents.tokens, !tokens.belongs(to: session) else { return (true, nil) }
                try await storage.removeTokens()
                return (true, tokens)
            }
        }.value
        guard isTaken else { return false }
        unsaved = nil
        if let old { await orphans.revoke(old) }
        return true
    }

    /// Good tokens: the stored ones, or renewed by refresh token or session.
    ///
    /// - Parameter rejected: an access token that a resource has just refused; it is not returned again.
    /// - Returns: tokens whose access token is good, as far as one can know.
    /// - Throws: ``TokenError`` with code `signInNeeded`, or why the renewal failed; `CancellationError`.
    public nonisolated func tokens(rejecting rejected: Secret? = nil) async throws -> TokenSet {
        let now = clock.now
        if rejected == nil, let recent = memory.withLock({ $0.tokens(at: now) }) { return recent }
        return try await readTokens(rejecting: rejected)
    }

    private func readTokens(rejecting rejected: Secret?) async throws -> TokenSet {
        var first = renewal(rejecting: rejected)
        let contents = try await contents()
        let isKeyLost = try await isKeyLost(contents)
        let step = first.loaded(
            tokens: contents.tokens, session: contents.session, isKeyLost: isKeyLost, now: clock.now)
        if case .use(let tokens) = step {
            if rejected == nil { remember(tokens) }
            return tokens
        }
        func renewed() async throws -> TokenSet {
            try await renewals.joinOrStart {
                try await self.renew(rejecting: rejected)
            } afterwards: {
                await self.orphans.revokeNoted()
            }
        }
        let tokens = try await renewed()
        guard tokens.accessToken == rejected else { return tokens }
        // Another task's renewal that did not know of the refusal, or a server that gives the same token again.
        return try await renewed()
    }

    /// New tokens, whether or not the stored ones are good.
    ///
    /// - Throws: ``TokenError`` as ``tokens(rejecting:)``; the stored tokens are then still there.
    public func refresh() async throws -> TokenSet {
        try await tokens(rejecting: try await storedTokens()?.accessToken)
    }

    /// Claims about the user from the userinfo endpoint (OpenID Connect Core §5.3); they are about the ID token's user.
    /// A token that the endpoint refuses is renewed once; a proof that it refuses is not the token's fault.
    ///
    /// - Throws: ``TokenError`` as ``tokens(rejecting:)``, and `userInfoRefused`.
    public func userInfo() async throws -> JWTClaims { try await SignInTokens(self).userInfo() }

    func renewal(rejecting rejected: Secret?) -> TokenRenewal {
        TokenRenewal(
            margin: configuration.renewBefore, leeway: configuration.leeway, rejected: rejected,
            renews: configuration.renews)
    }

    private func contents() async throws -> TokenStorage.Contents {
        let now = clock.now
        if let known = memory.withLock({ $0.contents(at: now) }) { return known }
        let before = changes
        let contents = try await storage.load()
        if before == changes {
            let readAt = clock.now
            memory.withLock { ($0.contents, $0.readAt) = (contents, readAt) }
        }
        return contents
    }

    /// Good tokens need no second look as long as what was read is believed and they are not to be renewed. Before
    /// every request somebody asks for them.
    private func remember(_ tokens: TokenSet) {
        let now = clock.now
        memory.withLock { memory in
            memory.recent = nil
            guard memory.contents?.tokens == tokens else { return }
            var end = memory.readAt.addingTimeInterval(Recent.lifetime)
            if let expiry = tokens.expiresAt { end = min(end, expiry.addingTimeInterval(-configuration.renewBefore)) }
            memory.recent = Recent(tokens: tokens, since: now, until: end)
        }
    }

    /// What was read, or is being read, may not be so any more.
    func forgetCache() {
        memory.withLock { $0 = Memory() }
        changes &+= 1
    }

    /// Runs `body` while nobody else, in any process, changes session or tokens; forgets what was read before.
    func exclusively<Result>(_ body: () async throws -> Result) async throws -> Result {
        let deadline = clock.now.addingTimeInterval(configuration.patience)
        defer { forgetCache() }
        return try await storeErrorsAsTokenErrors {
            try await storage.store.withExclusiveAccess(storage.leaseName, deadline: deadline, body)
        }
    }
}
