import AssentCore
import AssentServer
import NIOCore
import NIOPosix
import NIOSSL

/// A TLS server on a free port that shows its certificates and counts the bytes of requests.
final class HandshakeServer: Sendable {
    let port: Int
    private let received: Locked<Int>
    private let connections: Locked<[any Channel]>
    private let listener: any Channel

    /// Shows what was made, the CA's certificate too, and behind it what else there is in PEM.
    static func start(_ certificates: GeneratedCertificates, appending more: String = "") async throws
        -> HandshakeServer
    {
        let chain = try NIOSSLCertificate.fromPEMBytes(
            Array((certificates.chainPEM + certificates.authorityPEM + more).utf8))
        let key = try NIOSSLPrivateKey(bytes: certificates.privateKeyPEM.revealBytes(), format: .pem)
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        tls.applicationProtocols = ["http/1.1"]
        return try await HandshakeServer(NIOSSLContext(configuration: tls))
    }

    /// Without a context it says something that is not TLS.
    init(_ context: NIOSSLContext?) async throws {
        let (received, connections) = (Locked(0), Locked<[any Channel]>([]))
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    connections.withLock { $0.append(channel) }
                    if let context {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    }
                    try channel.pipeline.syncOperations.addHandler(Counter(received: received, greets: context == nil))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
        (self.received, self.connections) = (received, connections)
    }

    /// Ends, and says how many connections there were and how many bytes came out of TLS.
    func stop() async -> (connections: Int, bytes: Int) {
        try? await listener.close()
        let all = connections.withLock { $0 }
        for channel in all {
            channel.close(promise: nil)
            try? await channel.closeFuture.get()
        }
        return (all.count, received.withLock { $0 })
    }

    private final class Counter: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        let received: Locked<Int>
        let greets: Bool

        init(received: Locked<Int>, greets: Bool) {
            self.received = received
            self.greets = greets
        }

        func channelActive(context: ChannelHandlerContext) {
            guard greets else { return context.fireChannelActive() }
            context.writeAndFlush(NIOAny(ByteBuffer(string: "220 mail.example ESMTP\r\n")), promise: nil)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = unwrapInboundIn(data).readableBytes
            received.withLock { $0 += bytes }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
