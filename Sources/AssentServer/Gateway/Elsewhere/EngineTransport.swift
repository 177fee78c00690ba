import AssentCore
import Logging
import NIOCore
import NIOPosix

/// The connections to the engine of a gateway elsewhere: a question goes by one of the event loop on which the request
/// is answered. What is asked beside requests, such as a look at an open connection, goes by a kept connection too. A
/// question that is lost with its connection can be asked again, since the engine gives the same answer.
struct EngineTransport: HTTPTransport {
    private let connections: UpstreamTransports

    /// Connections to the engine that these settings name.
    ///
    /// - Throws: ``/AssentConfiguration/ConfigurationError`` for a file that cannot be used, else `NIOTransportError`.
    init(_ engine: EngineSettings, clock: any WallClock, logger: Logger) throws {
        connections = try UpstreamTransports(
            to: [try Origin(engine.url)], engine.tls, leastLimit: engine.leastLimit, clock: clock,
            group: MultiThreadedEventLoopGroup.singleton, logger: logger)
    }

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply { try await connections.sendKept(call) }

    /// Ends all connections.
    func shutdown() async { await connections.shutdown() }
}
