import AssentCore
import NIOCore
import NIOHTTP1

/// How long the body of a request may take, and how much is read of one that has its reply already.
struct BodyLimits: Sendable {
    /// The time that every body has, however small. Waiting for us does not count.
    var grace = TimeAmount.seconds(20)

    /// How many bytes buy a further second.
    var bytesPerSecond = 500

    /// The longest time for a whole body; `nil` where a body may be of any size.
    var total: TimeAmount?

    /// How much of a body that nobody has read is taken so that its connection can be kept.
    var drained = 64 << 10

    /// How long, after the last reply of a connection, bytes that still come are thrown away: a connection that is
    /// closed before them is reset, and its client may never see the reply.
    var lingering = TimeAmount.seconds(2)

    /// How many such bytes.
    var thrownAway = 1 << 20

    /// Those of the server's own address, where no body is long. What streams to a service may be of any length.
    static let ofServer = BodyLimits(total: .seconds(60))
}

/// A body that does not come in time.
struct BodyTimeout: Error {}

/// What a responder triggers on the channel when it begins to read the body of a request: a client that waits to be
/// asked for it (RFC 9110 §10.1.1) is asked then, and never when it is refused.
struct BodyWanted: Sendable {}

/// Holds the requests of one connection to HTTP/1's own rules (RFC 9112): which are refused, how long their bodies may
/// take, and when a reply is the last.
final class RequestWatch: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// A request whose reply is not complete.
    private struct Exchange {
        let isHTTP10: Bool
        let isLast: Bool
        var awaitsContinue: Bool
    }

    /// The request whose body is being read.
    private struct Incoming {
        let began: NIODeadline
        var received = 0
        /// `nil` when its head did not say.
        let length: Int?
        /// Whether there is one that may be late.
        let isTimed: Bool
        /// How long it had to wait for us.
        var paused = TimeAmount.zero
    }

    private let limits: BodyLimits
    private var exchanges = CircularBuffer<Exchange>()
    private var incoming: Incoming?
    /// Whether HTTP reads nothing behind the request that is being read.
    private var isLastRead = false
    private var isReplyBegun = false
    private var closesAfterReply = false
    /// Whether nothing that comes can be understood, or is wanted, any more.
    private var isDeaf = false
    private var isEnding = false
    private var thrownAway = 0
    private var pausedSince: NIODeadline?
    private var timer: Scheduled<Void>?

    init(_ limits: BodyLimits) { self.limits = limits }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        guard !isDeaf else { return throwAway(part, context) }
        switch part {
        case .head(let head):
            guard RequestHeadRules.accept(head) else {
                isDeaf = true
                return context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
            }
            begin(head, context)
        case .body(let bytes): incoming?.received += bytes.readableBytes
        case .end:
            incoming = nil
            timer?.cancel()
            timer = nil
            // The parser stops here, and its buffer would keep everything that a client sends behind it.
            if isLastRead { context.triggerUserOutboundEvent(TunnelCommand.dropInput, promise: nil) }
        }
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if let incoming {
            let now = context.eventLoop.now
            pausedSince = now
            // Only now: most bodies come together with their head, and a timer costs more than reading them.
            if incoming.isTimed, timer == nil { schedule(in: incoming.began + limits.grace - now, context) }
        }
        if isEnding { context.read() }
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if let since = pausedSince {
            pausedSince = nil
            if let paused = incoming?.paused { incoming?.paused = paused + (context.eventLoop.now - since) }
        }
        context.read()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        isDeaf = true
        context.fireErrorCaught(error)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if isEnding, event as? ChannelEvent == .inputClosed { return context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is BodyWanted else { return context.triggerUserOutboundEvent(event, promise: promise) }
        promise?.succeed()
        guard exchanges.first?.awaitsContinue == true, !isReplyBegun, incoming?.received == 0 else { return }
        exchanges[exchanges.startIndex].awaitsContinue = false
        context.writeAndFlush(
            wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head):
            isReplyBegun = true
            closesAfterReply = mustClose(after: head)
            if closesAfterReply { head.headers.replaceOrAdd(name: "Connection", value: "close") }
            // Such a client knows no chunks: the end of the connection ends the reply.
            if exchanges.first?.isHTTP10 == true { head.version = .http1_0 }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body: context.write(data, promise: promise)
        case .end:
            isReplyBegun = false
            _ = exchanges.popFirst()
            guard closesAfterReply else { return context.write(data, promise: promise) }
            isDeaf = true
            let promise = promise ?? context.eventLoop.makePromise()
            promise.futureResult.assumeIsolated().whenComplete { _ in self.end(context) }
            context.writeAndFlush(data, promise: promise)
        }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if isEnding, mode == .output {
            promise?.succeed()
            return
        }
        context.close(mode: mode, promise: promise)
    }

    private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let isHTTP10 = head.version == .http1_0
        isLastRead = RequestHeadRules.asksToSwitch(head)
        exchanges.append(
            Exchange(
                isHTTP10: isHTTP10, isLast: isHTTP10 || isLastRead || RequestHeadRules.isLast(head),
                awaitsContinue: !isHTTP10 && RequestHeadRules.awaitsContinue(head)))
        let saysLength = head.headers.contains(name: "Content-Length")
        let length = head.headers.first(name: "Content-Length").flatMap { Int($0) }
        // The parser also takes a blank behind the number, and one up to 2^64-1: a body is waited for all the same.
        let isTimed = length.map { $0 > 0 } ?? (saysLength || head.headers.contains(name: "Transfer-Encoding"))
        incoming = Incoming(began: context.eventLoop.now, length: length, isTimed: isTimed)
        pausedSince = nil
    }

    /// Whether a reply is the last of its connection: also when more of its request is to come than is worth reading.
    private func mustClose(after head: HTTPResponseHead) -> Bool {
        guard let exchange = exchanges.first, !isDeaf, !exchange.isLast,
            !RequestHeadRules.saysClose(head.headers)
        else { return true }
        guard exchanges.count == 1, let incoming else { return false }
        guard !exchange.awaitsContinue, let length = incoming.length else { return true }
        return length - incoming.received > limits.drained
    }

    private func schedule(in time: TimeAmount, _ context: ChannelHandlerContext) {
        timer?.cancel()
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: time) { self.look(context) }
    }

    /// Ends the body when it is late.
    private func look(_ context: ChannelHandlerContext) {
        guard let incoming, !isEnding else { return }
        guard pausedSince == nil else { return schedule(in: limits.grace, context) }
        var allowed = limits.grace + .seconds(Int64(incoming.received / limits.bytesPerSecond))
        if let total = limits.total { allowed = min(allowed, total) }
        let late = incoming.began + incoming.paused + allowed
        let now = context.eventLoop.now
        guard now >= late else { return schedule(in: late - now, context) }
        // Nobody waits for it when its reply is out.
        guard !exchanges.isEmpty else { return context.close(promise: nil) }
        isDeaf = true
        context.fireErrorCaught(BodyTimeout())
    }

    private func end(_ context: ChannelHandlerContext) {
        guard !isEnding else { return }
        isEnding = true
        guard incoming != nil else { return context.close(promise: nil) }
        context.close(mode: .output, promise: nil)
        timer?.cancel()
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: limits.lingering) { context.close(promise: nil) }
        context.read()
    }

    private func throwAway(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch part {
        case .head: break
        case .body(let bytes):
            thrownAway += bytes.readableBytes
            if thrownAway > limits.thrownAway { context.close(promise: nil) }
        case .end:
            incoming = nil
            if isEnding { context.close(promise: nil) }
        }
    }
}

