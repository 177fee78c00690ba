import AssentConfiguration
import AssentCore
import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOSSL
import ServiceLifecycle

/// Answers requests. What it throws is its own fault and becomes 500 without a word about why.
protocol RequestHandler: Sendable {
    func respond(to request: Request, from client: ClientAddress) async throws -> Response
}

/// One listening address with TLS. It answers 503 until it gets its handler, since URLs that the server hands out can
/// hold its port, which is known only once it listens.
final class Listener: Service {
    /// How long an idle connection is kept after a stop has begun, for a request that is on its way.
    private static let quiesceDelay = TimeAmount.milliseconds(500)

    /// What it listens on, and how it answers.
    struct Settings {
        /// The address, or a name of it.
        var host: String
        /// The port; 0 for one that is free.
        var port: Int
        /// The port's key in the file, for errors.
        var portKey: String
        /// With which certificate.
        var tls: TLSConfiguration
        /// The file that the port is in, for errors.
        var configurationFile: String
        /// How long a request's body may take.
        var bodies = BodyLimits()
        /// Whether browsers are told to ask for this host by TLS alone.
        var sendsHSTS: Bool
        /// Whose header fields say where a request comes from.
        var proxies: TrustedProxies
        /// How long a connection may be silent.
        var idleTimeout: TimeAmount
    }

    private let settings: Settings
    private let connections: OpenConnections
    private let logger: Logger
    private let listening = Eventually<Int>()
    private let answering = Eventually<Void>()
    private let handler = Locked<(any RequestHandler)?>(nil)

    init(_ settings: Settings, connections: OpenConnections, logger: Logger) {
        self.settings = settings
        self.connections = connections
        self.logger = logger
    }

    /// The port, once it listens. Throws what ``run()`` threw when it does not come to that.
    var port: Int {
        get async throws { try await listening.value }
    }

    /// Waits until it has its handler. Throws why it does not come to that.
    func waitUntilAnswering() async throws { try await answering.value }

    /// From now on, `handler` answers.
    func answer(with handler: any RequestHandler) {
        self.handler.withLock { $0 = handler }
        answering.settle(.success(()))
    }

    /// Listens until the service group shuts down. Then idle connections are closed, and those with a request after its
    /// reply.
    func run() async throws {
        let server = HTTPServerBuilder.onEventLoops(
            .init(
                additionalChannelHandlers: [QuiesceDelay(Self.quiesceDelay), WriteTimeout(self.settings.idleTimeout)],
                idleTimeout: settings.idleTimeout),
            bodies: settings.bodies, tls: settings.tls, connections: connections)
        let application = Application(
            responder: Responder(
                handler: handler, sendsHSTS: settings.sendsHSTS, connections: connections, proxies: settings.proxies),
            server: server,
            configuration: .init(address: .hostname(settings.host, port: settings.port), serverName: nil),
            onServerRunning: { [self] channel in listening.settle(.success(channel.localAddress?.port ?? 0)) },
            logger: Logger(label: logger.label) { _ in DeferredMetadata(QuietCancellation(logger.handler)) })
        do {
            try await withGracefulShutdownHandler {
                try await application.run()
            } onGracefulShutdown: { [connections] in
                connections.drain()
            }
            giveUpStarting(CancellationError())
        } catch {
            let explained = explain(error)
            giveUpStarting(explained)
            throw explained
        }
    }

    private func explain(_ error: any Error) -> any Error {
        guard let error = error as? IOError else { return error }
        let port = "port \(settings.port) (\(settings.portKey))"
        let reason =
            switch error.errnoCode {
            case EADDRINUSE: "\(port) is taken: stop the program that uses it, or set another port there"
            case EACCES: "\(port) needs more rights: choose one above 1023"
            case EADDRNOTAVAIL: "\(settings.host) (listen.host) is not an address of this machine"
            default: "cannot listen on \(settings.host):\(settings.port): \(String(cString: strerror(error.errnoCode)))"
            }
        return ConfigurationError(file: settings.configurationFile, line: nil, reason)
    }

    /// Tells those who wait for the port or the handler that it will not come, unless it has.
    func giveUpStarting(_ error: any Error) {
        listening.settle(.failure(error))
        answering.settle(.failure(error))
    }

    private struct Responder: HTTPResponder {
        /// A year, for this host alone (RFC 6797 §6.1).
        private static let strictTransport = "max-age=31536000"

        let handler: Locked<(any RequestHandler)?>
        let sendsHSTS: Bool
        let connections: OpenConnections
        let proxies: TrustedProxies

        func respond(to request: Request, context: ConnectionContext) async throws -> Response {
            var response = await answer(to: request, context: context)
            // What switches protocols is over, or was not switched: what follows could be read as either.
            if connections.isDraining || request.headers.contains(.upgrade) { response.headers[.connection] = "close" }
            if sendsHSTS, !response.headers.contains(.strictTransportSecurity) {
                response.headers[.strictTransportSecurity] = Self.strictTransport
            }
            // The bytes of a body would be taken for the beginning of the next reply (RFC 9112 §6.3).
            return request.method == .head ? response.createHeadResponse() : response
        }

        private func answer(to request: Request, context: ConnectionContext) async -> Response {
            var request = request
            if request.headers.contains(.expect) { request.body = request.body.asking(context.channel) }
            guard let handler = handler.withLock({ $0 }) else {
                return .crest(503, "The server is starting.", headers: [.retryAfter: "1"])
            }
            do {
                let client = proxies.client(of: context.client, request.headers)
                if request.method == .get, request.headers.contains(.upgrade) {
                    return try await TunnelOpening.$connection.withValue(context.channel) {
                        try await handler.respond(to: request, from: client)
                    }
                }
                return try await handler.respond(to: request, from: client)
            } catch {
                context.logger.error("a request failed", metadata: ["error": "\(type(of: error))"])
                return .crest(500, "Internal Server Error")
            }
        }
    }
}

/// What is known of a request beside itself.
private struct ConnectionContext: InitializableFromSource {
    let channel: any Channel
    /// Where the connection comes from.
    let client: ClientAddress
    let logger: Logger

    init(source: ApplicationRequestContextSource) {
        channel = source.channel
        client = ClientAddress(source.channel.remoteAddress)
        logger = source.logger
    }
}
