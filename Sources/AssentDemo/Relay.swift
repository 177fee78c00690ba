import AssentCore
import NIOCore
import NIOPosix

/// A stretch of network that the demo can cut: it passes TCP bytes to a port on this machine and, when told to, drops
/// the connection at the moment when the next reply would come back.
final class Relay: Sendable {
    /// The port that it listens on, on 127.0.0.1.
    let port: Int

    private let channel: any Channel
    private let cut: Locked<Bool>
    private let proxy: Locked<ReadingProxy?>

    private init(channel: any Channel, port: Int, cut: Locked<Bool>, proxy: Locked<ReadingProxy?>) {
        self.channel = channel
        self.port = port
        self.cut = cut
        self.proxy = proxy
    }

    /// Is told the first line of each request (`isReply` false) and of each reply that passes in plain HTTP.
    typealias Observer = @Sendable (_ line: String, _ isReply: Bool) -> Void

    /// Listens on a free port and passes everything to `target`, whose port may become known later.
    static func start(
        observer: Observer? = nil, to target: @escaping @Sendable () -> Int?
    ) async throws -> Relay {
        let cut = Locked(false)
        let proxy = Locked<ReadingProxy?>(nil)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { inbound in
                guard let port = target() else { return inbound.close() }
                let reader = proxy.withLock { $0 }
                return ClientBootstrap(group: inbound.eventLoop)
                    // Not ten seconds, the usual limit: who connects here has a limit of their own.
                    .connectTimeout(.hours(1))
                    .connect(host: "127.0.0.1", port: port)
                    .flatMap { outbound in
                        inbound.eventLoop.makeCompletedFuture {
                            try reader?.add(to: inbound, before: outbound)
                            try inbound.pipeline.syncOperations.addHandler(
                                Pipe(to: outbound, cut: nil) {
                                    observer?($0, false)
                                } pass: {
                                    reader?.pass($0, .request) ?? $0
                                })
                            try outbound.pipeline.syncOperations.addHandler(
                                Pipe(to: inbound, cut: cut) {
                                    observer?($0, true)
                                } pass: {
                                    reader?.pass($0, .reply) ?? $0
                                })
                        }
                    }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return Relay(channel: channel, port: channel.localAddress?.port ?? 0, cut: cut, proxy: proxy)
    }

    /// Lets somebody end TLS of the connections that begin from now on; nobody with `nil`.
    func letEndTLS(_ reader: ReadingProxy?) {
        proxy.withLock { $0 = reader }
    }

    /// Cuts the connection when the next bytes come back from the far end after this call.
    func cutNextReply() {
        cut.withLock { $0 = true }
    }

    /// Stops listening.
    func stop() async throws {
        try await channel.close().get()
    }

    private final class Pipe: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let other: any Channel
        private let cut: Locked<Bool>?
        private let observe: (String) -> Void
        private let pass: (ByteBuffer) -> ByteBuffer

        init(
            to other: any Channel, cut: Locked<Bool>?, observe: @escaping (String) -> Void,
            pass: @escaping (ByteBuffer) -> ByteBuffer
        ) {
            self.other = other
            self.cut = cut
            self.observe = observe
            self.pass = pass
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = pass(unwrapInboundIn(data))
            observeFirstLine(bytes)
            let cutting =
                cut?.withLock { armed in
                    defer { armed = false }
                    return armed
                } ?? false
            if cutting {
                other.close(promise: nil)
                context.close(promise: nil)
            } else {
                other.writeAndFlush(bytes, promise: nil)
            }
        }

        /// A head of this demo's size comes in one piece; what begins otherwise is a part of a body, or TLS.
        private func observeFirstLine(_ bytes: ByteBuffer) {
            let start = bytes.getString(at: bytes.readerIndex, length: min(bytes.readableBytes, 256)) ?? ""
            guard let line = start.split(separator: "\r\n").first.map(String.init), start != line else { return }
            if line.hasPrefix("HTTP/1.1 ") || line.hasSuffix(" HTTP/1.1") { observe(line) }
        }

        func channelInactive(context: ChannelHandlerContext) {
            other.close(promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }
}
