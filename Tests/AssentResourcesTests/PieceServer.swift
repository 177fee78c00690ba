import AssentCore
import NIOCore
import NIOPosix
import TestSupport

/// A server on a free port whose script says what it sends, piece by piece, and which counts what reached it.
final class PieceServer: Sendable {
    struct Counts: Sendable {
        var connections = 0
        /// The header of each request, in the order of their arrival.
        var heads: [String] = []
        var peers: [Peer] = []
        /// Bytes that came after the headers.
        var contentBytes = 0
    }

    /// The client's end of a connection.
    struct Peer: Sendable {
        let channel: any Channel

        func send(_ text: String) { channel.writeAndFlush(ByteBuffer(string: text), promise: nil) }

        func close() { channel.close(promise: nil) }
    }

    /// The number of the request, its header, and the connection that it came by.
    typealias Script = @Sendable (Int, String, Peer) -> Void

    private let counts = Watched(Counts())
    private let channels = Locked<[any Channel]>([])
    private let listener = Locked<(any Channel)?>(nil)

    var seen: Counts { counts.value }
    var origin: String { "http://127.0.0.1:\(port)" }
    var port: Int { listener.withLock { $0?.localAddress?.port } ?? 0 }

    static func running(_ script: @escaping Script) async throws -> PieceServer {
        let server = PieceServer()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    server.channels.withLock { $0.append(channel) }
                    try channel.pipeline.syncOperations.addHandler(Heads(server, script))
                    server.change { $0.connections += 1 }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        server.listener.withLock { $0 = channel }
        return server
    }

    func change(_ body: (inout Counts) -> Void) { counts.update(body) }

    /// Waits until the counts are as `test` says.
    func waitUntil(_ test: @escaping @Sendable (Counts) -> Bool) async { await counts.wait(until: test) }

    func stop() async {
        try? await listener.withLock { $0 }?.close()
        for channel in channels.withLock({ $0 }) {
            channel.close(promise: nil)
            try? await channel.closeFuture.get()
        }
    }
}

/// Cuts headers out of the bytes. What comes between them is content, whose length nobody checks.
private final class Heads: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let server: PieceServer
    private let script: PieceServer.Script
    private var bytes: [UInt8] = []
    private var contentLeft = 0

    init(_ server: PieceServer, _ script: @escaping PieceServer.Script) {
        self.server = server
        self.script = script
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes += unwrapInboundIn(data).readableBytesView
        while !bytes.isEmpty {
            if contentLeft > 0 {
                let count = min(contentLeft, bytes.count)
                bytes.removeFirst(count)
                contentLeft -= count
                server.change { $0.contentBytes += count }
                continue
            }
            let end = Array("\r\n\r\n".utf8)
            guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) else { return }
            let head = String(decoding: bytes[..<start], as: UTF8.self)
            bytes.removeFirst(start + end.count)
            let length = head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }
            contentLeft = length.flatMap { Int($0.dropFirst(16)) } ?? 0
            var number = 0
            let peer = PieceServer.Peer(channel: context.channel)
            server.change {
                number = $0.heads.count
                $0.heads.append(head)
                $0.peers.append(peer)
            }
            script(number, head, peer)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
