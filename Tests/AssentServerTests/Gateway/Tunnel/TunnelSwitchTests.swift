import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import AssentServer

@Suite("The bytes of a connection that may become a tunnel")
struct TunnelSwitchTests {
    private static let handshake =
        "GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

    private let channel = EmbeddedChannel()
    private let passed = PassedBytes()

    init() throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(TunnelSwitch())
        try pipeline.addHandler(HTTPResponseEncoder())
        try pipeline.addHandler(passed)
        try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
        try pipeline.addHandler(RequestWatch(BodyLimits()))
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/anywhere")).wait()
    }

    private func receive(_ text: String) throws { try channel.writeInbound(ByteBuffer(string: text)) }

    private func ask(_ command: TunnelCommand) throws { try channel.triggerUserOutboundEvent(command).wait() }

    @Test(
        "HTTP stops reading behind CONNECT and an Upgrade, so what follows is kept nowhere",
        arguments: ["CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", nil])
    func flood(_ other: String?) throws {
        let request = other ?? Self.handshake
        try receive(request)
        #expect(passed.count == request.utf8.count)
        for _ in 0..<10 { try channel.writeInbound(ByteBuffer(repeating: 0x61, count: 65_536)) }
        #expect(passed.count == request.utf8.count)
        #expect(channel.isActive)
    }

    @Test("All routes together have no more tunnels than leave descriptors to the server itself")
    func total() {
        #expect([1024, 65_536, 10].map(TunnelCount.share(of:)) == [128, 8192, 32])
        let count = TunnelCount(total: 2)
        #expect(count.enter("a", limit: 9, for: "192.0.2.1"))
        #expect(count.enter("b", limit: 9, for: "192.0.2.2"))
        #expect(!count.enter("a", limit: 9, for: "192.0.2.3"))
        #expect(!count.enter("c", limit: 9, for: "192.0.2.4"))
        count.leave("b", for: "192.0.2.2")
        #expect(count.enter("c", limit: 9, for: "192.0.2.4"))
    }

    @Test("An address that takes all that it gets leaves most places to others, over all routes and kinds")
    func share() {
        let count = TunnelCount(total: 128)
        let taken = (0..<128).count { number in
            count.enter("r\(number)", number.isMultiple(of: 2) ? .tunnel : .stream, limit: 9, for: "192.0.2.7")
        }
        #expect(taken == 32)
        #expect(!count.hasPlace("a", limit: 9, for: "192.0.2.7"))
        #expect(!count.hasPlace("a", .stream, limit: 9, for: "192.0.2.7"))
        #expect(count.enter("a", limit: 9, for: "192.0.2.8"))
        count.leave("r0", for: "192.0.2.7")
        count.leave("r1", .stream, for: "192.0.2.7")
        #expect(count.enter("a", limit: 9, for: "192.0.2.7"))
    }

    @Test("Where the file says how many connections one address may have, it may have as many tunnels")
    func perAddress() {
        let count = TunnelCount(total: 8, perAddress: 5)
        let taken = (0..<8).count { _ in count.enter("a", limit: 9, for: "192.0.2.7") }
        #expect(taken == 5)
        #expect(count.enter("a", limit: 9, for: "192.0.2.8"))
    }

    @Test("WebSockets and streams of a route have places of their own, and a stream's is given back with its reply")
    func kinds() {
        let count = TunnelCount(total: 3, perAddress: 3)
        let address = "192.0.2.7"
        #expect(count.enter("a", limit: 1, for: address))
        var place = TunnelPlace.take(count, "a", .stream, limit: 1, for: address)
        #expect(place != nil && !count.hasPlace("a", .stream, limit: 1, for: address))
        #expect(TunnelPlace.take(count, "a", .stream, limit: 1, for: address) == nil)
        // One that was not had is not given back either.
        #expect(!count.hasPlace("a", .stream, limit: 1, for: address))
        #expect(count.hasPlace("b", .stream, limit: 1, for: address))
        place = nil
        #expect(count.hasPlace("a", .stream, limit: 1, for: address))
        #expect(!count.hasPlace("a", limit: 1, for: address))
    }

    @Test("Behind any other request the next one is read")
    func next() throws {
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in 0..<3 { try receive(request) }
        #expect(passed.count == 3 * request.utf8.count)
    }

    @Test("A second request behind the handshake is too early, though it ends as the handshake does")
    func pipelined() throws {
        try receive(Self.handshake)
        try receive("POST /pay HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        #expect(throws: TunnelFault.self) { try ask(.expectSilence) }
    }

    @Test("A server that stops while the service thinks opens no tunnel, which would outlast the stop")
    func stopping() throws {
        try receive(Self.handshake)
        try ask(.expectSilence)
        channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        let head = channel.eventLoop.makePromise(of: ServiceHead.self)
        head.fail(TunnelFault.closed)
        let peer = NIOLoopBound(TunnelPeer(head), eventLoop: channel.eventLoop)
        #expect(throws: TunnelFault.self) { try ask(.open(ByteBuffer(string: "head"), Tunnel(), peer)) }
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
    }

    @Test("What a service has sent reaches the client, also when it has ended before the tunnel was open")
    func endedEarly() throws {
        try receive(Self.handshake)
        try ask(.expectSilence)
        let service = EmbeddedChannel()
        let head = service.eventLoop.makePromise(of: ServiceHead.self)
        let peer = TunnelPeer(head)
        try service.pipeline.syncOperations.addHandler(peer)
        try service.connect(to: SocketAddress(unixDomainSocketPath: "/anywhere")).wait()
        try service.writeInbound(ByteBuffer(string: "HTTP/1.1 101 Switching Protocols\r\n\r\nbye"))
        try service.close().wait()
        service.embeddedEventLoop.run()
        #expect(try head.futureResult.wait().status == 101)
        try ask(.open(ByteBuffer(string: "head "), Tunnel(), NIOLoopBound(peer, eventLoop: channel.eventLoop)))
        var sent = ""
        while let part = try channel.readOutbound(as: ByteBuffer.self) { sent += String(buffer: part) }
        #expect(sent == "head bye")
        #expect(!channel.isActive)
    }
}

/// Counts the bytes that HTTP gets to read.
private final class PassedBytes: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private(set) var count = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        count += unwrapInboundIn(data).readableBytes
        context.fireChannelRead(data)
    }
}
