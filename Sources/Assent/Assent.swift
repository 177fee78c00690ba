public import AssentAuthorization
public import AssentCore
public import AssentJourney
public import AssentResources
import AssentSigning
public import AssentTokens
import AssentVault
import Foundation

/// Identity for an app: sign in, call protected resources, prove that the user agreed.
///
/// ```swift
/// let assent = try Assent(configuration)
/// try await assent.journey("Login") { step in
///     step[NameCallback.self]?.name = try await screen.name()
///     step[PasswordCallback.self]?.password = try await screen.password()
///     return .next
/// }
/// let reply = try await assent.send(.get("https://api.bank.example/accounts"))
/// ```
///
/// One configuration wires a `JourneyClient`, a `TokenManager` and an `AuthorizedClient`. Nothing is global: two values
/// know nothing of each other unless they share a vault.
public final class Assent: Sendable {
    /// The configuration that this was made with.
    public let configuration: Configuration

    /// Signs the user in by a journey at the server: call it with a handler, or walk node by node.
    ///
    /// ```swift
    /// try await assent.journey("Login") { step in
    ///     step[NameCallback.self]?.name = "ana"
    ///     step[PasswordCallback.self]?.password = password
    ///     return .next
    /// }
    /// ```
    public let journey: Journey

    /// The user's session and tokens: stored in the vault, renewed before they expire.
    public let tokens: TokenManager

    /// This app as a device that its users enrol, which shows transactions and signs the answers.
    public let device: Device

    /// Calls the user's resources.
    public let userClient: UserClient

    /// Calls the installation's resources, and nobody's.
    public let deviceClient: DeviceClient

    /// What `send` sends by, for code that takes an `AuthorizedClient`: a class of the product `AssentURLSession`, or a
    /// client of the app's own. Who is signed in here is signed in there, and ``Configuration/policies`` answer for
    /// approvals. An `HTTPCall` to an origin that ``Configuration/payloadEncryption`` does not name is not sealed.
    public let authorizedClient: AuthorizedClient

    let journeyClient: JourneyClient
    let cookies: SecureCookieStore
    private let resourceCookies: UserCookies
    let deviceCookies: CookieStore
    let implicitCookies: CookieStore
    private let nobodyCookies: CookieStore

    /// Whose calls the user's are now.
    let current: CurrentUser
    let remembered: RememberedUsers

    /// Signs users in so that nothing is left of it.
    let stateless: StatelessSignIns
    let network: AssentNetwork
    let integrity: IntegrityGuard
    private let reporter: IntegrityReporter?
    private let origins = OriginMemory()

