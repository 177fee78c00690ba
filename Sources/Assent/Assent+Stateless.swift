import AssentAuthorization
import AssentCore
public import AssentJourney
import AssentResources
import AssentTokens

extension Assent {
    /// Signs a user in by a journey so that nothing is left of it: session and tokens are in memory alone, live as long
    /// as one access token, and are not renewed. Afterwards the user's calls fail with 9010. What is stored of another
    /// sign-in stays as it is, and counts again in a new process; ``signOut()`` ends both.
    ///
    /// ```swift
    /// try await assent.authenticateStateless("Login") { step in
    ///     step[NameCallback.self]?.name = try await screen.name()
    ///     step[PasswordCallback.self]?.password = try await screen.password()
    ///     return .next
    /// }
    /// ```
    ///
    /// The installation must be registered, and its app have `stateless: true` at the server. A second one ends the
    /// first when its journey has succeeded; if that fails, the first goes on.
    ///
    /// - Parameters:
    ///   - tree: the journey's name; `nil` for the realm's default.
    ///   - options: how to start.
    ///   - handler: answers a step, in the caller's isolation.
    /// - Throws: `ResourceError`: `integrityFailed` when a probe refuses, `statelessRefused` when the server does not
    ///   allow it, `deviceDeregistered` when this installation is not registered, `actionAlreadyInProgress`,
    ///   `serverNotReachable`, `actionCancelled` when somebody has signed out meanwhile. `JourneyError` when the server
    ///   refuses what was typed, `JourneyFailure` when the journey cannot go on, `CancellationError`, and what
    ///   `handler` throws.
    public func authenticateStateless(
        _ tree: String? = nil, options: JourneyOptions = JourneyOptions(),
        handler: (inout JourneyStep) async throws -> StepAction
    ) async throws {
        do {
            try integrity.examine()
            try await network.admission?.admitStateless()
        } catch {
            throw ResourceError.ofSignIn(error, .user)
        }
        guard current.beginLogin() else {
            throw ResourceError(.generic, .actionAlreadyInProgress, "Another login is under way.")
        }
        defer { current.endLogin() }
        let scopes = configuration.client.scopes.filter { $0 != "offline_access" }
        let login = try await stateless.signIn(tree, options, scopes: scopes, handler: handler)
        try await current.take(login)
    }
}

/// Signs users in so that nothing is left of it.
struct StatelessSignIns: Sendable {
    /// The installation's.
    let tokens: TokenManager
    let journeys: JourneyClient
    /// Keeps cookies in memory.
    let transport: any HTTPTransport
    let cookies: CookieStore

    /// Walks a journey and takes its session over. No session goes along, and no cookie of a user before.
    func signIn(
        _ tree: String?, _ options: JourneyOptions, scopes: [String],
        handler: (inout JourneyStep) async throws -> StepAction
    ) async throws -> MemoryLogin {
        let journeys = journeys
        let login: MemoryLogin
        do {
            login = try await MemoryLogin(statelessBeside: tokens, over: transport, scopes: scopes) {
                JourneySessions(client: journeys.proving($0))
            }
        } catch let error as TokenError {
            throw ResourceError.ofSignIn(error, .user)
        }
        await cookies.removeAll()
        let client = journeys.proving(login.proofs)
        var options = options
        options.noSession = false
        options.parameters.append(.init("stateless", "true"))
        do {
            let session = try await client.run(tree, options: options, session: nil, handler: handler)
            // A server that does not know the parameter gives a usual session.
            guard session.kind == "stateless", session.keyThumbprint != nil else {
                if !session.token.isEmpty { try? await client.signOut(session) }
                throw Self.refused("The server has given another session than one that leaves nothing behind.")
            }
            try await login.tokens.install(session)
        } catch let error as JourneyError where error.code == .statelessRefused {
            throw Self.refused(error.detail)
        } catch let failure as JourneyFailure where failure.transportError != nil {
            throw ResourceError.ofSignIn(failure, .user)
        } catch let error as TokenError {
            throw ResourceError.ofSignIn(error, .user)
        }
        return login
    }

    private static func refused(_ detail: String) -> ResourceError {
        ResourceError(.generic, .statelessRefused, detail)
    }
}
