import AssentCore
import Crypto
import Foundation
import NIOCore
import NIOPosix
import NIOSSL

/// A service that opens WebSockets and sends back every byte that comes behind the handshake.
enum EchoPeer {
    /// Starts one on loopback.
    static func start(on group: any EventLoopGroup) async throws -> any Channel {
        try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(EchoHandler())
                }
            }
            .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
            .bind(host: "127.0.0.1", port: 0).get()
    }
}

private final class EchoHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var isOpen = false
    private var head: [UInt8] = []

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        if isOpen { return context.writeAndFlush(wrapOutboundOut(bytes), promise: nil) }
        head += bytes.readableBytesView
        guard head.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return }
        isOpen = true
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        let field = lines.first { $0.lowercased().hasPrefix("sec-websocket-key:") } ?? ""
        let key = field.drop { $0 != ":" }.dropFirst().trimmingCharacters(in: .whitespaces)
        let digest = Insecure.SHA1.hash(data: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        let reply =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(Data(digest).base64EncodedString())\r\n\r\n"
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: reply)), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// A client's end of one WebSocket over TLS, to which a message is bytes.
struct EchoClient: Sendable {
    private let channel: any Channel
    private let waiter: NIOLoopBound<EchoWaiter>

    /// Connects to a server on loopback that shows this very certificate.
    static func connect(port: Int, certificatePEM: String, group: any EventLoopGroup) async throws -> EchoClient {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.applicationProtocols = ["http/1.1"]
        let context = try NIOSSLContext(configuration: tls)
        let expected = try NIOSSLCertificate.fromPEMBytes(Array(certificatePEM.utf8)).first
        let channel = try await ClientBootstrap(group: group)
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = try NIOSSLClientHandler(context: context, serverHostname: "localhost") {
                        presented, promise in
                        promise.succeed(
                            expected != nil && presented.first == expected ? .certificateVerified : .failed)
                    }
                    try channel.pipeline.syncOperations.addHandler(handler)
                    try channel.pipeline.syncOperations.addHandler(EchoWaiter())
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        let waiter = try await channel.eventLoop.submit {
            NIOLoopBound(
                try channel.pipeline.syncOperations.handler(type: EchoWaiter.self), eventLoop: channel.eventLoop)
        }.get()
        return EchoClient(channel: channel, waiter: waiter)
    }

    /// Shakes hands.
    func open(_ path: String, fields: [(String, String)]) async throws {
        let usual = [
            ("Host", "localhost"), ("Connection", "Upgrade"), ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ]
        let lines = ["GET \(path) HTTP/1.1"] + (usual + fields).map { "\($0.0): \($0.1)" }
        let reply = try await exchange(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8), .head)
        let head = String(decoding: reply, as: UTF8.self)
        guard head.hasPrefix("HTTP/1.1 101 ") else { throw BenchFailure("no WebSocket: \(head.prefix(40))") }
    }

    /// Sends a message and waits until all of it has come back.
    func echo(_ message: [UInt8]) async throws {
        guard try await exchange(message, .bytes(message.count)) == message else {
            throw BenchFailure("another message came back")
        }
    }

    /// Closes the connection.
    func close() async { try? await channel.close() }

    private func exchange(_ bytes: [UInt8], _ end: EchoWaiter.End) async throws -> [UInt8] {
        try await withCheckedThrowingContinuation { continuation in
            channel.eventLoop.execute { waiter.value.send(bytes, until: end, continuation) }
        }
    }
}

private final class EchoWaiter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// When what is waited for is there.
    enum End: Sendable {
        case head
        case bytes(Int)
    }

    private var context: ChannelHandlerContext?
    private var waiting: (end: End, continuation: CheckedContinuation<[UInt8], any Error>)?
    private var bytes: [UInt8] = []

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func send(_ message: [UInt8], until end: End, _ continuation: CheckedContinuation<[UInt8], any Error>) {
        guard let context, waiting == nil else {
            return continuation.resume(throwing: BenchFailure("the connection is closed or busy"))
        }
        waiting = (end, continuation)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: message)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes += unwrapInboundIn(data).readableBytesView
        guard let waiting else { return }
        let isThere =
            switch waiting.end {
            case .head: bytes.suffix(4).elementsEqual("\r\n\r\n".utf8)
            case .bytes(let count): bytes.count >= count
            }
        guard isThere else { return }
        self.waiting = nil
        let all = bytes
        bytes = []
        waiting.continuation.resume(returning: all)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        waiting?.continuation.resume(throwing: error)
        waiting = nil
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        waiting?.continuation.resume(throwing: BenchFailure("the server closed the connection"))
        waiting = nil
    }
}
