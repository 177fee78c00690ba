import AssentCore
import Crypto
import Foundation
import NIOCore
import NIOPosix
import TestSupport

/// A service with WebSockets: it shakes hands as a test says, and sends each message back.
final class EchoService: Sendable {
    /// How it answers a handshake.
    enum Manner: Sendable {
        /// It opens a WebSocket and sends each text message back, without a mask.
        case echo
        /// It opens a WebSocket and sends the bytes back that come.
        case bytes
        /// It sends this and goes on as before.
        case text(String)
        /// It sends this and ends the connection behind it.
        case last(String)
        /// It answers nothing.
        case nothing
        /// It ends the connection.
        case closing
    }

    /// What has arrived.
    struct Seen: Sendable {
        var connections = 0
        var ended = 0
        var heads: [String] = []
    }

    let port: Int
    let seen: Watched<Seen>
    private let manner: Locked<Manner>
    private let listener: any Channel
    private let channels: Locked<[any Channel]>

    static func start() async throws -> EchoService {
        let (seen, manner) = (Watched(Seen()), Locked(Manner.echo))
        let channels = Locked<[any Channel]>([])
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    channels.withLock { $0.append(channel) }
                    seen.update { $0.connections += 1 }
                    try channel.pipeline.syncOperations.addHandler(Answerer(seen, manner))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return EchoService(listener: listener, seen: seen, manner: manner, channels: channels)
    }

    private init(
        listener: any Channel, seen: Watched<Seen>, manner: Locked<Manner>, channels: Locked<[any Channel]>
    ) {
        self.listener = listener
        self.seen = seen
        self.manner = manner
        self.channels = channels
        port = listener.localAddress?.port ?? 0
    }

    /// From now on it answers so.
    func answer(_ manner: Manner) { self.manner.withLock { $0 = manner } }

    /// Ends all connections.
    func hangUp() { for channel in channels.withLock({ $0 }) { channel.close(promise: nil) } }

    func stop() async {
        try? await listener.close()
        hangUp()
    }

    /// The request that asks for a WebSocket; `fields` stand behind the usual ones, `replacing` in place of some.
    static func handshake(
        _ fields: [(String, String)], path: String = "/files/live", replacing: [(String, [String])] = []
    ) -> String {
        let usual = [
            ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("Sec-WebSocket-Version", "13"),
        ]
        let kept = usual.filter { field in !replacing.contains { $0.0 == field.0 } }
        let others = replacing.flatMap { name, values in values.map { (name, $0) } }
        let lines = (kept + others + fields).map { "\($0.0): \($0.1)" }
        return (["GET \(path) HTTP/1.1", "Host: localhost"] + lines).joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// A text message of less than 126 bytes in one frame (RFC 6455 §5.2); clients mask.
    static func frame(_ text: String, isMasked: Bool) -> [UInt8] {
        let bytes = Array(text.utf8)
        guard isMasked else { return [0x81, UInt8(bytes.count)] + bytes }
        let mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        return [0x81, 0x80 | UInt8(bytes.count)] + mask + bytes.enumerated().map { $1 ^ mask[$0 % 4] }
    }

    private final class Answerer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let seen: Watched<Seen>
        private let manner: Locked<Manner>
        private var opened: Manner?
        private var bytes: [UInt8] = []

        init(_ seen: Watched<Seen>, _ manner: Locked<Manner>) {
            self.seen = seen
            self.manner = manner
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let part = unwrapInboundIn(data)
            if case .bytes = opened { return send(Array(part.readableBytesView), context) }
            bytes += part.readableBytesView
            if opened != nil { return echo(context) }
            guard let end = Data(bytes).range(of: Data("\r\n\r\n".utf8)) else { return }
            let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
            bytes.removeFirst(end.upperBound)
            seen.update { $0.heads.append(head) }
            let manner = manner.withLock { $0 }
            opened = manner
            switch manner {
            case .echo, .bytes: send(Array(Self.accepting(head).utf8), context)
            case .text(let text): send(Array(text.utf8), context)
            case .last(let text):
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text))).assumeIsolated().whenComplete { _ in
                    context.close(promise: nil)
                }
            case .nothing: break
            case .closing: context.close(promise: nil)
            }
        }

        func channelInactive(context: ChannelHandlerContext) { seen.update { $0.ended += 1 } }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        private func echo(_ context: ChannelHandlerContext) {
            while bytes.count >= 6, bytes[0] == 0x81, bytes[1] & 0x80 != 0 {
                let length = Int(bytes[1] & 0x7F)
                guard bytes.count >= 6 + length else { return }
                let mask = Array(bytes[2..<6])
                let text = bytes[6..<6 + length].enumerated().map { $1 ^ mask[$0 % 4] }
                bytes.removeFirst(6 + length)
                send(EchoService.frame(String(decoding: text, as: UTF8.self), isMasked: false), context)
            }
        }

        private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        }

        private static func accepting(_ head: String) -> String {
            let line = head.components(separatedBy: "\r\n").first { $0.lowercased().hasPrefix("sec-websocket-key:") }
            let key = (line?.dropFirst(18)).map { $0.trimmingCharacters(in: .whitespaces) } ?? ""
            let digest = Insecure.SHA1.hash(data: Data((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
            return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: \(Data(digest).base64EncodedString())\r\n\r\n"
        }
    }
}

extension RawConnection {
    /// Sends a message to the service and returns whether it comes back.
    func echoes(_ text: String) async throws -> Bool {
        let wanted = EchoService.frame(text, isMasked: false)
        let before = bytes.count
        try await send(EchoService.frame(text, isMasked: true))
        await wait(forBytes: before + wanted.count)
        return Array(bytes.suffix(wanted.count)) == wanted
    }
}
