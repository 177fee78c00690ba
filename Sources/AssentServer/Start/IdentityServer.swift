import AssentConfiguration
public import AssentCore
public import AssentEngine
import AssentStore
import Foundation
public import Logging
import NIOCore
public import ServiceLifecycle

/// The server: journeys, sessions, tokens, policies, transactions, and the gateway in front of protected services.
///
/// ```swift
/// let server = try await IdentityServer(configuration: .load(file: "assent.yaml"), logger: logger)
/// try await ServiceGroup(services: [server], gracefulShutdownSignals: [.sigterm], logger: logger).run()
/// ```
public final class IdentityServer: Service {
    private let configuration: ServerConfiguration
    let context: EngineContext
    let database: any SQLDatabase
    private let credentials: ServerCredentials
    private let certificate: CertificateWatch
    private let keys: ServerKeys
    let connections: OpenConnections
    private let serverListener: Listener
    private let gatewayListener: Listener?
    private let directory: DataDirectory
    private let lock: DataDirectoryLock
    private let location: DatabaseLocation
    let passwords: Passwords
    private let cookie: SessionCookie
    private let firstStart: FirstStart
    private let watch: NodeWatch
    /// Whether this node deletes now what has expired.
    let isCleaning = Locked(false)
    private let notifier: (any Notifier)?
    private let webhook: WebhookNotifier?
    private let logger: Logger

    /// Opens the database, brings its schema up to date, makes what a first start needs, and checks everything that can
    /// be checked before a request comes.
    ///
    /// - Parameters:
    ///   - configuration: how the server is set up.
    ///   - clock: where the time comes from.
    ///   - random: where keys and ids come from.
    ///   - notifier: brings users at once what happens to their devices and what waits for them, by push or mail,
    ///     where the file has no `notify`; without either it is only logged, and devices hear it when they ask.
    ///   - logger: where the server writes.
    /// - Throws: ``/AssentConfiguration/ConfigurationError`` with what to do.
    public init(
        configuration: ServerConfiguration, clock: any WallClock = SystemClock(),
        random: any RandomSource = SystemRandom(), notifier: (any Notifier)? = nil, logger: Logger
    ) async throws {
        self.configuration = configuration
        self.logger = logger
        guard notifier == nil || configuration.webhook == nil else {
            throw ConfigurationError(
                file: configuration.file, line: nil,
                "notify: this program has a channel of its own to users: take the section out of the file")
        }
        try StartCheck.run(configuration)
        let webhook = try configuration.webhookNotifier(clock: clock, random: random, logger: logger)
        self.webhook = webhook
        self.notifier = notifier ?? webhook
        let store = try await OpenedStore(configuration, clock: clock, random: random, logger: logger)
        directory = store.directory
        lock = store.lock
        location = store.location
        database = store.database
        context = store.context
        watch = store.watch
        keys = ServerKeys(context)
        passwords = Passwords(
            context, policy: configuration.passwordPolicy)
        cookie = SessionCookie(
            name: configuration.cookieName, sameSite: configuration.cookieSameSite,
            isPartitioned: configuration.isCookiePartitioned)
        credentials = try Self.credentials(configuration, in: directory, now: clock.now, logger: logger)
        certificate = try CertificateWatch(
            credentials, isGenerated: configuration.tls == .generated, clock: clock, logger: logger)
        certificate.look()
        connections = OpenConnections(
            ConnectionLimits(
                descriptors: ConnectionLimits.processDescriptors, perAddress: configuration.connectionsPerAddress),
            proxies: configuration.trustedProxies, logger: logger)
        (serverListener, gatewayListener) = Self.listeners(configuration, credentials, connections, logger: logger)
        let seeding = UserSeeding(
            context: context, passwords: passwords, rules: configuration.passwordRules,
            isDevelopment: configuration.isDevelopment)
        let plan = try await location.explaining { try await seeding.plan(configuration.realms) }
        firstStart = FirstStart(
            context: context, seeding: seeding, plan: plan, realms: configuration.realms,
            bootstrapPath: directory.file("bootstrap-token"))
    }