    /// Wires everything, and asks the probes a first time, so that their findings are reported; what fails by them are
    /// the calls. It sends nothing; the vault is opened when it is first needed.
    ///
    /// ```swift
    /// let assent = try Assent(
    ///     .init(
    ///         server: "https://am.bank.example/am", realm: "alpha",
    ///         client: .init(id: "bank-app", redirectURI: "https://bank.example/app/callback"),
    ///         resources: ["https://api.bank.example": .accessToken],
    ///         pins: ["am.bank.example": [primary, backup], "api.bank.example": [primary, backup]],
    ///         vault: .file(at: directory, keys: .requireHardware)))
    /// ```
    ///
    /// - Throws: `JourneyFailure`, `TokenError` or `AuthorizationError` with code `invalidConfiguration`, and
    ///   `NIOTransportError`: each says what is wrong.
    public init(_ configuration: Configuration) throws {
        self.configuration = configuration
        let (clock, random, logger) = (configuration.clock, configuration.random, configuration.logger)
        let settings = try configuration.journeyConfiguration()
        let serverOrigin = try Origin(settings.server)
        try Configuration.check(serverOrigin)
        let store = configuration.vault.store(clock: clock, random: random, leastLimit: configuration.leastLimit)
        network = try configuration.network(keeping: store)
        let prover = InstallationProver()
        let sealing = try configuration.sealing(network.transport, prover, network.keeper, network.told)
        let transport = HTTPPipeline(sealing, layers: [configuration.userAgent])
        reporter = configuration.integrityReporter(settings, prover, over: transport)
        integrity = try configuration.integrityGuard(network.keeper?.inForce, reporter: reporter)
        cookies = SecureCookieStore(
            in: store, persisting: configuration.persistentCookies, clock: clock, logger: logger)
        resourceCookies = UserCookies(clock: clock)
        let resources = try configuration.authorization(network)
        let ignored: Set = [configuration.sessionCookieName]
        let pipeline = HTTPPipeline(
            transport,
            layers: [integrity] + configuration.layers + [
                CookieMiddleware(store: cookies, origins: [serverOrigin], ignoring: ignored),
                CookieMiddleware(
                    store: resourceCookies, origins: Set(resources.resources.keys).subtracting([serverOrigin]),
                    ignoring: ignored),
            ])
        let tokenSettings = try configuration.tokenConfiguration(settings, network.admission, integrity)
        let proofs = SessionProofs(tokenSettings, store: store, clock: clock, random: random)
        let ending = JourneyClient(configuration: settings, transport: pipeline, clock: clock, logger: logger)
        let stored = TokenManager(
            configuration: tokenSettings, transport: pipeline, proving: proofs,
            sessions: JourneySessions(client: ending.proving(proofs)), clock: clock, random: random, logger: logger)
        tokens = stored
        let kept = prover.attach(stored.registration)
        current = CurrentUser(stored: stored, proofs: proofs, cookies: resourceCookies)
        var journeys = JourneyClient(
            configuration: settings, transport: network.admitting(pipeline, integrity), clock: clock, logger: logger)
        journeys.prover = current
        journeyClient = journeys
        authorizedClient = try AuthorizedClient(
            configuration: resources, journeys: journeyClient, source: current, transport: pipeline,
            policies: configuration.policies, clock: clock, random: random, logger: logger)
        let wiring = ResourceWiring(
            configuration, resources: resources, journeys: journeyClient, transport: transport, ignoring: ignored,
            integrity: integrity)
        deviceClient = try wiring.deviceClient(tokens: stored.device)
        (deviceCookies, implicitCookies, nobodyCookies) = wiring.cookies
        journey = Journey(
            client: journeyClient, tokens: tokens, proofs: proofs, current: current, authorized: authorizedClient)
        device = Device(
            configuration.signingDevice(
                store, over: network.admitting(HTTPPipeline(transport, layers: [kept, integrity]), integrity)),
            user: try Device.UserSession(settings, current, over: pipeline))
        remembered = RememberedUsers(
            device: device, tokens: stored, journeys: ending, admission: network.admission, integrity: integrity,
            cookies: implicitCookies)
        userClient = UserClient(
            wiring.calls(.user, through: authorizedClient), implicit: try wiring.implicitCalls(stored.implicit),
            authenticating: remembered.authenticateImplicitly,
            linking: { [current, network, integrity] in try await current.link(to: $0, network.admission, integrity) })
        stateless = wiring.statelessSignIns(over: stored, at: serverOrigin)
    }

