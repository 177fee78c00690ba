public import AssentCore
import Foundation
public import Logging

/// The user's session and tokens: keeps them sealed, renews them when they end, and gives them to nobody else.
///
/// However many tasks and processes want a token at once, one of them renews it. A failure that may pass never removes
/// anything; only the server's `invalid_grant` removes tokens. A renewed token is stored before anybody sees it.
public actor TokenManager {
    /// The authorization server and this client's registration there.
    public nonisolated let configuration: TokenConfiguration

    private let provider: ProviderClient
    private let storage: TokenStorage
    private let clock: any WallClock
    private let random: any RandomSource
    private let logger: Logger
    private var cache: (contents: TokenStorage.Contents, at: Date)?
    private var changes: UInt64 = 0
    private var renewal: Task<TokenSet, any Error>?

    /// Seconds that what was read from the store is believed.
    private static let cacheLifetime: TimeInterval = 5

    /// A manager.
    ///
    /// - Parameters:
    ///   - configuration: the authorization server and this client's registration there.
    ///   - transport: carries requests.
    ///   - store: keeps session and tokens; several processes may share it.
    ///   - clock: where the time comes from.
    ///   - random: where PKCE verifiers, `state` and nonces come from.
    ///   - logger: is told what happens, never a secret.
    public init(
        configuration: TokenConfiguration, transport: any HTTPTransport, store: any SecretStore,
        clock: any WallClock = SystemClock(), random: any RandomSource = SystemRandom(),
        logger: Logger = Logger(label: "assent.tokens")
    ) {
        self.configuration = configuration
        self.clock = clock
        self.random = random
        self.logger = logger
        provider = ProviderClient(configuration, transport: transport, clock: clock, random: random)
        storage = TokenStorage(store, configuration)
    }

    /// The stored session, or `nil` when nobody is signed in.
    ///
    /// - Throws: ``TokenError`` with code `storageFailed`.
    public func session() async throws -> Session? { try await contents().session }

    /// The stored tokens as they are, good or not.
    ///
    /// - Throws: ``TokenError`` with code `storageFailed`.
    public func storedTokens() async throws -> TokenSet? { try await contents().tokens }

    /// What the server says of itself.
    ///
    /// - Throws: ``TokenError`` as ``ProviderMetadata/init(_:issuer:)``, and `transport`.
    public func metadata() async throws -> ProviderMetadata { try await provider.metadata() }

    /// Takes over the session of a new sign-in. Tokens of another session are removed, and revoked as far as possible.
    ///
    /// - Throws: ``TokenError`` with code `storageFailed` or `busy`; then the old session is still there.
    public func install(_ session: Session) async throws {
        let old: TokenSet? = try await exclusively {
            let contents = try await storage.load()
            try await storage.save(session)
            guard let tokens = contents.tokens, !TokenDecision.belongs(tokens, to: session) else { return nil }
            try await storage.removeTokens()
            return tokens
        }
        if let old {
            do { try await provider.revoke(old) } catch {
                logger.warning("tokens of the earlier session were not revoked", metadata: ["reason": "\(error)"])
            }
        }
    }

    /// Good tokens: the stored ones, or renewed by refresh token or session.
    ///
    /// - Parameter rejected: an access token that a resource has just refused; it is not returned again.
    /// - Returns: tokens whose access token is good, as far as one can know.
    /// - Throws: ``TokenError`` with code `signInNeeded`, or why the renewal failed; `CancellationError`.
    public func tokens(rejecting rejected: Secret? = nil) async throws -> TokenSet {
        switch decision(try await contents(), rejected: rejected) {
        case .use(let tokens): return tokens
        case .signIn(let reason): throw Self.signInNeeded(reason)
        case .refresh, .authorize: break
        }
        if let renewal { return try await renewal.value }
        let task = Task {
            defer { renewal = nil }
            return try await renew(rejected: rejected)
        }
        renewal = task
        return try await task.value
    }

    /// Claims about the user from the userinfo endpoint (OpenID Connect Core §5.3); they are about the ID token's user.
    ///
    /// - Throws: ``TokenError`` as ``tokens(rejecting:)``, and `userInfoRefused`.
    public func userInfo() async throws -> JSONObject {
        let tokens = try await tokens()
        do {
            return try await provider.userInfo(tokens)
        } catch let error as TokenError where error.code == .userInfoRefused && error.status == 401 {
            return try await provider.userInfo(try await self.tokens(rejecting: tokens.accessToken))
        }
    }

    /// Forgets session and tokens, whatever the server says, then tells the server.
    ///
    /// Tokens are revoked. The provider's session is ended by the ID token only when there is no AM session; that one is in
    /// the result and is ended through AM.
    /// - Returns: what could not be done.
    public func signOut() async -> SignOutResult {
        let lease = try? await storage.store.lease(storage.leaseName, deadline: clock.now.addingTimeInterval(20))
        let contents = (try? await storage.load()) ?? TokenStorage.Contents()
        var localFailure: TokenError?
        for remove in [{ try await self.storage.removeTokens() }, { try await self.storage.save(nil) }] {
            do { try await remove() } catch {
                localFailure = error as? TokenError ?? TokenError(.storageFailed, "\(type(of: error))")
            }
        }
        forgetCache()
        await lease?.release()
        var undone: [SignOutResult.Undone] = []
        if let tokens = contents.tokens {
            do { try await provider.revoke(tokens) } catch { undone.append(.init(.revokeTokens, "\(error)")) }
            if contents.session == nil, let idToken = tokens.idToken {
                do { try await provider.endSession(idToken) } catch {
                    undone.append(.init(.endProviderSession, "\(error)"))
                }
            }
        }
        logger.debug("signed out", metadata: ["undone": "\(undone.count)"])
        return SignOutResult(session: contents.session, undone: undone, localFailure: localFailure)
    }

    private func renew(rejected: Secret?) async throws -> TokenSet {
        try await exclusively {
            var refused = false
            for _ in 0..<3 {
                let contents = try await storage.load()
                switch decision(contents, rejected: rejected) {
                case .use(let tokens): return tokens
                case .signIn(let reason): throw Self.signInNeeded(refused ? .refreshRefused : reason)
                case .authorize(let session):
                    let tokens = try await provider.authorize(session)
                    if try await storage.save(tokens, since: contents.tokensVersion) { return tokens }
                case .refresh(let old, let refreshToken):
                    do {
                        let tokens = try await refresh(old, refreshToken)
                        if try await storage.save(tokens, since: contents.tokensVersion) {
                            try await storage.forgetAttempt()
                            return tokens
                        }
                    } catch let error as TokenError where error.oauthError == "invalid_grant" {
                        logger.info("the refresh token was refused")
                        refused = true
                        if try await storage.save(nil, since: contents.tokensVersion) {
                            try await storage.forgetAttempt()
                        }
                    } catch let error as TokenError where error.code != .invalidIDToken && error.code != .storageFailed
                    {
                        // Renewed early: what is there is still good.
                        guard old.isValid(at: clock.now), old.accessToken != rejected else { throw error }
                        return old
                    }
                }
            }
            throw TokenError(.busy, "tokens and session kept changing; try again")
        }
    }

    private func refresh(_ old: TokenSet, _ refreshToken: Secret) async throws -> TokenSet {
        var attemptID: String?
        if try await provider.metadata().knowsRefreshAttempts {
            attemptID = try await storage.attemptID(for: refreshToken, random: random)
        }
        return try await provider.refresh(old, refreshToken, attemptID: attemptID)
    }

    private func decision(_ contents: TokenStorage.Contents, rejected: Secret?) -> TokenDecision {
        TokenDecision(
            tokens: contents.tokens, session: contents.session, now: clock.now, margin: configuration.renewBefore,
            rejected: rejected)
    }

    private func contents() async throws -> TokenStorage.Contents {
        if let cache, (0..<Self.cacheLifetime).contains(clock.now.timeIntervalSince(cache.at)) {
            return cache.contents
        }
        let before = changes
        let contents = try await storage.load()
        if before == changes { cache = (contents, clock.now) }
        return contents
    }

    /// What was read, or is being read, may not be so any more.
    private func forgetCache() {
        cache = nil
        changes &+= 1
    }

    /// Runs `body` while nobody else, in any process, changes session or tokens; forgets what was read before.
    private func exclusively<Result>(_ body: () async throws -> Result) async throws -> Result {
        let deadline = clock.now.addingTimeInterval(120)
        do {
            defer { forgetCache() }
            return try await storage.store.withExclusiveAccess(storage.leaseName, deadline: deadline, body)
        } catch let error as SecretStoreError {
            throw TokenError(error: error)
        }
    }

    private static func signInNeeded(_ reason: SignInReason) -> TokenError {
        TokenError(.signInNeeded, "the user has to sign in", signInReason: reason)
    }
}
