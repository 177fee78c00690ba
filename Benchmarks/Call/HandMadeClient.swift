import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// What one writes by hand for HTTP over TLS on NIO: one connection, one handler, a continuation for the one who waits.
struct HandMadeClient: Sendable {
    let channel: any Channel
    private let exchange: NIOLoopBound<HandMadeExchange>

    /// Connects to a server on loopback that shows this very certificate.
    static func connect(port: Int, certificatePEM: String, group: any EventLoopGroup) async throws -> HandMadeClient {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.applicationProtocols = ["http/1.1"]
        let context = try NIOSSLContext(configuration: tls)
        let expected = try NIOSSLCertificate.fromPEMBytes(Array(certificatePEM.utf8)).first
        let channel = try await ClientBootstrap(group: group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = try NIOSSLClientHandler(context: context, serverHostname: "localhost") {
                        presented, promise in
                        promise.succeed(
                            expected != nil && presented.first == expected ? .certificateVerified : .failed)
                    }
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(handler)
                    try pipeline.addHTTPClientHandlers()
                    try pipeline.addHandler(HandMadeExchange())
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        let exchange = try await channel.eventLoop.submit {
            NIOLoopBound(
                try channel.pipeline.syncOperations.handler(type: HandMadeExchange.self), eventLoop: channel.eventLoop)
        }.get()
        return HandMadeClient(channel: channel, exchange: exchange)
    }

    /// Sends a request without content and waits for the whole reply.
    func send(_ head: HTTPRequestHead) async throws -> HandMadeExchange.Reply {
        try await withCheckedThrowingContinuation { continuation in
            channel.eventLoop.execute { exchange.value.send(head, continuation) }
        }
    }

    /// Closes the connection.
    func close() async { try? await channel.close() }
}

/// The last handler of the connection.
final class HandMadeExchange: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    struct Reply: Sendable {
        let head: HTTPResponseHead
        let body: [UInt8]
    }

    private var context: ChannelHandlerContext?
    private var waiting: CheckedContinuation<Reply, any Error>?
    private var head: HTTPResponseHead?
    private var body: [UInt8] = []

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func send(_ head: HTTPRequestHead, _ continuation: CheckedContinuation<Reply, any Error>) {
        guard let context, waiting == nil else {
            return continuation.resume(throwing: BenchFailure("the connection is closed or busy"))
        }
        waiting = continuation
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = []
        case .body(let bytes): body += bytes.readableBytesView
        case .end:
            guard let waiting, let head else { return }
            self.waiting = nil
            self.head = nil
            waiting.resume(returning: Reply(head: head, body: body))
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        waiting?.resume(throwing: error)
        waiting = nil
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        waiting?.resume(throwing: BenchFailure("the server closed the connection"))
        waiting = nil
    }
}
