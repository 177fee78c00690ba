import AssentCore
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import TestSupport

@testable import AssentServer

/// A protected service that keeps every byte it gets and answers as the test tells it.
final class TestUpstream: Sendable {
    /// A request as it came.
    struct Request: Sendable {
        let head: String
        let body: [UInt8]

        var line: String { String(head.prefix { $0 != "\r\n" }) }

        /// The values of a field, by its name in any case.
        func values(_ name: String) -> [String] {
            head.components(separatedBy: "\r\n").dropFirst().compactMap { line in
                let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
                guard parts.count == 2, parts[0].lowercased() == name.lowercased() else { return nil }
                return parts[1].trimmingCharacters(in: .whitespaces)
            }
        }
    }

    /// What has arrived.
    struct Seen: Sendable {
        var connections = 0
        var bytes = 0
        var requests: [Request] = []
    }

    /// The gateway's end of a connection.
    struct Peer: Sendable {
        let channel: any Channel

        func send(_ text: String) { channel.writeAndFlush(ByteBuffer(string: text), promise: nil) }
        func send(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }
        func close() { channel.close(promise: nil) }

        func answer(_ status: String = "200 OK", fields: [String] = [], _ body: String = "{}") {
            let head = ["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + fields
            send(head.joined(separator: "\r\n") + "\r\n\r\n" + body)
        }
    }

    typealias Script = @Sendable (Request, Peer) -> Void

    /// Answers 201 to POST, else 200.
    static let answering: Script = { request, peer in
        peer.answer(request.line.hasPrefix("POST") ? "201 Created" : "200 OK", #"{"done":true}"#)
    }

    /// Reads the request and ends the connection.
    static let closing: Script = { _, peer in peer.close() }

    let port: Int
    let seen: Watched<Seen>
    private let script: Locked<Script>
    private let held: Watched<[Peer]>
    private let isHasty: Locked<Bool>
    private let listener: any Channel
    /// What keeps the port when it has stopped: a gateway that asks again meets nobody there.
    private let reserved: ReservedPort
    private let channels: Locked<[any Channel]>

    var requests: [Request] { seen.value.requests }

    /// A service, with TLS if there are settings for it.
    static func start(tls: TLSConfiguration? = nil) async throws -> TestUpstream {
        let tls = try tls.map { try NIOSSLContext(configuration: $0) }
        let seen = Watched(Seen())
        let script = Locked<Script>(answering)
        let channels = Locked<[any Channel]>([])
        let isHasty = Locked(false)
        let reserved = try ReservedPort()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    channels.withLock { $0.append(channel) }
                    seen.update { $0.connections += 1 }
                    if let tls {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        Requests(seen: seen, isHasty: isHasty) { request, peer in script.withLock { $0 }(request, peer)
                        })
                }
            }
            .bind(host: "127.0.0.1", port: reserved.port).get()
        return TestUpstream(
            listener: listener, reserved: reserved, seen: seen, script: script, isHasty: isHasty, channels: channels)
    }

    private init(
        listener: any Channel, reserved: ReservedPort, seen: Watched<Seen>, script: Locked<Script>,
        isHasty: Locked<Bool>, channels: Locked<[any Channel]>
    ) {
        self.listener = listener
        self.reserved = reserved
        self.seen = seen
        self.script = script
        self.isHasty = isHasty
        self.channels = channels
        held = Watched([])
        port = reserved.port
    }

    /// From now on requests are answered so.
    func answer(with script: @escaping Script) {
        self.script.withLock { $0 = script }
    }

    /// From now on requests are answered so as soon as their header is there, and what follows on their connections is
    /// ignored.
    func answerEarly(with script: @escaping Script) {
        answer(with: script)
        isHasty.withLock { $0 = true }
    }

    /// From now on requests wait until ``release(_:)``.
    func hold() {
        let held = held
        answer { _, peer in held.update { $0.append(peer) } }
    }

    /// Waits until a request is held and answers it.
    func release(_ body: @Sendable (Peer) -> Void = { $0.answer("201 Created") }) async {
        await held.wait { !$0.isEmpty }
        if let peer = held.value.first { body(peer) }
        held.update { if !$0.isEmpty { $0.removeFirst() } }
    }

    /// Waits until a request is held.
    func waitUntilHeld() async {
        await held.wait { !$0.isEmpty }
    }

    func stop() async {
        try? await listener.close()
        for channel in channels.withLock({ $0 }) {
            channel.close(promise: nil)
            try? await channel.closeFuture.get()
        }
    }
}

extension UpstreamSettings {
    /// Services that are waited for as long as a busy machine needs.
    static func patient(_ addresses: [String]) -> UpstreamSettings {
        var settings = UpstreamSettings(addresses)
        settings.timeouts.bePatient(seconds: 600)
        return settings
    }
}

/// Cuts requests out of the bytes; only what HTTP clients of good will send.
private final class Requests: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let seen: Watched<TestUpstream.Seen>
    private let isHasty: Locked<Bool>
    private let script: TestUpstream.Script
    private var head: String?
    private var bytes: [UInt8] = []
    private var ignoresMore = false

    init(seen: Watched<TestUpstream.Seen>, isHasty: Locked<Bool>, script: @escaping TestUpstream.Script) {
        self.seen = seen
        self.isHasty = isHasty
        self.script = script
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        bytes += buffer.readableBytesView
        seen.update { $0.bytes += buffer.readableBytes }
        if ignoresMore { return }
        while true {
            if head == nil {
                guard let end = Data(bytes).range(of: Data("\r\n\r\n".utf8)) else { return }
                head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
                bytes.removeFirst(end.upperBound)
            }
            guard let head else { return }
            if isHasty.withLock({ $0 }) {
                ignoresMore = true
                let request = TestUpstream.Request(head: head, body: bytes)
                seen.update { $0.requests.append(request) }
                return script(request, TestUpstream.Peer(channel: context.channel))
            }
            let length: Int
            if head.lowercased().contains("transfer-encoding: chunked") {
                guard bytes.suffix(5).elementsEqual("0\r\n\r\n".utf8) else { return }
                length = bytes.count
            } else {
                let line = head.lowercased().components(separatedBy: "\r\n").first { $0.hasPrefix("content-length:") }
                length = line.flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
                guard bytes.count >= length else { return }
            }
            let request = TestUpstream.Request(head: head, body: Array(bytes.prefix(length)))
            bytes.removeFirst(length)
            self.head = nil
            seen.update { $0.requests.append(request) }
            script(request, TestUpstream.Peer(channel: context.channel))
            if bytes.isEmpty { return }
        }
    }
}

/// A port on 127.0.0.1 that refuses connections, and that nobody else can take meanwhile.
final class RefusingPort: Sendable {
    let port: Int
    private let descriptor: Int32

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        // 127.0.0.1 as the system's own form has it: family, port, address. To which module the fields of that form
        // belong depends on what else is compiled.
        var address = [UInt8](repeating: 0, count: 16)
        address[0] = UInt8(AF_INET)
        address.replaceSubrange(4..<8, with: [127, 0, 0, 1])
        var length = socklen_t(address.count)
        let descriptor = descriptor
        let result = address.withUnsafeMutableBytes { bytes in
            guard let generic = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return Int32(-1) }
            return bind(descriptor, generic, length) == 0 ? getsockname(descriptor, generic, &length) : -1
        }
        guard result == 0 else { throw IOError(errnoCode: errno, reason: "bind") }
        port = Int(address[2]) << 8 | Int(address[3])
    }

    deinit { close(descriptor) }
}
