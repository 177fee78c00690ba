import AssentEngine
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import AssentServer

@Suite("A connection's requests")
struct RequestWatchTests {
    private let channel: EmbeddedChannel

    init() throws {
        channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandler(HalfClosing())
        try channel.pipeline.syncOperations.addHandler(
            RequestWatch(BodyLimits(total: .seconds(60), thrownAway: 100_000)))
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/anywhere")).wait()
    }

    private func head(
        _ fields: [(String, String)] = [], host: [String] = ["localhost"], version: HTTPVersion = .http1_1
    ) -> HTTPServerRequestPart {
        .head(
            HTTPRequestHead(
                version: version, method: .POST, uri: "/",
                headers: HTTPHeaders(host.map { ("Host", $0) } + fields)))
    }

    /// What comes from the client, as a channel delivers it, and its wish for more.
    private func receive(_ parts: HTTPServerRequestPart...) throws {
        for part in parts { try channel.writeInbound(part) }
        channel.read()
    }

    private func bytes(_ count: Int) -> HTTPServerRequestPart {
        .body(ByteBuffer(repeating: 0x61, count: count))
    }

    private func reply(_ status: HTTPResponseStatus = .unauthorized) throws -> HTTPResponseHead? {
        try channel.writeOutbound(
            HTTPServerResponsePart.head(
                HTTPResponseHead(version: .http1_1, status: status, headers: ["Content-Length": "0"])))
        let sent = try channel.readOutbound(as: HTTPServerResponsePart.self)
        try channel.writeOutbound(HTTPServerResponsePart.end(nil))
        guard case .head(let head) = sent else { return nil }
        return head
    }

    private func advance(_ time: TimeAmount) { channel.embeddedEventLoop.advanceTime(by: time) }

    /// What was wrong with a body, told to whoever reads it.
    private func fault() -> (any Error)? {
        do {
            try channel.throwIfErrorCaught()
            return nil
        } catch {
            return error
        }
    }

