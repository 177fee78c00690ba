import AssentCore
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import TestSupport

/// A server on a free port that does what its script says, byte for byte, and counts what reached it.
final class TestServer: Sendable {
    /// What a request looked like at the server.
    struct Request: Sendable {
        /// The number of the connection, from 0.
        let connection: Int
        /// The number of the request on all connections, from 0.
        let number: Int
        let head: String
        let body: [UInt8]
    }

    struct Counts: Sendable {
        var connections = 0
        var handshakes = 0
        /// Bytes that came out of TLS.
        var requestBytes = 0
        var requests: [Request] = []
        /// Requests whose script has run.
        var scripted = 0
    }

    typealias Script = @Sendable (Request, Peer) -> Void

    /// The client's end, as a script sees it.
    struct Peer: Sendable {
        let channel: any Channel
        /// The channel knows them only until it is closed.
        private let ports: (client: Int?, server: Int?)

        init(channel: any Channel) {
            self.channel = channel
            ports = (channel.remoteAddress?.port, channel.localAddress?.port)
        }

        func send(_ text: String) {
            channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
        }

        func send(_ bytes: [UInt8]) {
            channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
        }

        /// Ends with close_notify.
        func close() { channel.close(promise: nil) }

        /// Ends the TCP connection without a word from TLS.
        func cutOff() {
            channel.flush()
            try? channel.pipeline.syncOperations.context(handlerType: Wire.self).close(promise: nil)
        }

        /// Waits until this end is closed and the kernel has told the client's end, which is later on a busy machine.
        func closed() async throws {
            try await channel.closeFuture.get()
            guard let client = ports.client.map(Self.ending), let server = ports.server.map(Self.ending) else { return }
            while try Self.connections().contains(where: {
                $0.count > 3 && $0[1].hasSuffix(client) && $0[2].hasSuffix(server) && $0[3] == "01"
            }) {
                await Task.yield()
            }
        }

        /// How the addresses of a port end there.
        private static func ending(_ port: Int) -> String {
            ":" + String(port, radix: 16, uppercase: true).leftPadded(to: 4)
        }

        /// The lines of proc_net_tcp(5) as words: the second is the local address, the third the other one, the fourth
        /// the state, of which 01 is TCP_ESTABLISHED.
        private static func connections() throws -> [[Substring]] {
            try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8).split(separator: "\n")
                .map { $0.split(separator: " ") }
        }
    }

    private let counts = Watched(Counts())
    private let channels = Locked<[any Channel]>([])
    private let listener: any Channel
    /// What keeps the port when it has stopped: a client that tries again meets nobody there.
    private let reserved: ReservedPort
    let port: Int

    var seen: Counts { counts.value }

    /// The answer to anything.
    static let ok: Script = { _, peer in peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }

    /// A TLS server. `identity` is asked for each connection by its number, `onHandshake` runs when TLS is up.
    static func tls(
        _ identity: @escaping @Sendable (Int) -> TestPKI.Server,
        configure: @escaping @Sendable (inout TLSConfiguration) -> Void = { _ in },
        onHandshake: @escaping @Sendable (Int, Peer) -> Void = { _, _ in }, script: @escaping Script = TestServer.ok
    ) async throws -> TestServer {
        try await TestServer(script: script, onHandshake: onHandshake) { number in
            let server = identity(number)
            let chain = try server.encoded.map {
                NIOSSLCertificateSource.certificate(try NIOSSLCertificate(bytes: $0, format: .der))
            }
            let key = try NIOSSLPrivateKey(bytes: Array(server.keyPEM.utf8), format: .pem)
            var tls = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key))
            tls.applicationProtocols = ["http/1.1"]
            configure(&tls)
            return try NIOSSLContext(configuration: tls)
        }
    }

    static func plaintext(script: @escaping Script = TestServer.ok) async throws -> TestServer {
        try await TestServer(script: script, onHandshake: { _, _ in }, context: nil)
    }

    /// A server that accepts and then never reads.
    static func neverReading() async throws -> TestServer {
        try await TestServer(script: ok, onHandshake: { _, _ in }, context: nil, reads: false)
    }

    private init(
        script: @escaping Script, onHandshake: @escaping @Sendable (Int, Peer) -> Void,
        context: (@Sendable (Int) throws -> NIOSSLContext)?, reads: Bool = true
    ) async throws {
        let counts = counts
        let channels = channels
        let reserved = try ReservedPort()
        self.reserved = reserved
        port = reserved.port
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.autoRead, value: reads)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    channels.withLock { $0.append(channel) }
                    let number = counts.update { counts in
                        defer { counts.connections += 1 }
                        return counts.connections
                    }
                    let sync = channel.pipeline.syncOperations
                    try sync.addHandler(Wire())
                    if let context { try sync.addHandler(NIOSSLServerHandler(context: context(number))) }
                    try sync.addHandler(
                        Requests(connection: number, counts: counts, script: script, onHandshake: onHandshake))
                }
            }
            .bind(host: "127.0.0.1", port: reserved.port).get()
    }

    /// Waits until the counts are as `test` says.
    func waitUntil(_ test: @escaping @Sendable (Counts) -> Bool) async { await counts.wait(until: test) }

    /// Waits until every connection so far has ended, so that nothing can arrive any more.
    func waitUntilAllClosed() async {
        for channel in channels.withLock({ $0 }) { try? await channel.closeFuture.get() }
    }

    /// Ends the connections and the listener.
    func stop() async {
        try? await listener.close()
        for channel in channels.withLock({ $0 }) {
            channel.close(promise: nil)
            try? await channel.closeFuture.get()
        }
    }
}

