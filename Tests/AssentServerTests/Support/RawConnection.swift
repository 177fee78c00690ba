import AssentCore
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import TestSupport

/// A connection, with TLS unless told otherwise, on which a test sends what no HTTP client would.
final class RawConnection: Sendable {
    private struct State: Sendable {
        var bytes: [UInt8] = []
        var isClosed = false
    }

    private let channel: any Channel
    private let state: Watched<State>

    /// What has come back.
    var bytes: [UInt8] { state.value.bytes }

    /// NIO's usual limit of ten seconds also holds for a look-up of the address, whose thread may come late.
    private static let patience = TimeAmount.seconds(Int64(Patience.seconds))

    private static let tls = Result {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        tls.applicationProtocols = ["http/1.1"]
        return try NIOSSLContext(configuration: tls)
    }

    /// Connects, from an address of this machine when one is named.
    static func open(port: Int, withTLS: Bool = true, from address: String? = nil) async throws -> RawConnection {
        let context = try tls.get()
        let state = Watched(State())
        var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(patience)
        if let address { bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: address, port: 0)) }
        let channel =
            try await bootstrap
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if withTLS {
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: context, serverHostname: "localhost"))
                    }
                    try channel.pipeline.syncOperations.addHandler(Collector(state: state))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        return RawConnection(channel: channel, state: state)
    }

    /// Whether a server shakes hands by these settings and answers.
    static func answers(port: Int, tls: TLSConfiguration) async -> Bool {
        let state = Watched(State())
        let channel = try? await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(patience)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let context = try NIOSSLContext(configuration: tls)
                    try channel.pipeline.syncOperations.addHandler(
                        NIOSSLClientHandler(context: context, serverHostname: "localhost"))
                    try channel.pipeline.syncOperations.addHandler(Collector(state: state))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        guard let channel else { return false }
        let connection = RawConnection(channel: channel, state: state)
        try? await connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return await connection.untilClosed().hasPrefix("HTTP/1.1 200 ")
    }

    private init(channel: any Channel, state: Watched<State>) {
        self.channel = channel
        self.state = state
    }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    /// Sends; that the server has closed meanwhile is not an error here.
    func send(_ bytes: [UInt8]) async throws {
        try? await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
    }

    /// Whether it takes what comes; what it does not take stays with the system.
    func take(_ isTaking: Bool) async throws {
        try await channel.setOption(ChannelOptions.autoRead, value: isTaking).get()
    }

    /// Sends a byte each second until the connection ends.
    func drip() {
        let drops = channel.eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) {
            [channel] _ in
            channel.writeAndFlush(ByteBuffer(bytes: [0x20]), promise: nil)
        }
        channel.closeFuture.whenComplete { _ in drops.cancel() }
    }

    /// All that comes until the server closes.
    func untilClosed() async -> String {
        await state.wait { $0.isClosed }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Waits until so many bytes have come.
    func wait(forBytes count: Int) async {
        await state.wait { $0.bytes.count >= count || $0.isClosed }
    }

    /// Waits until a text has come, and returns whether it has before the connection was closed.
    func wait(for text: String) async -> Bool {
        let wanted = Data(text.utf8)
        await state.wait { $0.isClosed || Data($0.bytes).range(of: wanted) != nil }
        return Data(bytes).range(of: wanted) != nil
    }

    /// Waits until a reply with a `Content-Length` is complete and takes it.
    func reply() async -> String {
        await state.wait { $0.isClosed || Self.length(of: $0.bytes) != nil }
        let length = Self.length(of: bytes) ?? bytes.count
        let reply = String(decoding: bytes.prefix(length), as: UTF8.self)
        state.update { $0.bytes.removeFirst(length) }
        return reply
    }

    func close() async {
        channel.close(promise: nil)
        try? await channel.closeFuture.get()
    }

    private static func length(of bytes: [UInt8]) -> Int? {
        guard let end = Data(bytes).range(of: Data("\r\n\r\n".utf8)) else { return nil }
        let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).lowercased()
        let line = head.components(separatedBy: "\r\n").first { $0.hasPrefix("content-length:") }
        let body = line.flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
        return bytes.count >= end.upperBound + body ? end.upperBound + body : nil
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let state: Watched<State>

        init(state: Watched<State>) { self.state = state }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let buffer = unwrapInboundIn(data)
            state.update { $0.bytes += buffer.readableBytesView }
        }

        func channelInactive(context: ChannelHandlerContext) { state.update { $0.isClosed = true } }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