    @Test("A target that is slow to compare is refused with its head")
    func marks() {
        for (count, isAccepted) in [(0, true), (64, true), (65, false)] {
            let uri = "/" + String(repeating: "\u{301}", count: count)
            let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: uri, headers: ["Host": "a"])
            #expect(RequestHeadRules.accept(head) == isAccepted, "\(count)")
        }
    }

    @Test("A body that does not come within 20 seconds ends with an error")
    func silentBody() throws {
        try receive(head([("Content-Length", "10")]))
        advance(.seconds(19))
        #expect(fault() == nil)
        advance(.seconds(1))
        #expect(fault() is BodyTimeout)
        #expect(try reply(.requestTimeout)?.headers["Connection"] == ["close"])
    }

    @Test(
        "No spelling of its length frees a body from its time",
        arguments: ["10 ", "10\t", "0010", "9223372036854775808", "18446744073709551615"])
    func strangeLength(_ length: String) throws {
        try receive(head([("Content-Length", length)]), bytes(1))
        advance(.seconds(19))
        #expect(fault() == nil)
        advance(.seconds(1))
        #expect(fault() is BodyTimeout)
    }

    @Test("A body that does not come is late in the same way behind one that has come together with its head")
    func silentAfterWhole() throws {
        let pipeline = channel.pipeline.syncOperations
        let parts: [HTTPServerRequestPart] = [head([("Content-Length", "2")]), bytes(2), .end(nil)]
        for part in parts { pipeline.fireChannelRead(NIOAny(part)) }
        pipeline.fireChannelReadComplete()
        channel.read()
        advance(.seconds(30))
        #expect(fault() == nil)
        #expect(try reply(.ok)?.headers["Connection"] == [])
        try receive(head([("Content-Length", "10")]), bytes(1))
        advance(.seconds(19))
        #expect(fault() == nil)
        advance(.seconds(1))
        #expect(fault() is BodyTimeout)
    }

    @Test("A byte now and then buys no time, and 500 a second buy a second, up to 60")
    func drippingBody() throws {
        try receive(head([("Content-Length", "1000000")]))
        for _ in 0..<4 {
            advance(.seconds(4))
            try receive(bytes(1))
        }
        #expect(fault() == nil)
        advance(.seconds(4))
        #expect(fault() is BodyTimeout)

        let slow = try RequestWatchTests()
        try slow.receive(slow.head([("Content-Length", "1000000")]))
        for _ in 0..<59 {
            slow.advance(.seconds(1))
            try slow.receive(slow.bytes(500))
        }
        #expect(slow.fault() == nil)
        slow.advance(.seconds(1))
        #expect(slow.fault() is BodyTimeout)
    }

    @Test("Time in which nobody here reads is not the client's")
    func backPressure() throws {
        try receive(head([("Content-Length", "1000000")]))
        try channel.writeInbound(bytes(10))
        advance(.seconds(3600))
        #expect(fault() == nil)
        channel.read()
        advance(.seconds(19))
        #expect(fault() == nil)
        advance(.seconds(2))
        #expect(fault() is BodyTimeout)
    }

    @Test("A body that is complete has no limit any more")
    func complete() throws {
        try receive(head([("Content-Length", "2")]), bytes(2), .end(nil))
        advance(.seconds(3600))
        #expect(fault() == nil)
        #expect(channel.isActive)
        #expect(try reply(.ok)?.headers["Connection"] == [])
        #expect(channel.isActive)
    }

    @Test(
        "A reply before the end of a body that is long, of unknown length or not asked for is the last, and the rest is thrown away for a moment",
        arguments: [
            [("Content-Length", "5000000")], [("Transfer-Encoding", "chunked")],
            [("Content-Length", "10"), ("Expect", "100-continue")],
        ])
    func refused(fields: [(String, String)]) throws {
        try receive(head(fields))
        #expect(try reply()?.headers["Connection"] == ["close"])
        // Nobody but the handler reads now: the rest reaches nobody.
        while try channel.readInbound(as: HTTPServerRequestPart.self) != nil {}
        try receive(bytes(60_000))
        #expect(try channel.readInbound(as: HTTPServerRequestPart.self) == nil)
        #expect(channel.isActive)
        advance(.seconds(2))
        #expect(!channel.isActive)
    }

    @Test("No more than a limit is thrown away")
    func flood() throws {
        try receive(head([("Transfer-Encoding", "chunked")]))
        _ = try reply()
        try receive(bytes(60_000))
        #expect(channel.isActive)
        try? receive(bytes(60_000))
        #expect(!channel.isActive)
    }

    @Test("A short body that nobody wants is read, so that the connection can be kept, but not for ever")
    func shortRest() throws {
        try receive(head([("Content-Length", "1000")]))
        #expect(try reply()?.headers["Connection"] == [])
        advance(.seconds(19))
        #expect(channel.isActive)
        advance(.seconds(1))
        #expect(!channel.isActive)
    }

    @Test("A client of HTTP/1.0 gets its own version and the end of the connection")
    func http10() throws {
        try receive(head(host: [], version: .http1_0), .end(nil))
        let reply = try reply(.ok)
        #expect(reply?.version == .http1_0)
        #expect(reply?.headers["Connection"] == ["close"])
        #expect(!channel.isActive)
    }

    @Test("A client that says close, in any case, gets the end of the connection")
    func close() throws {
        try receive(head([("Connection", "TE, Close")]), .end(nil))
        #expect(try reply(.ok)?.headers["Connection"] == ["close"])
        #expect(!channel.isActive)
    }

    @Test("A client that asks for another protocol gets the end of the connection with its answer")
    func upgrade() throws {
        try receive(head([("Upgrade", "h2c")]), .end(nil))
        #expect(try reply(.ok)?.headers["Connection"] == ["close"])
        #expect(!channel.isActive)
    }

    @Test("A client that waits to be asked for its body is asked when somebody reads, once, and not before")
    func expectation() throws {
        try receive(head([("Content-Length", "10"), ("Expect", "100-Continue")]))
        #expect(try channel.readOutbound(as: HTTPServerResponsePart.self) == nil)
        for _ in 0..<2 { channel.triggerUserOutboundEvent(BodyWanted(), promise: nil) }
        guard case .head(let asked) = try channel.readOutbound(as: HTTPServerResponsePart.self) else {
            Issue.record("nobody asked")
            return
        }
        #expect(asked.status == .continue)
        #expect(try channel.readOutbound(as: HTTPServerResponsePart.self) == nil)
        try receive(bytes(10), .end(nil))
        #expect(try reply(.ok)?.headers["Connection"] == [])
    }

    @Test(
        "No host, two hosts and what is no host are refused",
        arguments: [
            [], ["a", "a"], [""], ["a b"], ["a@b"], ["a/b"], ["a,b"], ["a:b"], ["a:1:2"], ["a:123456"], ["[::1"],
            ["[]"], ["[x]"], ["[::1]x"], ["a\u{E4}"],
        ])
    func badHost(hosts: [String]) throws {
        #expect(throws: HTTPParserError.self) { try receive(head(host: hosts)) }
        try receive(.end(nil))
        #expect(try channel.readInbound(as: HTTPServerRequestPart.self) == nil)
    }

    @Test(
        "A host with or without a port is taken",
        arguments: ["a", "am.bank.example:8443", "127.0.0.1:1", "[::1]:8443", "[::1]", "a_b", "a:"])
    func goodHost(host: String) throws {
        try receive(head(host: [host]), .end(nil))
        #expect(fault() == nil)
    }

    @Test(
        "A transfer coding that is empty, another than chunked, or one too many ends the connection's requests",
        arguments: [[""], ["gzip, chunked"], ["chunked", "chunked"], ["identity"], ["", "chunked"], ["chunked,"]])
    func codings(values: [String]) throws {
        #expect(throws: HTTPParserError.self) {
            try receive(head(values.map { ("Transfer-Encoding", $0) }))
        }
        try receive(.end(nil), head(), .end(nil))
        #expect(try channel.readInbound(as: HTTPServerRequestPart.self) == nil)
        #expect(try reply(.badRequest)?.headers["Connection"] == ["close"])
        #expect(!channel.isActive)
    }

    @Test("Chunks in any letters are chunks")
    func chunked() throws {
        try receive(head([("transfer-encoding", "Chunked")]), bytes(2), .end(nil))
        #expect(fault() == nil)
    }

    @Test("Chunks from a client of HTTP/1.0 are refused")
    func oldChunks() throws {
        #expect(throws: HTTPParserError.self) {
            try receive(head([("Transfer-Encoding", "chunked")], version: .http1_0))
        }
    }
}