/// Stands below TLS.
private final class Wire: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
}

/// Cuts requests out of the bytes; only what this test's clients send.
private final class Requests: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let connection: Int
    private let counts: Watched<TestServer.Counts>
    private let script: TestServer.Script
    private let onHandshake: @Sendable (Int, TestServer.Peer) -> Void
    private var bytes: [UInt8] = []

    init(
        connection: Int, counts: Watched<TestServer.Counts>, script: @escaping TestServer.Script,
        onHandshake: @escaping @Sendable (Int, TestServer.Peer) -> Void
    ) {
        self.connection = connection
        self.counts = counts
        self.script = script
        self.onHandshake = onHandshake
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted = event as? TLSUserEvent {
            counts.update { $0.handshakes += 1 }
            onHandshake(connection, TestServer.Peer(channel: context.channel))
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        counts.update { $0.requestBytes += buffer.readableBytes }
        bytes += buffer.readableBytesView
        while let end = firstRange(of: "\r\n\r\n") {
            let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
            let length = contentLength(head)
            let body: [UInt8]
            let consumed: Int
            if let length {
                guard bytes.count - end.upperBound >= length else { break }
                consumed = end.upperBound + length
                body = Array(bytes[end.upperBound..<consumed])
            } else {
                guard let last = firstRange(of: "0\r\n\r\n") else { break }
                consumed = last.upperBound
                body = Array(bytes[end.upperBound..<consumed])
            }
            bytes.removeFirst(consumed)
            let request = counts.update { counts in
                let request = TestServer.Request(
                    connection: connection, number: counts.requests.count, head: head, body: body)
                counts.requests.append(request)
                return request
            }
            script(request, TestServer.Peer(channel: context.channel))
            counts.update { $0.scripted += 1 }
        }
    }

    private func firstRange(of text: String) -> Range<Int>? {
        let pattern = Array(text.utf8)
        return bytes.indices.first { bytes[$0...].starts(with: pattern) }.map { $0..<($0 + pattern.count) }
    }

    private func contentLength(_ head: String) -> Int? {
        let lines = head.lowercased().components(separatedBy: "\r\n")
        if lines.contains("transfer-encoding: chunked") { return nil }
        let line = lines.first { $0.hasPrefix("content-length: ") }
        return line.flatMap { Int($0.dropFirst("content-length: ".count)) } ?? 0
    }
}

extension String {
    fileprivate func leftPadded(to length: Int) -> String {
        String(repeating: "0", count: max(0, length - count)) + self
    }
}
