import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTokens

/// Whose calls the user's are: those of the user whose session and tokens are stored, or of the one who is signed in
/// in memory, after a login with a PIN or a sign-in that leaves nothing behind.
final class CurrentUser: AccessTokenSource, SessionProver {
    private let stored: TokenManager
    private let storedProofs: SessionProofs
    private let state = Locked(State())

    /// Cookies that resources have set in the user's calls.
    let cookies: UserCookies

    private struct State {
        var login: MemoryLogin?
        var isLoggingIn = false
        /// Whether somebody has signed out while the login was under way: then it is nobody's.
        var isAbandoned = false
    }

    init(stored: TokenManager, proofs: SessionProofs, cookies: UserCookies) {
        self.stored = stored
        self.cookies = cookies
        storedProofs = proofs
        cookies.attach(self)
    }

    /// Session and tokens of the current user.
    var tokens: TokenManager { state.withLock { $0.login?.tokens } ?? stored }

    /// Who is signed in in memory; `nil` when nobody is.
    var inMemory: MemoryLogin? { state.withLock { $0.login } }

    /// Takes over what the login under way has come to. The one before ends, or this one if somebody has signed out
    /// meanwhile.
    ///
    /// - Throws: `ResourceError` with code `actionCancelled` after such a sign-out.
    func take(_ new: MemoryLogin) async throws(ResourceError) {
        let (ended, isAbandoned) = state.withLock { state -> (MemoryLogin?, Bool) in
            if state.isAbandoned { return (new, true) }
            defer { state.login = new }
            return (state.login, false)
        }
        if let ended { _ = await ended.tokens.signOut() }
        guard !isAbandoned else {
            throw ResourceError(.generic, .actionCancelled, "Somebody has signed out while the login was under way.")
        }
    }

    /// What is under way comes to nothing.
    ///
    /// - Returns: who is signed in in memory, and stays so until ``drop(_:)``.
    func abandon() -> MemoryLogin? {
        state.withLock { state -> MemoryLogin? in
            state.isAbandoned = state.isLoggingIn
            return state.login
        }
    }

    /// Nobody is signed in in memory any more, unless another one has taken that one's place.
    func drop(_ login: MemoryLogin) {
        state.withLock { state in
            if state.login?.tokens === login.tokens { state.login = nil }
        }
    }

    /// Nobody is signed in in memory any more. With `abandoning`, what is under way comes to nothing as well.
    ///
    /// - Returns: who was.
    func drop(abandoning: Bool) -> MemoryLogin? {
        state.withLock { state -> MemoryLogin? in
            if abandoning { state.isAbandoned = state.isLoggingIn }
            defer { state.login = nil }
            return state.login
        }
    }

    /// Ends the login of a remembered user. A login that is under way comes to nothing, also that of another user.
    ///
    /// - Returns: who was; `nil` when somebody else is signed in in memory, or nobody.
    func drop(of user: String) -> MemoryLogin? {
        state.withLock { state -> MemoryLogin? in
            state.isAbandoned = state.isLoggingIn
            guard let login = state.login, login.user == user else { return nil }
            state.login = nil
            return login
        }
    }

    /// Whether nobody else is logging in; then the caller is, until ``endLogin()``.
    func beginLogin() -> Bool {
        state.withLock { state -> Bool in
            guard !state.isLoggingIn else { return false }
            (state.isLoggingIn, state.isAbandoned) = (true, false)
            return true
        }
    }

    func endLogin() { state.withLock { $0.isLoggingIn = false } }

    /// A link that signs the user's browser in. The probes are asked before anything else.
    func link(to target: String, _ admission: DeviceAdmission?, _ integrity: IntegrityGuard) async throws -> WebLink {
        try integrity.examine()
        // Before anything is waited for: nobody else's browser is signed in.
        let links = BrowserLinks(tokens)
        try await admission?.admitLink(to: target)
        return try await links.make(to: target)
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
