import AssentConfiguration
public import AssentCore
import AssentEnforcement
import AssentEngine
import Foundation
public import Logging
import NIOCore
public import ServiceLifecycle

/// A gateway without an engine: it asks another server about each request, over HTTPS, and forwards what that lets
/// through. It has no database, no master key and no journeys.
///
/// ```swift
/// let gateway = try GatewayServer(configuration: .load(file: "edge.yaml"), logger: logger)
/// try await ServiceGroup(services: [gateway], gracefulShutdownSignals: [.sigterm], logger: logger).run()
/// ```
public final class GatewayServer: Service {
    private let configuration: GatewayServerConfiguration
    private let clock: any WallClock
    private let random: any RandomSource
    private let connections: OpenConnections
    private let listener: Listener
    private let healthListener: Listener?
    private let certificate: CertificateWatch
    private let outcomes: RealmOutcomes
    private let logger: Logger

    /// Checks everything that can be checked before a request comes.
    ///
    /// - Parameters:
    ///   - configuration: how the gateway is set up.
    ///   - clock: where the time comes from.
    ///   - random: where the names of questions come from.
    ///   - logger: where the gateway writes.
    /// - Throws: ``/AssentConfiguration/ConfigurationError`` with what to do.
    public init(
        configuration: GatewayServerConfiguration, clock: any WallClock = SystemClock(),
        random: any RandomSource = SystemRandom(), logger: Logger
    ) throws {
        self.configuration = configuration
        self.clock = clock
        self.random = random
        self.logger = logger
        for port in [configuration.gateway.port, configuration.healthPort].compactMap(\.self) {
            if let fault = ListenAddress(host: configuration.host, port: port).fault {
                throw ConfigurationError(file: configuration.file, line: nil, fault)
            }
        }
        let credentials = try ServerCredentials.files(
            certificate: configuration.certificate, privateKey: configuration.privateKey, in: configuration.file)
        for host in try credentials.hostsNotNamed(in: [configuration.gateway.publicURL]) {
            logger.warning(
                "the certificate does not name a host of publicURL: clients refuse it", metadata: ["host": "\(host)"])
        }
        certificate = try CertificateWatch(credentials, isGenerated: false, clock: clock, logger: logger)
        certificate.look()
        connections = OpenConnections(
            ConnectionLimits(
                descriptors: ConnectionLimits.processDescriptors, perAddress: configuration.connectionsPerAddress),
            proxies: configuration.trustedProxies, logger: logger)
        (listener, healthListener) = Self.listeners(configuration, credentials, connections, logger: logger)
        outcomes = RealmOutcomes(
            configuration.engine.realms.keys, capacity: configuration.memory.outcomes, clock: clock, logger: logger)
    }

    /// The gateway's address, and that of its health where it has one.
    private static func listeners(
        _ configuration: GatewayServerConfiguration, _ credentials: ServerCredentials, _ connections: OpenConnections,
        logger: Logger
    ) -> (Listener, Listener?) {
        var settings = Listener.Settings(
            host: configuration.host, port: configuration.gateway.port, portKey: "gateway.port",
            tls: credentials.tlsConfiguration(), configurationFile: configuration.file,
            bodies: configuration.bodies, sendsHSTS: configuration.sendsHSTS, proxies: configuration.trustedProxies,
            idleTimeout: .seconds(Int64(configuration.idleSeconds)))
        let gateway = Listener(settings, connections: connections, logger: logger)
        guard let port = configuration.healthPort else { return (gateway, nil) }
        (settings.port, settings.portKey) = (port, "listen.healthPort")
        return (gateway, Listener(settings, connections: connections, logger: logger))
    }

    /// The URL by which clients know the gateway, once it answers.
    ///
    /// Throws what ``run()`` throws when it does not come to that, for example because the port is taken.
    public var url: String {
        get async throws {
            let url = try await publicURL
            try await listener.waitUntilAnswering()
            try await healthListener?.waitUntilAnswering()
            return url
        }
    }

    /// The port that the gateway listens on, which need not be the one in its public URL.
    package var port: Int {
        get async throws { try await listener.port }
    }

    /// The port on which it says whether it is well; `nil` without one.
    package var healthPort: Int? {
        get async throws { try await healthListener?.port }
    }

    /// How many outcomes the engine has not heard of.
    package var unheardOutcomes: Int {
        get async { await outcomes.count }
    }

    /// Whether it waits, for one of its realms, before it tells the engine again.
    package var isPausing: Bool {
        get async { await outcomes.isPausing }
    }

    private var publicURL: String {
        get async throws { IdentityServer.withPort(try await listener.port, in: configuration.gateway.publicURL) }
    }

    /// Serves until the service group shuts down; what has begun is finished first, as far as `drainSeconds` allows,
    /// and the engine is told what became of it. Cancelling ends all connections at once.
    public func run() async throws {
        do {
            try await serve()
            giveUpStarting(CancellationError())
        } catch {
            giveUpStarting(error)
            throw error
        }
    }