    /// The certificate, with a word in the log where clients would refuse it.
    private static func credentials(
        _ configuration: ServerConfiguration, in directory: DataDirectory, now: Date, logger: Logger
    ) throws -> ServerCredentials {
        let credentials =
            switch configuration.tls {
            case .generated: try ServerCredentials.generated(in: directory, now: now)
            case .files(let certificate, let privateKey):
                try ServerCredentials.files(certificate: certificate, privateKey: privateKey, in: configuration.file)
            }
        for host in try credentials.hostsNotNamed(in: configuration.publicURLs) {
            logger.warning(
                "the certificate does not name a host of publicURL: clients refuse it", metadata: ["host": "\(host)"])
        }
        return credentials
    }

    /// The server's address, and the gateway's if there is one.
    private static func listeners(
        _ configuration: ServerConfiguration, _ credentials: ServerCredentials, _ connections: OpenConnections,
        logger: Logger
    ) -> (Listener, Listener?) {
        var settings = Listener.Settings(
            host: configuration.host, port: configuration.port, portKey: "listen.port",
            tls: credentials.tlsConfiguration(), configurationFile: configuration.file,
            bodies: configuration.bodies.server, sendsHSTS: configuration.sendsHSTS,
            proxies: configuration.trustedProxies,
            idleTimeout: .seconds(Int64(configuration.idleSeconds)))
        let server = Listener(settings, connections: connections, logger: logger)
        guard let gateway = configuration.gateway else { return (server, nil) }
        (settings.port, settings.portKey) = (gateway.port, "gateway.port")
        settings.bodies = configuration.bodies.gateway
        return (server, Listener(settings, connections: connections, logger: logger))
    }

    /// What clients must know, once the server answers.
    ///
    /// By then the users of the configuration are stored. Throws what ``run()`` throws when it does not come to that,
    /// for example because a port is taken: then nothing was stored.
    public var endpoints: Endpoints {
        get async throws {
            let endpoints = try await listeningEndpoints
            try await serverListener.waitUntilAnswering()
            try await gatewayListener?.waitUntilAnswering()
            return endpoints
        }
    }

    /// The same, before requests are answered with anything but 503.
    private var listeningEndpoints: Endpoints {
        get async throws {
            let publicURL = Self.withPort(try await serverPort, in: configuration.publicURL)
            var gatewayURL: String?
            if let gateway = configuration.gateway, let gatewayListener {
                gatewayURL = Self.withPort(try await gatewayListener.port, in: gateway.publicURL)
            }
            let stored = try await location.explaining { try await firstStart.result() }
            return Endpoints(
                server: publicURL, gateway: gatewayURL, authorityFile: authorityFile, pins: credentials.pins,
                cookieName: configuration.cookieName, accounts: stored.accounts, bootstrapFile: stored.bootstrapFile)
        }
    }

    /// The port that the gateway listens on, which need not be the one in its public URL; `nil` without a gateway.
    package var gatewayPort: Int? {
        get async throws { try await gatewayListener?.port }
    }

    /// The port that the server listens on, which need not be the one in its public URL.
    package var serverPort: Int {
        get async throws {
            do {
                return try await serverListener.port
            } catch let error as CancellationError {
                // It ends with the gateway, whose error says why.
                _ = try await gatewayListener?.port
                throw error
            }
        }
    }

    /// The audit records of a transaction, oldest first.
    package func auditRecords(transactionID: String) async throws -> [AuditRecord] {
        try await AuditLog(context).records(transactionID: transactionID)
    }

    /// Serves until the service group shuts down; what has begun is finished first, as far as
    /// `drainSeconds` allows, except for passwords that wait to be checked: those are refused. Cancelling ends all
    /// connections at once; what was forwarded is recorded all the same.
    public func run() async throws {
        do {
            try await serve()
            giveUpStarting(CancellationError())
        } catch {
            giveUpStarting(error)
            throw error
        }
    }

    /// Callers that wait for the endpoints get an error, also when the server ends before a listener has begun.
    private func giveUpStarting(_ error: any Error) {
        for listener in [serverListener, gatewayListener].compactMap(\.self) { listener.giveUpStarting(error) }
    }