    /// Sends a call to a resource and asks the user when the server wants the user's approval.
    ///
    /// ```swift
    /// let payment = try ResourceRequest.post("https://api.bank.example/transfers", json: transfer)
    /// let reply = try await assent.send(payment) { approval in
    ///     if approval.isFirstStep {
    ///         guard await screen.confirm(approval.display) else { return .decline }
    ///     }
    ///     if let waiting = approval.waiting { await screen.show(waiting.text) }
    ///     approval.agree()
    ///     return .next
    /// }
    /// ```
    ///
    /// Credentials are attached for the origins that the configuration names, and for no other. When the server wants
    /// an approval, `approve` is called, in the caller's isolation, with each step of the journey that gets it. Then
    /// the same call, with the same body and the same `Idempotency-Key`, is sent once more.
    ///
    /// - Returns: the reply to the last sending, whatever its status.
    /// - Throws: `ResourceError` for a request that cannot be sent as it is; `AuthorizationError`, above all `declined`
    ///   and `outcomeUnknown`; `TokenError`; `JourneyError` and `JourneyFailure` of the approving journey;
    ///   `HTTPTransportError`; what `approve` throws.
    public func send(
        _ request: ResourceRequest, approve: (inout Approval) async throws -> StepAction
    ) async throws -> HTTPReply {
        try await authorizedClient.send(lowered(request), approve: approve)
    }

    /// Sends a call to a resource. When the server wants the user's approval, the handler of the policy that covers its
    /// address answers (``Configuration/policies``); without one the call fails.
    ///
    /// ```swift
    /// let reply = try await assent.send(.get("https://api.bank.example/balance"))
    /// let balance = try await reply.json(Balance.self)
    /// ```
    ///
    /// - Returns: the reply, whatever its status.
    /// - Throws: `ResourceError` for a request that cannot be sent as it is; `AuthorizationError` with code
    ///   `approvalNeeded` when the server wants the user's approval and no policy's handler answers; `TokenError`;
    ///   `HTTPTransportError`.
    public func send(_ request: ResourceRequest) async throws -> HTTPReply {
        try await authorizedClient.send(lowered(request))
    }

    /// Asks what became of an approved call whose outcome is unknown. The user is not asked again.
    ///
    /// ```swift
    /// do {
    ///     return try await assent.send(payment, approve: approve)
    /// } catch let error as AuthorizationError where error.code == .outcomeUnknown {
    ///     guard let pending = error.pending else { throw error }
    ///     return try await assent.ask(payment, about: pending)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - request: the request as it was.
    ///   - pending: from the error.
    /// - Returns: the reply; Assent's gateway answers 409 with the recorded outcome when it let the call through
    ///   before.
    /// - Throws: `AuthorizationError`: `refused` when the server does not know the approval any more, `sessionChanged`
    ///   when somebody has signed out, or in, since the request was sent, `outcomeUnknown`, `notSent`; `ResourceError`
    ///   with code `invalidRequest` for a form with files: it is written anew each time, and the server would take it
    ///   for another request.
    public func ask(_ request: ResourceRequest, about pending: PendingRequest) async throws -> HTTPReply {
        let call = try lowered(request)
        guard request.multipartData.isEmpty else {
            throw ResourceError(
                .fetchResource, .invalidRequest, "A form with files cannot be asked about.",
                suggestion: "Ask the service itself what became of it.")
        }
        return try await authorizedClient.ask(call, about: pending)
    }

    private func lowered(_ request: ResourceRequest) throws(ResourceError) -> HTTPCall {
        let examination: IntegrityExamination
        do throws(HTTPTransportError) {
            examination = try integrity.examine()
        } catch {
            throw ResourceError(error, .fetchResource)
        }
        var call = try request.httpCall(
            base: configuration.resourceBase, sessionField: configuration.sessionCookieName,
            random: configuration.random, origins: origins)
        call.examination = examination
        return call
    }

    /// The user who is signed in, or `nil`.
    ///
    /// ```swift
    /// guard let user = try await assent.user() else { return nil }
    /// return user.idToken?.subject
    /// ```
    ///
    /// - Throws: `TokenError` with code `storageFailed`.
    public func user() async throws -> User? {
        let tokens = current.tokens
        let own = SignInTokens(tokens)
        let session = try await tokens.session()
        let stored = try await tokens.storedTokens()
        guard session != nil || stored != nil else { return nil }
        return User(session: session, idToken: stored?.idToken, assent: self, tokens: own)
    }

