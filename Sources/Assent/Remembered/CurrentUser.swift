import AssentCore
import AssentJourney
import AssentTokens

/// Whose calls the user's are: those of the user whose session and tokens are stored, or, after a login with a PIN, of
/// the one who is signed in in memory.
final class CurrentUser: AccessTokenSource, SessionProver {
    private let stored: TokenManager
    private let storedProofs: SessionProofs
    private let login = Locked<RememberedLogin?>(nil)
    private let isLoggingIn = Locked(false)

    init(stored: TokenManager, proofs: SessionProofs) {
        self.stored = stored
        storedProofs = proofs
    }

    /// Session and tokens of the current user.
    var tokens: TokenManager { login.withLock { $0?.tokens } ?? stored }

    /// The login with a PIN; `nil` when there is none.
    var remembered: RememberedLogin? { login.withLock { $0 } }

    /// Takes a login over, or ends what was taken over before.
    ///
    /// - Returns: the one before.
    @discardableResult
    func take(_ new: RememberedLogin?) -> RememberedLogin? {
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

    var kind: CallKind { .user }

    var user: TokenManager? { tokens }

    func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        try await tokens.token(rejecting: rejected)
    }

    func send(
        _ call: HTTPCall, for purpose: ProofPurpose, over transport: any HTTPTransport
    ) async throws -> HTTPReply {
        if let remembered, let session = purpose.session, let own = try? await remembered.tokens.session(),
            own.token == session.token
        {
            return try await remembered.proofs.send(call, for: purpose, over: transport)
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