    /// Callers that wait for the address get an error, also when the gateway ends before a listener has begun.
    private func giveUpStarting(_ error: any Error) {
        for listener in [listener, healthListener].compactMap(\.self) { listener.giveUpStarting(error) }
    }

    private func serve() async throws {
        let upstream = try Upstream(configuration.gateway.routes.map(\.upstream), clock: clock, logger: logger)
        let engine = try EngineTransport(configuration.engine, clock: clock, logger: logger)
        let deadlines = Deadlines()
        // Not a child: it goes on after the group, and is ended by hand.
        let reporting = Task { [outcomes] in await outcomes.run() }
        let group = ServiceGroup(configuration: .init(services: services(upstream, engine), logger: logger))
        let result: Result<Void, any Error>
        do {
            try await withTaskCancellationHandler {
                try await withGracefulShutdownHandler {
                    try await group.run()
                } onGracefulShutdown: { [self] in
                    connections.drain()
                    deadlines.add(Int64(configuration.drainSeconds)) { [self] in
                        cut(upstream, because: "it took longer than drainSeconds", deadlines)
                    }
                }
            } onCancel: {
                cut(upstream, because: "the stop was cut short", deadlines)
            }
            result = .success(())
        } catch {
            cut(upstream, because: "the gateway failed", deadlines)
            result = .failure(error)
        }
        await connections.waitUntilServed()
        await upstream.shutdown()
        deadlines.add(Int64(configuration.reportingSeconds)) { reporting.cancel() }
        await outcomes.finish()
        await reporting.value
        await engine.shutdown()
        deadlines.cancel()
        try result.get()
    }

    private func services(
        _ upstream: Upstream, _ engine: EngineTransport
    ) -> [ServiceGroupConfiguration.ServiceConfiguration] {
        var services: [any Service] = [
            Together(services: [listener] + (healthListener.map { [$0] } ?? [])), certificate,
            Starting { try await self.startAnswering(upstream, engine) },
        ]
        if upstream.hasChecks { services.append(UpstreamChecks(upstream: upstream, clock: clock)) }
        // Without a name a group writes a service's whole content into the log, the configuration with it.
        return services.map {
            .init(service: $0, successTerminationBehavior: .ignore, serviceName: "\(type(of: $0))")
        }
    }

    /// Makes the parts, once the gateway's address is known.
    private func startAnswering(_ upstream: Upstream, _ transport: EngineTransport) async throws {
        let url = try await publicURL
        let origin = try Origin(url)
        let decisions = RemoteDecisions(
            try configuration.engine.clients(over: transport, clock: clock, random: random),
            cache: DecisionCache(capacity: configuration.memory.decisions, clock: clock, random: random),
            outcomes: outcomes, clock: clock, random: random, logger: logger)
        listener.answer(
            with: Gateway(
                publicOrigin: origin, serverURL: configuration.engine.publicURL,
                hosts: try ServedHosts(urls: [url], names: configuration.hosts),
                routes: configuration.gateway.routes, decisions: decisions,
                cookie: SessionCookie(name: configuration.cookieName), upstream: upstream,
                tunnels: TunnelCount(perAddress: configuration.connectionsPerAddress), logger: logger))
        healthListener?.answer(
            with: GatewayHealth(certificate: certificate, undecidedRealms: decisions.undecidedRealms))
        // Behind a load balancer the port in the public URL is not this gateway's.
        let port = try await listener.port
        logger.notice(
            "serving",
            metadata: ["gateway": "\(url)", "gatewayPort": "\(port)", "engine": "\(configuration.engine.url)"])
    }

    /// Ends all connections, to clients and to services.
    private func cut(_ upstream: Upstream, because reason: String, _ deadlines: Deadlines) {
        let count = connections.cut()
        if count > 0 {
            logger.warning("connections were cut", metadata: ["reason": "\(reason)", "connections": "\(count)"])
        }
        Task { await upstream.shutdown() }
        deadlines.add(Int64(configuration.reportingSeconds)) { [self] in
            let count = connections.abandon()
            if count > 0 { logger.warning("requests were given up", metadata: ["requests": "\(count)"]) }
        }
    }
}

extension EngineSettings {
    /// What asks the engine, by realm, each with a client of its own.
    ///
    /// - Throws: `EnforcementError` or `JOSEError` for a URL, a realm or a key that the loader should have refused.
    func clients(
        over transport: any HTTPTransport, clock: any WallClock, random: any RandomSource
    ) throws -> [String: EnforcementClient] {
        var clients: [String: EnforcementClient] = [:]
        for (realm, client) in realms {
            let transport = try self.transport(of: client, over: transport, clock: clock, random: random)
            let account = try self.account(of: client, realm: realm, over: transport, clock: clock, random: random)
            clients[realm] = EnforcementClient(
                try PolicyServer(url, realm: realm), credentials: account, transport: transport, clock: clock)
        }
        return clients
    }
}