    /// Signs out: forgets session, tokens and cookies here, whatever the server says, and tells the server.
    ///
    /// ```swift
    /// let result = await assent.signOut()
    /// for undone in result.undone { logger.warning("the server does not know yet: \(undone)") }
    /// ```
    ///
    /// - Returns: what the server could not be told. It is kept, sealed, for ``retrySignOuts()``.
    @discardableResult
    public func signOut() async -> SignOutResult {
        await signOutOfBoth { await tokens.signOut() }
    }

    /// Signs out as ``signOut()``, and leaves the session of the provider's own page to the browser in which it lives.
    ///
    /// ```swift
    /// let result = await assent.signOut { url in open(url) }
    /// ```
    ///
    /// Who signed in in a browser is signed in there as well, and only the browser can end that: the next sign-in would
    /// else ask for nothing. The URL has the ID token in it: show it to nobody but the user's browser.
    ///
    /// - Parameters:
    ///   - redirectURI: where the provider's page leads when it is done; it must be registered there.
    ///   - open: opens the URL in the browser. It is called at most once, and not when there is no such page or the
    ///     user signed in by a journey. It must not wait.
    /// - Returns: what the server could not be told. What the page did is not known.
    @discardableResult
    public func signOut(
        returningTo redirectURI: String? = nil, browser open: @escaping @Sendable (String) -> Void
    ) async -> SignOutResult {
        await signOutOfBoth { await tokens.signOut(returningTo: redirectURI, browser: open) }
    }

    /// Signs out who is signed in in memory, and then whose sign-in is stored. Until both are over, calls are those of
    /// the first one, and fail: in between they would be sent in the name of the other.
    private func signOutOfBoth(stored: () async -> SignOutResult) async -> SignOutResult {
        let login = current.abandon()
        if let login { _ = await login.tokens.signOut() }
        let result = await stored()
        if let login { current.drop(login) }
        return await forgetCookies(after: result)
    }

    /// Signs out a user whom the app has kept. With who is signed in in memory the stored user is signed out as well:
    /// the next calls would else be that one's.
    func signOut(of user: SignInTokens) async -> SignOutResult {
        guard user.isCurrent else { return await user.signOut() }
        guard user.areOf(tokens) else { return await signOut() }
        let other = current.abandon()
        let result = await user.signOut()
        guard other == nil, result.localFailure?.code != .sessionChanged else { return result }
        return await forgetCookies(after: result)
    }

    /// Ends what is in memory: a login with a PIN, or a sign-in that leaves nothing behind; also one that is under way.
    /// What the server cannot be told ends by itself with its session.
    ///
    /// - Returns: whether the server was told to end it; also where there was nothing to tell.
    @discardableResult
    package func endLogin() async -> Bool {
        guard let login = current.drop(abandoning: true) else { return true }
        // The session of a login ends with the grant of its tokens, and may not be found any more after that.
        return await login.tokens.signOut().undone.allSatisfy { $0.step == .endProviderSession }
    }

    private func forgetCookies(after result: SignOutResult) async -> SignOutResult {
        var result = result
        resourceCookies.removeAll()
        await nobodyCookies.removeAll()
        do {
            try await cookies.removeAll()
        } catch {
            if result.localFailure == nil {
                result.localFailure = TokenError(.storageFailed, "Cookies are still stored: \(error.explanationOrType)")
            }
        }
        return result
    }

    /// Tells the server what earlier sign-outs could not, of any user.
    ///
    /// ```swift
    /// let undone = try await assent.retrySignOuts()
    /// ```
    ///
    /// - Returns: what could still not be done; empty when the server knows everything.
    /// - Throws: `TokenError` with code `storageFailed`.
    public func retrySignOuts() async throws -> [SignOutResult.Undone] { try await tokens.retrySignOuts() }

    /// Closes the connections. Calls after this fail.
    public func shutdown() async {
        await reporter?.finish()
        await network.shutdown()
    }
}
