import AssentAuthorization
import AssentCore
import AssentJourney
import AssentResources
import AssentTokens

extension Assent {
    /// Lets ``/AssentResources/SharedUserClient`` and ``/AssentResources/SharedDeviceClient`` have the clients of this
    /// value, for an app that cannot pass them along. It is done once in a process; the same value may be shared again.
    ///
    /// - Throws: `ResourceError` with code `notConfigured` when another value is shared.
    public func share() throws {
        try SharedClients.process.share(user: userClient, device: deviceClient)
    }
}

/// What the clients of all kinds are made of.
struct ResourceWiring {
    private let configuration: Assent.Configuration
    private let resources: AuthorizationConfiguration
    private let journeys: JourneyClient
    private let transport: any HTTPTransport
    private let ignored: Set<String>
    private let integrity: IntegrityGuard
    /// Each kind has cookies of its own: the user's would say who the user is in calls that are nobody's.
    let deviceCookies: CookieStore
    /// See ``deviceCookies``.
    let implicitCookies: CookieStore
    /// See ``deviceCookies``.
    let nobodyCookies: CookieStore

    /// Of the installation, of a remembered user, and of nobody.
    var cookies: (CookieStore, CookieStore, CookieStore) { (deviceCookies, implicitCookies, nobodyCookies) }

    init(
        _ configuration: Assent.Configuration, resources: AuthorizationConfiguration, journeys: JourneyClient,
        transport: any HTTPTransport, ignoring ignored: Set<String>, integrity: IntegrityGuard
    ) {
        self.configuration = configuration
        self.integrity = integrity
        self.resources = resources
        self.journeys = journeys
        self.transport = transport
        self.ignored = ignored
        implicitCookies = CookieStore(clock: configuration.clock)
        deviceCookies = CookieStore(clock: configuration.clock)
        nobodyCookies = CookieStore(clock: configuration.clock)
    }

    /// Calls of a kind through a client that has the source of that kind.
    func calls(_ kind: CallKind, through client: AuthorizedClient) -> ResourceCalls {
        ResourceCalls(
            kind, client: client, base: configuration.resourceBase, sessionField: configuration.sessionCookieName,
            random: configuration.random, examine: integrity.examine)
    }

    /// Calls of a remembered user.
    func implicitCalls(_ tokens: ImplicitTokens) throws -> ResourceCalls {
        calls(.implicit, through: try client(tokens, implicitCookies))
    }

    /// The client of the installation and of nobody.
    func deviceClient(tokens: DeviceTokens) throws -> DeviceClient {
        DeviceClient(
            device: calls(.device, through: try client(tokens, deviceCookies)),
            nobody: calls(.nobody, through: try client(NoTokens(), nobodyCookies)), tokens: tokens)
    }

    /// Sign-ins that leave nothing behind: what the server sets as cookies is in memory as well.
    func statelessSignIns(over tokens: TokenManager, at server: Origin) -> StatelessSignIns {
        let cookies = CookieStore(clock: configuration.clock)
        let layer = CookieMiddleware(store: cookies, origins: [server], ignoring: ignored)
        let network = HTTPPipeline(transport, layers: [integrity] + configuration.layers + [layer])
        let journeys = JourneyClient(
            configuration: self.journeys.configuration, transport: network, clock: configuration.clock,
            logger: configuration.logger)
        return StatelessSignIns(tokens: tokens, journeys: journeys, transport: network, cookies: cookies)
    }

    private func client(_ source: any AccessTokenSource, _ store: CookieStore) throws -> AuthorizedClient {
        let cookies = CookieMiddleware(
            store: store, origins: Set(resources.resources.keys), ignoring: ignored)
        return try AuthorizedClient(
            configuration: resources, journeys: journeys, source: source,
            transport: HTTPPipeline(transport, layers: [integrity] + configuration.layers + [cookies]),
            random: configuration.random, logger: configuration.logger)
    }
}
