import AssentConfiguration
import AssentCore
import AssentTransportNIO
import Foundation
import Logging
import NIOCore
import NIOPosix

/// The connections to services that need the same of TLS.
struct UpstreamTransports: Sendable {
    /// For requests that may stream and repeat: each event loop has its own connections, so that a request that is
    /// answered on one never changes threads.
    private let kept: [ObjectIdentifier: NIOTransport]

    /// One of them, for who is on no event loop and wants a kept connection all the same.
    private let shared: NIOTransport

    /// For requests that must not go out on a connection that the service may be closing right now: each has its own.
    /// It stands in also for requests that come from no event loop.
    private let single: NIOTransport

    private static let connectionsPerLoop = 1024

    /// Connections to services at these origins. Each limit in time of a call is at least `leastLimit`, if any.
    ///
    /// - Throws: ``/AssentConfiguration/ConfigurationError`` for a file that cannot be used, else `NIOTransportError`.
    init(
        to origins: some Sequence<Origin>, _ tls: UpstreamSettings.TLS, leastLimit: Duration? = nil,
        clock: any WallClock, group: any EventLoopGroup, logger: Logger
    ) throws {
        let requirement: PinRequirement =
            switch tls.pins.count {
            case 0: .unpinned
            case 1: .singlePin(tls.pins[0])
            default: .pins(tls.pins)
            }
        var configuration = NIOTransportConfiguration(
            trustRoots: tls.authorities,
            pins: Dictionary(
                origins.filter(\.isSecure).map { ("\($0.host):\($0.port)", requirement) }, uniquingKeysWith: { $1 }))
        configuration.clientIdentity = try tls.certificate.map(Self.identity)
        configuration.allowsPlaintext = true
        configuration.maximumConnectionsPerOrigin = Self.connectionsPerLoop
        configuration.maximumWaitingPerOrigin = 0
        configuration.leastLimit = leastLimit
        // Calls that get more time must not lose their connections meanwhile.
        if let leastLimit { configuration.idleTimeout = max(configuration.idleTimeout, leastLimit) }
        do {
            let trust = try PinnedChainEvaluator(roots: configuration.trustRoots, clock: clock)
            var kept: [ObjectIdentifier: NIOTransport] = [:]
            for loop in group.makeIterator() {
                kept[ObjectIdentifier(loop)] = try NIOTransport(
                    configuration: configuration, trust: trust, eventLoopGroup: loop, logger: logger)
            }
            configuration.keepsConnections = false
            single = try NIOTransport(configuration: configuration, trust: trust, eventLoopGroup: group, logger: logger)
            self.kept = kept
            shared = kept.values.first ?? single
        } catch {
            throw Self.naming(error, tls)
        }
    }

    /// The error with the file that it is about.
    private static func naming(_ error: any Error, _ tls: UpstreamSettings.TLS) -> any Error {
        switch ((error as? NIOTransportError)?.code, tls.authorities, tls.certificate) {
        case (.invalidTrustRoots?, .pemFile(let path), _):
            ConfigurationError(file: path, line: nil, "holds no certificates of authorities in PEM")
        case (.invalidClientIdentity?, _, let certificate?):
            ConfigurationError(
                file: certificate.privateKey, line: nil,
                "must be the key, in PEM, of the first certificate in \(certificate.chain)")
        default: error
        }
    }

    /// Reads the gateway's own certificate.
    private static func identity(_ certificate: UpstreamSettings.TLS.Certificate) throws -> ClientIdentity {
        let chain: String
        do {
            chain = try String(contentsOfFile: certificate.chain, encoding: .utf8)
        } catch {
            throw ConfigurationError(
                file: certificate.chain, line: nil,
                "cannot be read: \(ConfigurationFile.whyUnreadable(certificate.chain))")
        }
        return ClientIdentity(
            certificateChain: chain,
            privateKey: Secret(bytes: try PrivateFile.read(certificate.privateKey, isNamed: true)))
    }

    /// Sends a call: one that is sent once goes by a connection of its own, any other by one of the caller's loop.
    func send(_ call: HTTPCall) async throws -> HTTPReply {
        if call.isSentOnce { return try await single.send(call) }
        return try await (local ?? single).send(call)
    }

    /// Sends a call that may be repeated, wherever it comes from, by a connection that is kept.
    func sendKept(_ call: HTTPCall) async throws -> HTTPReply { try await (local ?? shared).send(call) }

    /// The one of the event loop on which this is asked.
    private var local: NIOTransport? {
        MultiThreadedEventLoopGroup.currentEventLoop.flatMap { kept[ObjectIdentifier($0)] }
    }

    /// Ends all connections.
    func shutdown() async {
        for transport in kept.values { await transport.shutdown() }
        await single.shutdown()
    }
}