    private func serve() async throws {
        let upstream: Upstream
        do {
            upstream = try Upstream(
                (configuration.gateway?.routes ?? []).map(\.upstream), clock: context.clock, logger: logger)
        } catch {
            await letGo()
            throw error
        }
        let group = ServiceGroup(
            configuration: .init(services: services(upstream), logger: logger))
        let deadlines = Deadlines()
        // Not a child: it goes on after the group, and is ended by hand.
        let notifying = Task { [webhook] in
            guard let webhook else { return }
            await webhook.run()
        }
        @Sendable func end(because reason: String) {
            cut(upstream, because: reason)
            deadlines.add(Int64(configuration.recordingSeconds)) { [self] in
                abandon()
                notifying.cancel()
            }
        }
        let result: Result<Void, any Error>
        do {
            try await withTaskCancellationHandler {
                try await withGracefulShutdownHandler {
                    try await group.run()
                } onGracefulShutdown: { [self] in
                    // First: those that are refused then must hear that their connection ends.
                    connections.drain()
                    passwords.drain()
                    deadlines.add(Int64(configuration.drainSeconds)) {
                        end(because: "it took longer than drainSeconds")
                    }
                }
            } onCancel: {
                end(because: "the stop was cut short")
            }
            result = .success(())
        } catch {
            end(because: "the server failed")
            result = .failure(error)
        }
        await connections.waitUntilServed()
        await upstream.shutdown()
        deadlines.add(Int64(configuration.recordingSeconds)) { notifying.cancel() }
        await webhook?.finish()
        await notifying.value
        // Its last statement may still wait for the database's server: the deadline is for that as well.
        await letGo()
        deadlines.cancel()
        try result.get()
    }

    /// Gives back what a start has taken: others may have it though somebody still refers to this server.
    private func letGo() async {
        watch.end()
        try? await database.close()
        lock.release()
    }

    private func services(_ upstream: Upstream) -> [ServiceGroupConfiguration.ServiceConfiguration] {
        var services: [any Service] = [
            Together(services: [serverListener] + (gatewayListener.map { [$0] } ?? [])),
            Starting { try await self.startAnswering(upstream) },
        ]
        if upstream.hasChecks { services.append(UpstreamChecks(upstream: upstream, clock: context.clock)) }
        // Without a name a group writes a service's whole content into the log, the configuration with it.
        return services.map {
            .init(service: $0, successTerminationBehavior: .ignore, serviceName: "\(type(of: $0))")
        }
    }

    /// Ends all connections, to clients and to services.
    private func cut(_ upstream: Upstream, because reason: String) {
        passwords.drain()
        let count = connections.cut()
        if count > 0 {
            logger.warning("connections were cut", metadata: ["reason": "\(reason)", "connections": "\(count)"])
        }
        Task { await upstream.shutdown() }
    }

    /// Waits no longer for requests that have not ended with their connections, nor for the database.
    private func abandon() {
        database.abandon()
        let count = connections.abandon()
        if count > 0 { logger.warning("requests were given up", metadata: ["requests": "\(count)"]) }
    }

    private var authorityFile: String? {
        credentials.authorityPEM == nil ? nil : directory.file("authority.pem")
    }

    static func withPort(_ port: Int, in url: String) -> String {
        guard var parts = URLComponents(string: url), parts.port == 0 else { return url }
        parts.port = port
        return parts.string ?? url
    }

    /// Makes the parts, once the server's address is known, and keeps house with them until the stop.
    private func startAnswering(_ upstream: Upstream) async throws {
        let endpoints = try await listeningEndpoints
        var parts = try ServerParts(
            context, configuration: configuration, keys: keys, passwords: passwords, cookie: cookie, watch: watch,
            endpoints: endpoints, notifier: notifier)
        parts.certificate = certificate
        try await parts.begin()
        if let gatewayListener, let gateway = try parts.gatewayDoor(upstream: upstream) {
            gatewayListener.answer(with: gateway)
        }
        serverListener.answer(with: try parts.serverDoor())
        for warning in try await parts.payloadWarnings { logger.warning("\(warning)") }
        // Behind a load balancer the ports in the public URLs are not this node's.
        let port = try await serverPort
        let gatewayPort = try await gatewayPort
        logger.notice(
            "serving",
            metadata: [
                "server": "\(endpoints.server)", "gateway": "\(endpoints.gateway ?? "none")", "port": "\(port)",
                "gatewayPort": "\(gatewayPort.map { "\($0)" } ?? "none")",
            ])
        var housekeeping = parts.housekeeping
        housekeeping.isCleaning = isCleaning
        try await housekeeping.run()
    }
}
