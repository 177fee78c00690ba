import AssentAuthorization
package import AssentCore
import AssentTokens
import AssentTransportNIO
public import AssentTrust
import Logging

extension Assent {
    /// The version of the trust file that is in force; `nil` where the app has none, or the vault's cannot be read.
    public var trustVersion: Int? { network.keeper?.inForce.version }

    /// What all calls go through, for the program's own.
    package var transport: any HTTPTransport { network.transport }

    /// Asks for a later trust file, unless that was done within the last hour by any process that shares the vault, and
    /// waits for it. Calls do this by themselves; a program that ends soon may do it on its own.
    ///
    /// ```swift
    /// let version = await assent.updateTrust()
    /// ```
    ///
    /// - Returns: the version in force; `nil` where the app has no trust file.
    @discardableResult
    public func updateTrust() async -> Int? { await network.keeper?.ask() }
}

extension Assent.Configuration {
    /// A configuration whose hosts, pins, credentials and issuer are those of a trust file, and change with it.
    ///
    /// ```swift
    /// let configuration = Assent.Configuration(server: server, client: client, trust: file, vault: vault)
    /// ```
    public init(
        server: String, realm: String = "/", client: Assent.Client, trust: TrustFile, vault: Assent.Vault
    ) {
        self.init(server: server, realm: realm, client: client, resources: [:], pins: [:], vault: vault)
        self.trust = trust
        issuer = trust.content.issuer
    }

    /// The way to the network: the app's own, or one of ours, below what the trust file allows.
    ///
    /// - Throws: `NIOTransportError`.
    func network(keeping store: any SecretStore) throws -> AssentNetwork {
        let pins = trust.map { $0.pins(at: $0.now(clock.now)) } ?? pins
        var own: NIOTransport?
        let below: any HTTPTransport
        if let transport {
            below = transport
        } else {
            let made = try NIOTransport(
                configuration: NIOTransportConfiguration(
                    trustRoots: trustRoots, pins: pins, allowPlaintextLoopback: allowPlaintextLoopback
                ).withLeastLimit(leastLimit), clock: clock, logger: logger)
            (own, below) = (made, made)
        }
        let source = transport ?? TrustSource(roots: trustRoots, leastLimit: leastLimit, clock: clock)
        let keeper = trust.map { file in
            TrustKeeper(
                shipped: file, in: .init(store: store, network: source, clock: clock, logger: logger),
                apply: { [own, logger] pins in
                    do { try own?.update(pins: pins) } catch {
                        // Nothing is called then: what was allowed before may be what was withdrawn.
                        try? own?.update(pins: [:])
                        logger.error("the trust file's pins cannot be used", metadata: ["reason": "\(error)"])
                    }
                })
        }
        var network = AssentNetwork(own: own, below: below, keeper: keeper)
        if let trust, let keeper {
            network.told = DeviceConfigurationKeeper(
                for: ConfiguredApp(audience: trust.audience, version: appVersion), trust: keeper.inForce,
                issuer: issuer ?? trust.content.issuer,
                in: .init(store: store, network: network.transport, clock: clock, logger: logger))
        }
        return network
    }

    /// The app's version as the server hears it.
    var appVersion: String { client.version ?? registration?.softwareVersion ?? "0" }

    /// Which origins are protected resources: those of the trust file in force where there is one.
    ///
    /// - Throws: `AuthorizationError` with code `invalidConfiguration`.
    func authorization(_ network: AssentNetwork) throws -> AuthorizationConfiguration {
        guard let trust, let keeper = network.keeper else {
            return try AuthorizationConfiguration(resources: resources, requiresBinding: requiresBinding)
        }
        let origins = trust.content.hosts.compactMap(\.origin)
        var settings = try AuthorizationConfiguration(
            resources: Dictionary(
                origins.map { ($0.description, ResourceAccess(of: trust.kinds(of: $0) ?? [])) },
                uniquingKeysWith: { $1 }),
            requiresBinding: requiresBinding)
        settings.changing = { origin in keeper.inForce.kinds(of: origin).map(ResourceAccess.init(of:)) }
        settings.settled = { keeper.inForce.isSettled }
        let admission = network.admission
        settings.settle = { call in
            try await keeper.settle()
            try await admission?.admitCall(call)
        }
        return settings
    }
}

extension ResourceAccess {
    /// The access tokens of these kinds, or nothing.
    fileprivate init(of kinds: Set<CallKind>) { self = kinds.isEmpty ? .nothing : .accessToken(of: kinds) }
}

/// The ways out of this process.
struct AssentNetwork: Sendable {
    /// Ours, where the app has none.
    let own: NIOTransport?
    let keeper: TrustKeeper?

    /// What the server tells the app; `nil` without a trust file, whose keys sign it.
    var told: DeviceConfigurationKeeper?

    /// What all calls of the SDK go through.
    let transport: any HTTPTransport

    init(own: NIOTransport?, below: any HTTPTransport, keeper: TrustKeeper?) {
        (self.own, self.keeper) = (own, keeper)
        transport = keeper.map { TrustedTransport($0, over: below) } ?? below
    }

    /// Holds the app to what the server tells it; `nil` without a trust file.
    var admission: DeviceAdmission? { told.map(DeviceAdmission.init) }

    /// A way on which nothing is sent that the server does not let this version of the app send. The probes are asked
    /// before the server is: that is a call as well.
    func admitting(_ pipeline: HTTPPipeline, _ integrity: IntegrityGuard) -> HTTPPipeline {
        admission.map { HTTPPipeline(pipeline, layers: [IntegrityAhead(integrity: integrity), $0]) } ?? pipeline
    }

    func shutdown() async {
        await told?.finish()
        await keeper?.finish()
        await own?.shutdown()
    }
}

/// Carries the questions for later trust files. Their signature alone is believed, so the source has no pins: it is
/// asked above all when the pins are wrong.
private struct TrustSource: HTTPTransport {
    let roots: TrustRoots
    let leastLimit: Duration?
    let clock: any WallClock

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        let origin: Origin
        do throws(WireError) {
            origin = try call.origin
        } catch {
            throw HTTPTransportError(.invalidRequest, "The source's URL cannot be used: \(error.detail).")
        }
        var settings = NIOTransportConfiguration(trustRoots: roots, pins: [origin.authority: .unpinned])
        settings.keepsConnections = false
        settings.leastLimit = leastLimit
        return try await NIOTransport(configuration: settings, clock: clock).send(call)
    }
}
