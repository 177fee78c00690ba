import AssentCore
import AssentJourney
import AssentTokens

/// Whose calls the user's are: those of the user whose session and tokens are stored, or of the one who is signed in
/// in memory, after a login with a PIN or a sign-in that leaves nothing behind.
final class CurrentUser: AccessTokenSource, SessionProver {
    private let stored: TokenManager
    private let storedProofs: SessionProofs
    private let login = Locked<MemoryLogin?>(nil)
    private let isLoggingIn = Locked(false)

    init(stored: TokenManager, proofs: SessionProofs) {
        self.stored = stored
        storedProofs = proofs
    }

    /// Session and tokens of the current user.
    var tokens: TokenManager { login.withLock { $0?.tokens } ?? stored }

    /// Who is signed in in memory; `nil` when nobody is.
    var inMemory: MemoryLogin? { login.withLock { $0 } }

    /// Takes a login over, or ends what was taken over before.
    ///
    /// - Returns: the one before.
    @discardableResult
    func take(_ new: MemoryLogin?) -> MemoryLogin? {
        login.withLock { login in
            defer { login = new }
            return login
        }
    }

    /// Whether nobody else is logging in; then the caller is, until ``endLogin()``.
    func beginLogin() -> Bool {
        isLoggingIn.withLock { isBusy in
            defer { isBusy = true }
            return !isBusy
        }
    }

    func endLogin() { isLoggingIn.withLock { $0 = false } }

    /// A link that signs the user's browser in. The probes are asked before anything else.
    func link(to target: String, _ admission: DeviceAdmission?, _ integrity: IntegrityGuard) async throws -> WebLink {
        try integrity.examine()
        try await admission?.admitLink(to: target)
        return try await BrowserLinks(tokens).make(to: target)
    }

    var kind: CallKind { .user }

    var user: TokenManager? { tokens }

    func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        try await tokens.token(rejecting: rejected)
    }

    func send(
        _ call: HTTPCall, for purpose: ProofPurpose, over transport: any HTTPTransport
    ) async throws -> HTTPReply {
        if let inMemory, let session = purpose.session, let own = try? await inMemory.tokens.session(),
            own.token == session.token
        {
            return try await inMemory.proofs.send(call, for: purpose, over: transport)
        }
        return try await storedProofs.send(call, for: purpose, over: transport)
    }
}

extension JourneyClient {
    /// The same client, whose calls are proved by this.
    func proving(_ prover: any SessionProver) -> JourneyClient {
        var client = self
        client.prover = prover
        return client
    }
}
