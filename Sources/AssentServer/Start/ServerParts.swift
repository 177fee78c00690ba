import AssentCore
import AssentEngine
import Foundation
import Logging

/// The composition root: everything that answers requests, made once and handed on.
struct ServerParts: Sendable {
    private let context: EngineContext
    private let configuration: ServerConfiguration
    private let endpoints: Endpoints
    private let cookie: SessionCookie
    private let keys: ServerKeys
    private let sessions: Sessions
    private let providers: [String: OAuthProvider]
    private let passwords: Passwords
    private let proofs: SenderProofs
    private let payload: PayloadParts
    private let callers: Callers
    private let access: AccessSettlement
    private let authentication: Authentication
    private let signing: [String: SigningProvider]
    private let watch: NodeWatch
    private let trustFiles: TrustFileShelf
    /// The certificate that clients see, where one is watched.
    var certificate: CertificateWatch?

    /// The parts of a server at these addresses.
    ///
    /// - Throws: ``EngineError`` or `SettingsIssue` for a configuration that the loader should have refused.
    init(
        _ context: EngineContext, configuration: ServerConfiguration, keys: ServerKeys, passwords: Passwords,
        cookie: SessionCookie, watch: NodeWatch, endpoints: Endpoints, notifier: (any Notifier)?
    ) throws {
        self.context = context
        self.configuration = configuration
        self.endpoints = endpoints
        self.cookie = cookie
        self.watch = watch
        trustFiles = TrustFileShelf(configuration.trustFiles, clock: context.clock, logger: context.logger)
        self.keys = keys
        self.passwords = passwords
        sessions = Sessions(
            context, apps: Dictionary(configuration.realms.map { ($0.name, $0.apps) }, uniquingKeysWith: { $1 }))
        signing = try Self.signing(context, configuration.realms, endpoints: endpoints, notifier: notifier)
        let keySets = try configuration.clientKeys(context)
        var providers: [String: OAuthProvider] = [:]
        for realm in configuration.realms {
            var settings = OAuthProviderConfiguration(
                realm: realm.name, issuer: "\(endpoints.server)/oauth2\(RealmPath.path(of: realm.name))",
                clients: realm.clients, contexts: realm.contexts, scopeTexts: realm.scopeTexts)
            settings.signing = signing[realm.name]
            settings.tokensKeepSessions = realm.tokensKeepSessions
            settings.requiresNonce = realm.requiresNonce
            settings.takesIntegrityReports = realm.takesIntegrityReports
            settings.sessionLimits = realm.sessionLimits
            settings.apps = Dictionary(realm.apps.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
            settings.deviceConfigurations = try realm.deviceConfiguration.map {
                try DeviceConfigurations(
                    context, realm: realm.name, apps: settings.apps, settings: $0, pin: realm.signing?.loginRules)
            }
            providers[realm.name] = try OAuthProvider(
                context, keys: keys, configuration: settings, keySets: keySets)
        }
        self.providers = providers
        proofs = SenderProofs(context, isDatabaseTimed: configuration.isDatabaseTimed)
        payload = PayloadParts(context, proofs: proofs, versions: configuration.sealedVersions)
        callers = Callers(sessions: sessions, providers: providers, proofs: proofs)
        let transactions = Transactions(context, limits: configuration.transactionLimits)
        access = AccessSettlement(
            context, decisions: PolicyDecisionPoint(policySets: configuration.realms.flatMap(\.policySets)),
            transactions: transactions)
        authentication = Authentication(
            context, realms: try configuration.signIn, startsPerMinute: Int64(configuration.journeyStartsPerMinute),
            transactions: transactions, passwords: passwords,
            oneTimePasswords: OneTimePasswords(context, limits: configuration.oneTimePasswords),
            signing: signing, proofs: proofs, clients: providers.mapValues(\.configuration))
    }

    /// Transaction signing, by realm. An issuer is named by the address that clients know.
    private static func signing(
        _ context: EngineContext, _ realms: [RealmConfiguration], endpoints: Endpoints,
        notifier: (any Notifier)?
    ) throws -> [String: SigningProvider] {
        var providers: [String: SigningProvider] = [:]
        for realm in realms {
            guard var settings = realm.signing else { continue }
            settings.issuer = SigningIssuer(
                name: "\(endpoints.server)/signing\(RealmPath.path(of: realm.name))", realm: realm.name)
            if let fault = settings.faults().first { throw EngineError(.internalFailure, fault) }
            providers[realm.name] = SigningProvider(context, settings: settings, notifier: notifier)
        }
        return providers
    }

    /// What is due before the first request.
    ///
    /// - Throws: `StoreError`.
    func begin() async throws {
        for provider in providers.values { try await provider.configuration.deviceConfigurations?.begin() }
        await trustFiles.begin()
    }

    /// What deletes expired rows.
    var housekeeping: Housekeeping {
        Housekeeping(
            context: context, sessions: sessions, transactions: access.transactions,
            providers: Array(providers.values), authentication: authentication, keys: keys,
            proofs: proofs, payload: payload, watch: watch,
            policies: Nodes.digest(of: configuration.realms.flatMap(\.policySets)), certificate: certificate)
    }

    /// The hosts that requests may name.
    private var hosts: ServedHosts {
        get throws {
            try ServedHosts(
                urls: [endpoints.server, endpoints.gateway].compactMap(\.self), names: configuration.hosts)
        }
    }

    /// What answers at the server's address, plainly and sealed.
    ///
    /// - Throws: `WireError` when an address is not a URL.
    func serverDoor() throws -> SealedDoor {
        SealedDoor(
            plain: try serverHandler(callers), opened: try serverHandler(callers.ofSealedRequests),
            origin: try Origin(endpoints.server), server: .authorizationServer,
            handshakes: payload.handshakes, sessions: payload.sessions, clock: context.clock, logger: context.logger)
    }

    /// What answers at the gateway's address, plainly and sealed; `nil` without a gateway.
    ///
    /// - Throws: `WireError` when the address is not a URL.
    func gatewayDoor(upstream: Upstream) throws -> SealedDoor? {
        guard let gateway = try gateway(upstream: upstream, callers),
            let opened = try self.gateway(upstream: upstream, callers.ofSealedRequests), let url = endpoints.gateway
        else { return nil }
        return SealedDoor(
            plain: gateway, opened: opened, origin: try Origin(url), server: .gateway,
            handshakes: payload.handshakes, sessions: payload.sessions, clock: context.clock, logger: context.logger)
    }

    /// What an operator has to do about the keys of payload encryption.
    ///
    /// - Throws: `StoreError`.
    var payloadWarnings: [String] {
        get async throws {
            let warnings = try await payload.keys.warnings()
            guard let sealed = configuration.sealedVersions.warning, try await payload.keys.isEmpty else {
                return warnings
            }
            return warnings + [sealed]
        }
    }

    private func serverHandler(_ callers: Callers) throws -> ServerHandler {
        let basePath = URLComponents(string: endpoints.server)?.path ?? ""
        let own = try Origin(endpoints.server)
        let origin = own.description
        let origins = WebOrigins(configuration.realms, own: own)
        let check = CallerCheck(callers: callers, cookie: cookie, clients: providers, origin: origin)
        return ServerHandler(
            basePath: basePath, hosts: try hosts,
            json: RouteRunner(
                JSONWire(logger: context.logger), RouteTable.json, handlers: jsonRoutes(origin, origins),
                services: providers, callers: check, origins: origins),
            oauth: RouteRunner(
                OAuthWire(design: configuration.pages, basePath: basePath), RouteTable.oauth,
                handlers: OAuthRoutes(
                    callers: callers, cookie: cookie, proofs: proofs,
                    origin: origin, serverURL: endpoints.server, links: WebLinks(context),
                    reports: IntegrityReports(context),
                    design: configuration.pages),
                services: providers, callers: check, origins: origins),
            signing: RouteRunner(
                SigningWire(logger: context.logger), RouteTable.signing, handlers: SigningRoutes(), services: signing,
                callers: check, origins: origins),
            enforcement: RouteRunner(
                EnforcementWire(logger: context.logger), RouteTable.enforcement, handlers: EnforcementRoutes(),
                services: enforcement, callers: check, origins: origins),
            signIn: SignInRoute(
                authentication: authentication, callers: callers, sessions: sessions, grants: providers, cookie: cookie,
                origin: own, gateway: try endpoints.gateway.map { try Origin($0) },
                routes: configuration.gateway?.routes ?? [], basePath: basePath, design: configuration.pages,
                logger: context.logger),
            webLink: WebLinkRoute(
                links: WebLinks(context), callers: callers, grants: providers, cookie: cookie, origin: own,
                basePath: basePath, design: configuration.pages, logger: context.logger),
            trustFiles: TrustFileRoute(shelf: trustFiles),
            health: HealthRoutes(
                database: context.database, passwords: passwords, watch: watch, certificate: certificate))
    }

    /// What answers gateways elsewhere, in the realms that have some. Whatever way their questions come, what they ask
    /// about has come to them plainly.
    private var enforcement: [String: EnforcementDesk] {
        let access = RemoteAccess(GatewayAccess(callers: callers, settlement: access, keys: keys))
        let desks = configuration.realms.filter { !$0.enforcement.isEmpty }.map {
            ($0.name, EnforcementDesk($0.enforcement, access: access))
        }
        return Dictionary(desks, uniquingKeysWith: { $1 })
    }

    private func jsonRoutes(_ origin: String, _ origins: WebOrigins) -> JSONRoutes {
        let realms = configuration.realms
        let administration = Administration(
            context, sharingRealm: (realms.first(where: \.isAdministrationRealm) ?? realms.first)?.name)
        return JSONRoutes(
            authenticate: AuthenticateRoute(authentication: authentication, cookie: cookie, origin: origin),
            sessions: SessionRoutes(
                sessions: sessions, cookie: cookie, proofs: proofs, providers: providers, origin: origin,
                origins: origins),
            policies: PolicyRoutes(sessions: sessions, access: access),
            administration: AdministrationRoutes(
                administration: administration,
                users: UserAdministration(
                    administration, passwords: passwords, rules: configuration.passwordRules),
                registrations: RegistrationAdministration(administration), keys: keys,
                payloadKeys: PayloadKeyAdministration(
                    administration, keys: payload.keys, sessions: payload.sessions)),
            cookie: cookie)
    }

    private func gateway(upstream: Upstream, _ callers: Callers) throws -> Gateway? {
        guard let gateway = configuration.gateway, let url = endpoints.gateway else { return nil }
        return Gateway(
            publicOrigin: try Origin(url), serverURL: endpoints.server, hosts: try hosts,
            routes: gateway.routes,
            decisions: LocalDecisions(access: GatewayAccess(callers: callers, settlement: access, keys: keys)),
            cookie: cookie, upstream: upstream,
            tunnels: TunnelCount(perAddress: configuration.connectionsPerAddress), logger: context.logger)
    }
}

extension ServerConfiguration {
    /// The addresses from which the keys of clients are fetched.
    var keyAddresses: [String] {
        realms.flatMap(\.clients).compactMap { client in
            if case .keyed(let keys) = client.kind, case .fetched(let url) = keys.source { url } else { nil }
        }
    }

    /// All addresses that the server calls of itself.
    var calledAddresses: [String] { keyAddresses + [webhook?.url].compactMap(\.self) }

    /// What fetches the keys of clients; `nil` when no client has keys at an address.
    fileprivate func clientKeys(_ context: EngineContext) throws -> ClientKeyCache? {
        guard !keyAddresses.isEmpty else { return nil }
        let calls = try OutboundCalls(
            to: keyAddresses, settings: outbound, clock: context.clock, logger: context.logger)
        return ClientKeyCache(clock: context.clock, calls: calls)
    }

    /// How the realms sign users in.
    fileprivate var signIn: [String: RealmSignIn] {
        get throws {
            var signIn: [String: RealmSignIn] = [:]
            for realm in realms {
                signIn[realm.name] = try RealmSignIn(
                    journeys: realm.journeys, defaultJourney: realm.defaultJourney,
                    sessionLimits: realm.sessionLimits,
                    failedTransaction: realm.transactionFailureStatus == 401 ? .failure : .success,
                    remembersNetworks: realm.policySets.contains(where: \.asksForNetwork))
            }
            return signIn
        }
    }
}