/// What HTTP/1 says about the head of a request by itself.
enum RequestHeadRules {
    /// Whether a request is one of HTTP/1 that names one host (RFC 9112 §3.2), and whose end two programs cannot see
    /// in two places (§6.1, §6.3): `chunked` is its only transfer coding, if it has any. An empty field has none, but
    /// what follows may be a body for the program that stands in front. No text in it is slow to compare.
    static func accept(_ head: HTTPRequestHead) -> Bool {
        guard !MarksInARow.areTooMany(in: head.uri) else { return false }
        // In one walk over the fields: each request comes by here.
        var (hosts, codings) = (0, 0)
        for (name, value) in head.headers {
            if isName(name, "host") {
                hosts += 1
                guard isHost(value) else { return false }
            } else if isName(name, "transfer-encoding") {
                codings += 1
                guard isName(value, "chunked") else { return false }
            } else if MarksInARow.areTooMany(in: value) {
                return false
            }
        }
        switch head.version {
        case .http1_1: return hosts == 1 && codings <= 1
        case .http1_0: return hosts <= 1 && codings == 0
        default: return false
        }
    }

    /// Whether the client sends no further request.
    static func isLast(_ head: HTTPRequestHead) -> Bool { saysClose(head.headers) }

    /// Whether the client wants to go on with something else than HTTP/1: `CONNECT`, or an `Upgrade`.
    static func asksToSwitch(_ head: HTTPRequestHead) -> Bool {
        head.method == .CONNECT || head.headers.contains { isName($0.name, "upgrade") }
    }

    /// Whether the client waits to be asked for the body.
    static func awaitsContinue(_ head: HTTPRequestHead) -> Bool {
        head.headers.contains { isName($0.name, "expect") && $0.value.lowercased() == "100-continue" }
    }

    /// Whether the fields say that the connection ends.
    static func saysClose(_ headers: HTTPHeaders) -> Bool {
        guard headers.contains(where: { isName($0.name, "connection") }) else { return false }
        return headers[canonicalForm: "Connection"].contains { $0.lowercased() == "close" }
    }

    /// Whether a name of a field or of a coding is this one, which is written in lower case.
    private static func isName(_ name: String, _ wanted: StaticString) -> Bool {
        guard name.utf8.count == wanted.utf8CodeUnitCount else { return false }
        return wanted.withUTF8Buffer { wanted in
            zip(name.utf8, wanted).allSatisfy { $0 | 0x20 == $1 }
        }
    }

    /// Whether a text is a host with or without a port (RFC 3986 §3.2).
    static func isHost(_ text: String) -> Bool {
        var host = text.utf8[...]
        if host.first == UInt8(ascii: "[") {
            guard let end = host.firstIndex(of: UInt8(ascii: "]")) else { return false }
            let address = host[host.startIndex..<end].dropFirst()
            guard address.count > 1,
                address.allSatisfy({ isHexDigit($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
            else { return false }
            let rest = host[end...].dropFirst()
            return rest.isEmpty || isPort(rest)
        }
        if let colon = host.firstIndex(of: UInt8(ascii: ":")) {
            guard isPort(host[colon...]) else { return false }
            host = host[..<colon]
        }
        return !host.isEmpty && host.allSatisfy(isNameByte)
    }

    private static func isPort(_ text: Substring.UTF8View) -> Bool {
        text.first == UInt8(ascii: ":") && text.count <= 6
            && text.dropFirst().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }
}
