import AssentCore
import AssentTransportNIO
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOPosix

/// The protected services behind the routes.
struct Upstream: Sendable {
    /// Why there is no reply from the service.
    enum Failure: Error {
        /// It was never reached: nothing can have happened.
        case notForwarded
        /// The request may have reached it: what happened is unknown.
        case unknown
    }

    /// For requests that may stream and repeat: each event loop has its own connections, so that a request that is
    /// answered on one never changes threads.
    private let kept: [ObjectIdentifier: NIOTransport]

    /// For requests that must not go out on a connection that the service may be closing right now: each has its own.
    /// It stands in also for requests that come from no event loop.
    private let single: NIOTransport

    private let origins: [String: Origin]
    private let limits: HTTPLimits
    private let logger: Logger

    /// Long enough for a reply that streams all day.
    private static let longestExchange = Duration.seconds(24 * 3600)
    private static let connectionsPerLoop = 1024

    /// The services with these URLs (scheme, host and port).
    ///
    /// - Parameters:
    ///   - services: the URLs.
    ///   - timeout: how long a service may be silent.
    ///   - group: where requests are answered.
    ///   - logger: gets a line about each service that does not answer.
    /// - Throws: `WireError` or `NIOTransportError` when a text is not a URL.
    init(
        services: some Sequence<String>, timeout: Duration = .seconds(30),
        group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger
    ) throws {
        var origins: [String: Origin] = [:]
        for service in services { origins[service] = try Origin(headerValue: service) }
        var configuration = NIOTransportConfiguration(
            pins: Dictionary(
                origins.values.filter(\.isSecure).map { ("\($0.host):\($0.port)", .unpinned) }, uniquingKeysWith: { $1 }
            ))
        configuration.allowsPlaintext = true
        configuration.maximumConnectionsPerOrigin = Self.connectionsPerLoop
        configuration.maximumWaitingPerOrigin = 0
        let trust = try PinnedChainEvaluator(roots: configuration.trustRoots)
        var kept: [ObjectIdentifier: NIOTransport] = [:]
        for loop in group.makeIterator() {
            kept[ObjectIdentifier(loop)] = try NIOTransport(
                configuration: configuration, trust: trust, eventLoopGroup: loop, logger: logger)
        }
        configuration.keepsConnections = false
        single = try NIOTransport(configuration: configuration, trust: trust, eventLoopGroup: group, logger: logger)
        self.kept = kept
        self.origins = origins
        limits = HTTPLimits(
            connect: .seconds(5), read: timeout, total: Self.longestExchange, replyBytes: .max)
        self.logger = logger
    }

    /// Ends all connections.
    func shutdown() async {
        for transport in kept.values { await transport.shutdown() }
        await single.shutdown()
    }

    /// Sends a request to one of the services and returns the reply once its header is there. With `once` it goes out
    /// once at most, on a connection of its own.
    ///
    /// - Throws: ``Failure``.
    func forward(
        method: HTTPRequest.Method, service: String, target: String, fields: HTTPFields, body: HTTPBody?, once: Bool
    ) async throws -> HTTPReply {
        guard let origin = origins[service] else { throw Failure.notForwarded }
        let request = HTTPRequest(
            method: method, scheme: origin.scheme, authority: origin.authority, path: target, headerFields: fields)
        var call = HTTPCall(request, body: body, limits: limits)
        call.isSentOnce = once
        let local = MultiThreadedEventLoopGroup.currentEventLoop.flatMap { kept[ObjectIdentifier($0)] }
        do {
            return try await (once ? single : local ?? single).send(call)
        } catch let error as HTTPTransportError where !error.mayHaveHadEffect {
            logger.notice("the protected service was not reached", metadata: ["error": "\(error.code)"])
            throw Failure.notForwarded
        } catch {
            logger.notice("the protected service gave no answer", metadata: ["error": "\(error)"])
            throw Failure.unknown
        }
    }
}
