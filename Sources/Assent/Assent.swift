public import AssentAuthorization
public import AssentCore
public import AssentJourney
public import AssentTokens
import AssentTransportNIO
import AssentVault
import Foundation

/// Identity for an app: sign in, call protected resources, prove the user's assent.
///
/// It is a façade over ``/AssentJourney/JourneyClient``, ``/AssentTokens/TokenManager`` and
/// ``/AssentAuthorization/AuthorizedClient``, wired from one configuration. Nothing is global: two of them know nothing
/// of each other unless they share a vault.
public final class Assent: Sendable {
    /// What it was made with.
    public let configuration: Configuration

    /// Signs in. Call it with a handler, or walk node by node.
    public let journey: Journeys

    /// The user's session and tokens.
    public let tokens: TokenManager

    let journeys: JourneyClient
    private let authorized: AuthorizedClient
    let cookies: SecureCookieStore
    private let ownTransport: NIOTransport?

    /// Wires everything. Nothing is sent, and the vault is opened when it is first needed.
    ///
    /// - Throws: ``/AssentJourney/JourneyFailure``, ``/AssentTokens/TokenError`` or
    ///   ``/AssentAuthorization/AuthorizationError`` with code `invalidConfiguration`, and
    ///   ``/AssentTransportNIO/NIOTransportError``: each says what is wrong.
    public init(_ configuration: Configuration) throws {
        self.configuration = configuration
        let (clock, random, logger) = (configuration.clock, configuration.random, configuration.logger)
        var settings = try JourneyConfiguration(
            server: configuration.server, realm: configuration.realm,
            sessionCookieName: configuration.sessionCookieName)
        settings.callbacks = configuration.callbacks
        settings.acceptLanguage = configuration.acceptLanguage
        let serverOrigin = try Origin(settings.server)
        guard serverOrigin.isSecure || serverOrigin.host.isLoopback else {
            throw JourneyFailure(.invalidConfiguration, "the server is neither https nor on this machine")
        }

        let transport: any HTTPTransport
        if let own = configuration.transport {
            (transport, ownTransport) = (own, nil)
        } else {
            let made = try NIOTransport(
                configuration: NIOTransportConfiguration(
                    trustRoots: configuration.trustRoots, pins: configuration.pins,
                    allowPlaintextLoopback: configuration.allowPlaintextLoopback), clock: clock, logger: logger)
            (transport, ownTransport) = (made, made)
        }
        let store = VaultOpener(configuration.vault, clock: clock, random: random)
        cookies = SecureCookieStore(
            in: store, persisting: configuration.persistentCookies, clock: clock, logger: logger)
        let pipeline = HTTPPipeline(
            transport,
            layers: [
                CookieMiddleware(
                    store: cookies, origins: [serverOrigin], ignoring: [configuration.sessionCookieName])
            ])

        journeys = JourneyClient(configuration: settings, transport: pipeline, clock: clock, logger: logger)
        var tokenConfiguration = try TokenConfiguration(
            issuer: configuration.issuer ?? "\(settings.server)/oauth2/\(settings.realm.path)",
            clientID: configuration.client.id, redirectURI: configuration.client.redirectURI,
            scopes: configuration.client.scopes, sessionCookieName: configuration.sessionCookieName)
        tokenConfiguration.renewBefore = configuration.renewBefore
        tokenConfiguration.patience = configuration.patience
        tokenConfiguration.authorizationParameters = configuration.authorizationParameters
        tokens = TokenManager(
            configuration: tokenConfiguration, transport: pipeline, store: store,
            sessions: JourneySessions(journeys: journeys), clock: clock,
            random: random, logger: logger)
        authorized = try AuthorizedClient(
            configuration: AuthorizationConfiguration(
                resources: configuration.resources, requiresBinding: configuration.requiresBinding),
            journeys: journeys, tokens: tokens, transport: pipeline, random: random, logger: logger)
        journey = Journeys(client: journeys, tokens: tokens)
    }

    /// Sends a call; see ``/AssentAuthorization/AuthorizedClient/send(_:approve:)``.
    ///
    /// Credentials are attached for the origins that the configuration names. When the server wants the user's
    /// approval, `approve` is asked, in the caller's isolation, and the call is repeated as it was, once.
    public func send(
        _ call: Call, approve: (inout Approval) async throws -> StepAction
    ) async throws -> HTTPReply {
        try await authorized.send(call.httpCall(), approve: approve)
    }

    /// Sends a call for which the user is not asked; see ``/AssentAuthorization/AuthorizedClient/send(_:)``.
    public func send(_ call: Call) async throws -> HTTPReply {
        try await authorized.send(call.httpCall())
    }

    /// Asks what became of an approved call; see ``/AssentAuthorization/AuthorizedClient/ask(_:about:)``.
    public func ask(_ call: Call, about pending: PendingRequest) async throws -> HTTPReply {
        try await authorized.ask(call.httpCall(), about: pending)
    }

    /// The user who is signed in, or `nil`.
    ///
    /// - Throws: ``/AssentTokens/TokenError`` with code `storageFailed`.
    public func user() async throws -> User? {
        let session = try await tokens.session()
        let stored = try await tokens.storedTokens()
        guard session != nil || stored != nil else { return nil }
        return User(session: session, idToken: stored?.idToken, assent: self)
    }

    /// Signs out: forgets session, tokens and cookies here, whatever the server says, and tells the server.
    ///
    /// - Returns: what the server could not be told. What is kept of it is sealed; see ``retryLogout()``.
    @discardableResult
    public func logout() async -> SignOutResult {
        var result = await tokens.signOut()
        do {
            try await cookies.removeAll()
        } catch  where result.localFailure == nil {
            result.localFailure = TokenError(.storageFailed, "cookies are still stored: \(error)")
        } catch {}
        return result
    }

    /// Tells the server what earlier sign-outs could not, of whichever user.
    ///
    /// - Returns: what could still not be done; empty when the server knows all.
    /// - Throws: ``/AssentTokens/TokenError`` with code `storageFailed`.
    public func retryLogout() async throws -> [SignOutResult.Undone] { try await tokens.retrySignOuts() }

    /// Closes the connections. Calls after this fail.
    public func shutdown() async {
        await ownTransport?.shutdown()
    }

    /// A call to a resource.
    public typealias Call = ResourceCall
}
