import AssentConfiguration
public import AssentCore
package import AssentEngine
import AssentStore
import Foundation
public import Logging
import NIOCore
import NIOPosix
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
    let database: SQLiteDatabase
    private let credentials: ServerCredentials
    private let keys: ServerKeys
    let connections = OpenConnections()
    private let serverListener: Listener
    private let gatewayListener: Listener?
    private let directory: DataDirectory
    private let passwords: Passwords
    private let firstStart: FirstStart
    private let logger: Logger

    /// Opens the database, brings its schema up to date, makes what a first start needs, and checks everything that can be
    /// checked before a request comes.
    ///
    /// Throws ``ConfigurationError`` with what to do.
    public init(
        configuration: ServerConfiguration, clock: any WallClock = SystemClock(),
        random: any RandomSource = SystemRandom(), logger: Logger
    ) async throws {
        self.configuration = configuration
        self.logger = logger
        directory = try DataDirectory(configuration.dataDirectory)
        let masterKey = try directory.masterKey(keyFile: configuration.masterKeyFile, random: random)
        try directory.keepDatabasePrivate()
        database = try await Self.explaining(directory.database) { [directory] in
            try await SQLiteDatabase(path: directory.database, clock: clock)
        }
        context = EngineContext(
            database: database, clock: clock, random: random, masterKey: masterKey, logger: logger)
        keys = try ServerKeys(context)
        credentials =
            switch configuration.tls {
            case .generated: try ServerCredentials.generated(in: directory, now: clock.now)
            case .files(let certificate, let privateKey):
                try ServerCredentials.files(certificate: certificate, privateKey: privateKey)
            }
        for host in try credentials.hostsNotNamed(in: configuration.publicURLs) {
            logger.warning(
                "the certificate does not name a host of publicURL: clients refuse it", metadata: ["host": "\(host)"])
        }
        passwords = Passwords(
            context, policy: PasswordPolicy(logN: configuration.passwordCost.trailingZeroBitCount))
        let tls = credentials.tlsConfiguration()
        serverListener = Listener(
            host: configuration.host, port: configuration.port, tls: tls, configurationFile: configuration.file,
            connections: connections, logger: logger)
        gatewayListener = configuration.gateway.map { [connections] in
            Listener(
                host: configuration.host, port: $0.port, tls: tls, configurationFile: configuration.file,
                connections: connections, logger: logger)
        }
        let seeding = UserSeeding(
            context: context, passwords: passwords, isDevelopment: configuration.isDevelopment)
        let plan = try await Self.explaining(directory.database) { try await seeding.plan(configuration.realms) }
        firstStart = FirstStart(
            context: context, seeding: seeding, plan: plan, bootstrapPath: directory.file("bootstrap-token"))
    }

    private static func explaining<Result>(_ database: String, _ body: () async throws -> Result) async throws -> Result
    {
        do {
            return try await body()
        } catch let error as StoreError {
            throw ConfigurationError(
                file: database, line: nil,
                "the database cannot be used: \(error). Look at who owns the file, at its mode, and at the disk")
        }
    }

    /// What clients must know, once the server listens.
    ///
    /// By then the users of the configuration are stored. Throws what ``run()`` throws when it does not come to that, for
    /// example because a port is taken: then nothing was stored.
    public var endpoints: Endpoints {
        get async throws {
            let publicURL = Self.withPort(try await serverListener.port, in: configuration.publicURL)
            var gatewayURL: String?
            if let gateway = configuration.gateway, let gatewayListener {
                gatewayURL = Self.withPort(try await gatewayListener.port, in: gateway.publicURL)
            }
            let stored = try await Self.explaining(directory.database) { try await firstStart.result() }
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
        get async throws { try await serverListener.port }
    }

    /// The audit records of a transaction, oldest first.
    package func auditRecords(transactionID: String) async throws -> [AuditRecord] {
        try await AuditLog(context).records(transactionID: transactionID)
    }

    /// Serves until the service group shuts down; what has begun is finished first, as far as
    /// ``ServerConfiguration/drainSeconds`` allow. Cancelling ends all connections at once; what was forwarded is recorded all
    /// the same.
    public func run() async throws {
        // Whoever waits for the endpoints is told, also when it ends before a listener has begun.
        defer { for listener in [serverListener, gatewayListener].compactMap(\.self) { listener.giveUpStarting() } }
        let upstream = try Upstream(services: (configuration.gateway?.routes ?? []).map(\.upstream), logger: logger)
        let group = ServiceGroup(
            configuration: .init(services: try services(upstream), logger: logger))
        let deadline = Locked<Scheduled<Void>?>(nil)
        let result: Result<Void, any Error>
        do {
            try await withTaskCancellationHandler {
                try await withGracefulShutdownHandler {
                    try await group.run()
                } onGracefulShutdown: { [self] in
                    let scheduled = MultiThreadedEventLoopGroup.singleton.any().scheduleTask(
                        in: .seconds(Int64(configuration.drainSeconds))
                    ) { [self] in cut(upstream, because: "it took longer than drainSeconds") }
                    deadline.withLock { $0 = scheduled }
                }
            } onCancel: {
                cut(upstream, because: "the stop was cut short")
            }
            result = .success(())
        } catch {
            cut(upstream, because: "the server failed")
            result = .failure(error)
        }
        await connections.waitUntilServed()
        deadline.withLock { $0?.cancel() }
        await upstream.shutdown()
        try? database.close()
        try result.get()
    }

    private func services(_ upstream: Upstream) throws -> [ServiceGroupConfiguration.ServiceConfiguration] {
        let services: [any Service] = [
            Together(services: [serverListener] + (gatewayListener.map { [$0] } ?? [])),
            Housekeeping(
                context: context, grants: Array(try makeGrants(publicURL: configuration.publicURL).values),
                authentication: try makeAuthentication(), keys: keys),
            Starting { try await self.startAnswering(upstream) },
        ]
        // Without a name a group writes a service's whole content into the log, the configuration with it.
        return services.map {
            .init(service: $0, successTerminationBehavior: .ignore, serviceName: "\(type(of: $0))")
        }
    }

    /// Ends all connections, to clients and to services.
    private func cut(_ upstream: Upstream, because reason: String) {
        let count = connections.cut()
        if count > 0 {
            logger.warning("connections were cut", metadata: ["reason": "\(reason)", "connections": "\(count)"])
        }
        Task { await upstream.shutdown() }
    }

    private var authorityFile: String? {
        credentials.authorityPEM == nil ? nil : directory.file("authority.pem")
    }

    private static func withPort(_ port: Int, in url: String) -> String {
        guard var parts = URLComponents(string: url), parts.port == 0 else { return url }
        parts.port = port
        return parts.string ?? url
    }

    private func makeGrants(publicURL: String) throws -> [String: Grants] {
        var grants: [String: Grants] = [:]
        for realm in configuration.realms {
            let base = publicURL + "/oauth2" + RealmPath.path(of: realm.name)
            grants[realm.name] = try Grants(
                context, keys: keys,
                configuration: GrantConfiguration(realm: realm.name, issuer: base, clients: realm.clients))
        }
        return grants
    }

    private func makeAuthentication() throws -> Authentication {
        try Authentication(
            context, settings: settings,
            transactions: Transactions(context, limits: configuration.transactionLimits), passwords: passwords,
            oneTimePasswords: OneTimePasswords(context))
    }

    private func startAnswering(_ upstream: Upstream) async throws {
        let endpoints = try await endpoints
        let sessions = Sessions(context)
        let cookie = SessionCookie(name: configuration.cookieName)
        let grants = try makeGrants(publicURL: endpoints.server)
        let transactions = Transactions(context, limits: configuration.transactionLimits)
        let access = AccessSettlement(
            context, decisions: PolicyDecisionPoint(policySets: configuration.realms.flatMap(\.policySets)),
            transactions: transactions)
        let authentication = try makeAuthentication()
        if let gateway = configuration.gateway, let gatewayListener, let url = endpoints.gateway {
            let origin = try Origin(url)
            gatewayListener.answer(
                with: Gateway(
                    publicOrigin: origin, serverURL: endpoints.server, routes: gateway.routes,
                    access: GatewayAccess(
                        callers: Callers(sessions: sessions, providers: grants), settlement: access),
                    cookie: cookie, upstream: upstream, logger: logger))
        }
        serverListener.answer(
            with: ServerHandler(
                basePath: URLComponents(string: endpoints.server)?.path ?? "",
                realms: Set(configuration.realms.map(\.name)),
                authenticate: AuthenticateRoute(authentication: authentication, cookie: cookie),
                sessions: SessionRoutes(sessions: sessions, cookie: cookie),
                policies: PolicyRoutes(sessions: sessions, access: access, cookie: cookie),
                oauth: OAuthRoutes(grants: grants, sessions: sessions, cookie: cookie, serverURL: endpoints.server),
                administration: AdministrationRoutes(
                    administration: Administration(context), keys: keys, sessions: sessions, cookie: cookie),
                signIn: SignInRoute(
                    authentication: authentication, grants: grants, cookie: cookie,
                    origin: try Origin(endpoints.server), gateway: try endpoints.gateway.map { try Origin($0) },
                    basePath: URLComponents(string: endpoints.server)?.path ?? "", logger: logger),
                health: HealthRoutes(database: database), cookie: cookie, logger: logger))
        logger.notice(
            "serving", metadata: ["server": "\(endpoints.server)", "gateway": "\(endpoints.gateway ?? "none")"])
    }

    private var settings: AuthenticationSettings {
        var realms: [String: RealmAuthentication] = [:]
        for realm in configuration.realms {
            realms[realm.name] = RealmAuthentication(
                journeys: realm.journeys, defaultJourney: realm.defaultJourney, sessionLimits: realm.sessionLimits,
                failedTransaction: FailedTransaction(rawValue: realm.transactionFailureStatus) ?? .success)
        }
        return AuthenticationSettings(
            realms: realms, startsPerMinute: Int64(configuration.journeyStartsPerMinute))
    }
}

/// What clients of a running server must know.
public struct Endpoints: Sendable {
    /// The server's URL, for example `https://localhost:8443/am`.
    public let server: String

    /// The gateway's URL, when there is a gateway.
    public let gateway: String?

    /// The PEM file of the CA to trust, when it is a generated one.
    public let authorityFile: String?

    /// The pins of the certificate's key and of its issuer's; one alone when the issuer's certificate is not in the chain's file.
    public let pins: [Pin]

    /// The name of the session cookie.
    public let cookieName: String

    /// The accounts that this start has made with random credentials. Show them to the operator once.
    public let accounts: [GeneratedAccount]

    /// The file with the one-time token that makes the first administrator, while there is none.
    public let bootstrapFile: String?
}

/// Services that stop at the same time; a group's own stop one after the other.
private struct Together: Service {
    let services: [any Service]

    func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            for service in services {
                group.addTask { try await service.run() }
            }
        }
    }
}

/// Runs once, beside the listeners.
private struct Starting: Service {
    let work: @Sendable () async throws -> Void

    func run() async throws { try await work() }
}
