public import AssentAuthorization
public import AssentCore
import AssentJourney
import AssentResources
import AssentSigning
import AssentTokens

extension Assent {
    /// Signs a remembered user in by the PIN of the user's container. Session and tokens are in memory alone: a new
    /// process asks for the PIN again, and so does this one when they have expired (9010).
    ///
    /// ```swift
    /// do throws(ResourceError) {
    ///     try await assent.logIn("ana", pin: pin)
    /// } catch {
    ///     guard error.code == .invalidPin else { throw error }
    ///     print("\(error.triesLeft ?? 0) tries left")
    /// }
    /// ```
    ///
    /// The PIN is kept until this returns: after a lost answer all calls are made once more, which costs the user no
    /// try.
    ///
    /// - Parameters:
    ///   - user: the user's id or name.
    ///   - pin: what the user has typed.
    /// - Throws: `ResourceError`: `integrityFailed` when a probe refuses; `invalidPin` with the tries that are left, 0
    ///   when it is locked; `userDeregistered` when the server has signed that the user is not remembered any more, and
    ///   then nothing is left here; `userNotAuthenticated` when nobody with this name is remembered or the keys have
    ///   expired; `deviceDeregistered`, `actionAlreadyInProgress`, `serverNotReachable`; `actionCancelled` when
    ///   somebody has signed out meanwhile.
    public func logIn(_ user: String, pin: Secret) async throws(ResourceError) {
        do throws(HTTPTransportError) {
            try integrity.examine()
        } catch {
            throw ResourceError.ofSignIn(error, .user)
        }
        guard current.beginLogin() else {
            throw ResourceError(.generic, .actionAlreadyInProgress, "Another login is under way.")
        }
        defer { current.endLogin() }
        do {
            try await network.admission?.admitCall()
            let scopes = configuration.client.scopes.filter { !["openid", "offline_access"].contains($0) }
            let login = try await remembered.logIn(user, pin: pin, scopes: scopes) { JourneySessions(client: $0) }
            try await current.take(login)
        } catch {
            if let error = error as? SigningError { throw ResourceError.ofLogin(error) }
            throw ResourceError.ofSignIn(error, .user)
        }
    }
}

extension ResourceError {
    /// What an error of the device is for an app that signs a user in by a PIN, where it says nothing of the PIN.
    static func ofLogin(_ error: SigningError) -> ResourceError {
        // A probe may find something only between the first call and the last.
        if error.code == .integrityFailed { return ResourceError(.generic, .integrityFailed, error.detail) }
        return ResourceError(.authentication, .userNotAuthenticated, error.detail, suggestion: error.suggestion)
    }
}

extension RememberedUsers {
    /// What one login has at hand on its way.
    private struct Work {
        var login = PINLogin()
        var key: SigningLoginKey?
        var result: MemoryLogin?
        var error: (any Error)?
    }

    /// Performs the steps of ``PINLogin``.
    func logIn(
        _ user: String, pin: Secret, scopes: [String], ending: (JourneyClient) -> any SessionEnding
    ) async throws -> MemoryLogin {
        let container = try await container(of: user, .user)
        var work = Work()
        while true {
            switch work.login.next {
            case .done:
                guard let result = work.result else { throw SigningError(.internal) }
                return result
            case .fail(let outcome): throw await error(outcome, work.error, container)
            case let step:
                do {
                    let event = try await perform(step, &work, container, pin: pin, scopes: scopes, ending)
                    _ = work.login.take(event)
                } catch {
                    if error is CancellationError { throw error }
                    work.error = work.login.next == .askStatus ? work.error : error
                    guard work.login.take(.failed(PINLogin.Failure(error))) else { throw error }
                }
            }
        }
    }

    private func perform(
        _ step: PINLogin.Step, _ work: inout Work, _ container: SigningContainer, pin: Secret, scopes: [String],
        _ ending: (JourneyClient) -> any SessionEnding
    ) async throws -> PINLogin.Event {
        switch step {
        case .open:
            work.key = try await container.login(pin: pin)
            return .opened
        case .request:
            guard let key = work.key else { throw SigningError(.internal) }
            let journeys = journeys
            work.result = try await MemoryLogin(over: tokens, scopes: scopes) { facts in
                try await key.assertion(SigningLoginRequest(facts))
            } ending: { proofs in
                var client = journeys
                client.prover = proofs
                return ending(client)
            }
            work.result?.user = container.userID
            return .granted
        case .askStatus: return .status(hasEnded: try await hasEnded(container))
        case .done, .fail: throw SigningError(.internal)
        }
    }

    /// What the app hears.
    private func error(
        _ outcome: PINLogin.Outcome, _ cause: (any Error)?, _ container: SigningContainer
    ) async -> any Error {
        let signing = cause as? SigningError
        switch outcome {
        case .wrongPIN:
            return ResourceError(
                .authentication, .invalidPin, "The PIN is wrong.",
                triesLeft: signing?.passwordState == .locked ? 0 : signing?.remaining)
        case .locked:
            return ResourceError(
                .authentication, .invalidPin, "The PIN is locked until the user authenticates in another way.",
                suggestion: "Let the user sign in at the server.", triesLeft: 0)
        case .deregistered:
            tokens.implicit.end()
            return ResourceError.userDeregistered
        case .expired:
            return ResourceError(
                .authentication, .userNotAuthenticated, "The keys by which this user is remembered here have expired.",
                suggestion: "Let the user sign in, and enrol this installation again.")
        case .noAnswer:
            return ResourceError(
                .generic, .serverNotReachable, signing?.detail ?? "The server has given no answer to the login.")
        case .other:
            if signing?.code == .notActive, let interruption = await interruption(of: container, .user) {
                return interruption
            }
            if let signing { return ResourceError.ofLogin(signing) }
            return cause ?? SigningError(.internal)
        }
    }
}

extension PINLogin.Failure {
    /// What an error means. Nobody has signed what the server refuses.
    init(_ error: any Error) {
        switch error {
        case let error as SigningError: self.init(error.code)
        case let error as TokenError: self.init(error)
        default: self = .other
        }
    }

    private init(_ code: SigningError.Code) {
        self =
            switch code {
            case .remote, .unavailable, .serverAuthentication: .noAnswer
            case .wrongPassword: .wrongPIN
            case .passwordLocked: .locked
            case .passwordDestroyed, .credentialsLost, .containerRevoked, .unknownContainer, .enrolmentVoid,
                .invalidContainer:
                .gone
            case .keyExpired: .expired
            case .unlockRequired: .unlockNeeded
            default: .other
            }
    }

    private init(_ error: TokenError) {
        self =
            switch error.loginRefusal {
            case .locked: .locked
            case .shredded, .containerEnded: .gone
            case .expired: .expired
            case .unlockRequired: .unlockNeeded
            case .implicitDisabled, .consentRequired, .passwordExpired: .other
            case nil: error.transportError != nil || error.isTransient ? .noAnswer : .other
            }
    }
}