/// Does what a connection does that the embedded channel does not: it can end in one direction.
private final class HalfClosing: ChannelOutboundHandler {
    typealias OutboundIn = HTTPServerResponsePart

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .output else { return context.close(mode: mode, promise: promise) }
        promise?.succeed()
    }
}

@Suite("How many connections there may be")
struct ConnectionCountTests {
    @Test("A quarter of the descriptors, and at least 64, stay free; one address has a quarter of the rest")
    func limits() {
        #expect(ConnectionLimits(descriptors: 1024).total == 768)
        #expect(ConnectionLimits(descriptors: 1024).shares.left(for: "192.0.2.1") == 192)
        #expect(ConnectionLimits(descriptors: 128).total == 64)
        #expect(ConnectionLimits(descriptors: 10).total == 1)
        #expect(ConnectionLimits(descriptors: 1024, perAddress: 700).shares.left(for: "192.0.2.1") == 700)
        #expect(ConnectionLimits.processDescriptors > 64)
    }

    @Test(
        "Addresses that take all connections they get leave some to one that was never seen", arguments: [1, 3, 10],
        [1024, 128])
    func newcomers(takers: Int, descriptors: Int) {
        var count = ConnectionCount(ConnectionLimits(descriptors: descriptors))
        for taker in 0..<takers { while count.enter("taker \(taker)").isAdmitted {} }
        #expect(count.enter("phone").isAdmitted)
        count.leave("phone")
        // Also after any of them has come anew.
        for taker in 0..<takers {
            count.leave("taker \(taker)")
            for other in 0..<takers { while count.enter("taker \(other)").isAdmitted {} }
            #expect(count.enter("phone").isAdmitted)
            count.leave("phone")
        }
    }

    @Test("Ten addresses leave a twentieth of the connections")
    func ten() {
        let limits = ConnectionLimits(descriptors: 1024)
        var shares = limits.shares
        for taker in 0..<10 { while shares.enter("\(taker)") {} }
        #expect(limits.total - shares.taken == 42)
    }

    @Test("One address cannot take all places, and is named once")
    func address() {
        var count = ConnectionCount(ConnectionLimits(descriptors: 144))
        for _ in 0..<20 { #expect(count.enter("192.0.2.1").isAdmitted) }
        let refused = count.enter("192.0.2.1")
        #expect(!refused.isAdmitted)
        #expect(refused.notice?.metadata["address"] == "192.0.2.1")
        #expect(count.enter("192.0.2.1").notice == nil)
        #expect(count.enter("192.0.2.2").isAdmitted)
        count.leave("192.0.2.1")
        #expect(count.enter("192.0.2.1").isAdmitted)
        #expect(count.enter("192.0.2.1").notice == nil)
        for _ in 0..<10 { count.leave("192.0.2.1") }
        for _ in 0..<10 { _ = count.enter("192.0.2.1") }
        #expect(count.enter("192.0.2.1").notice != nil)
    }

    @Test("When all places are taken there is one line, and another when they were free meanwhile")
    func total() {
        var count = ConnectionCount(ConnectionLimits(descriptors: 74, perAddress: 100))
        for _ in 0..<10 { #expect(count.enter("a").isAdmitted) }
        #expect(count.enter("b").notice?.metadata["connections"] == "10")
        #expect(count.enter("b").notice == nil)
        #expect(!count.enter("b").isAdmitted)
        count.leave("a")
        #expect(count.enter("b").isAdmitted)
        #expect(count.enter("b").notice != nil)
    }
}
