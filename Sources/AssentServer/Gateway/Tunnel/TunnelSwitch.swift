import NIOCore

/// What a responder asks of the connection of its request, when it is to become a tunnel.
enum TunnelCommand: Sendable {
    /// HTTP reads nothing more of what the client sends: it is thrown away, unless a tunnel is opened.
    case dropInput
    /// From now on the client must not send anything until the tunnel is open. Fails when it has already.
    case expectSilence
    /// There will be no tunnel: the connection goes on as before.
    case giveUp
    /// Sends the head of the answer, and from now on everything that comes from either end to the other.
    case open(ByteBuffer, Tunnel, NIOLoopBound<TunnelPeer>)
}

/// Why a connection cannot become a tunnel.
enum TunnelFault: Error {
    /// The client has sent more than its handshake before it had the answer (RFC 6455 §4.1).
    case earlyBytes
    /// The connection is over.
    case closed
}

/// Stands below HTTP on each connection of a client, where there are bytes only, and makes a tunnel of it: what HTTP
/// would read and write is then cut off.
final class TunnelSwitch: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        case http
        case silent
        case tunnel(Tunnel, TunnelPeer)
        case over
    }

    private static let headEnd: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]

    private var state = State.http
    /// The last bytes that have come: a request without a body ends with a blank line.
    private var latest: [UInt8] = []
    private var dropsInput = false
    /// Whether the server stops: no tunnel is opened any more.
    private var isStopping = false
    private var context: ChannelHandlerContext?
    /// What the client was sent last in the tunnel.
    private var sent: EventLoopFuture<Void>?

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch state {
        // What is behind the request is not the end of it.
        case .http where dropsInput: latest = []
        case .http:
            remember(unwrapInboundIn(data))
            context.fireChannelRead(data)
        case .silent: end(context)
        case .tunnel(let tunnel, let peer):
            tunnel.heard()
            peer.send(unwrapInboundIn(data))
        case .over: break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard case .tunnel(_, let peer) = state else { return context.fireChannelReadComplete() }
        // HTTP above reads no more, so nobody else asks for what comes next.
        if peer.takesMore { context.read() }
    }

    func read(context: ChannelHandlerContext) {
        if case .tunnel(_, let peer) = state, !peer.takesMore { return }
        context.read()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch state {
        case .http, .silent: context.write(data, promise: promise)
        case .tunnel, .over: promise?.fail(ChannelError.ioOnClosedChannel)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if case .tunnel(_, let peer) = state, context.channel.isWritable { peer.readMore() }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent { isStopping = true }
        guard case .tunnel = state else { return context.fireUserInboundEventTriggered(event) }
        // A client that sends no more has no use for the rest, and a server that stops does not wait for tunnels.
        if event is ChannelShouldQuiesceEvent || event as? ChannelEvent == .inputClosed { end(context) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .tunnel(let tunnel, let peer) = state {
            tunnel.ended()
            peer.end()
        }
        state = .over
        context.fireChannelInactive()
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard let command = event as? TunnelCommand else {
            return context.triggerUserOutboundEvent(event, promise: promise)
        }
        switch (command, state) {
        case (.dropInput, _):
            dropsInput = true
            promise?.succeed()
        case (.expectSilence, .http):
            guard latest == Self.headEnd else {
                promise?.fail(TunnelFault.earlyBytes)
                return
            }
            state = .silent
            promise?.succeed()
        case (.giveUp, .silent):
            state = .http
            promise?.succeed()
        case (.open(let head, let tunnel, let bound), .silent) where !isStopping:
            let peer = bound.value
            state = .tunnel(tunnel, peer)
            context.writeAndFlush(wrapOutboundOut(head), promise: promise)
            peer.connect(to: self, tunnel)
            context.read()
        default: promise?.fail(TunnelFault.closed)
        }
    }

    /// Whether the client takes more now.
    var takesMore: Bool { context?.channel.isWritable ?? false }

    /// Sends to the client.
    func send(_ bytes: ByteBuffer) { sent = context?.writeAndFlush(wrapOutboundOut(bytes)) }

    /// Reads on, since the service takes more again.
    func readMore() { context?.read() }

    /// Ends the connection once everything that it was sent is written.
    func end() {
        guard let context, case .tunnel(let tunnel, _) = state else { return }
        state = .over
        tunnel.ended()
        guard let sent else { return context.close(promise: nil) }
        sent.assumeIsolated().whenComplete { _ in context.close(promise: nil) }
    }

    private func end(_ context: ChannelHandlerContext) {
        if case .tunnel(let tunnel, let peer) = state {
            tunnel.ended()
            peer.end()
        }
        state = .over
        context.close(promise: nil)
    }

    private func remember(_ bytes: ByteBuffer) {
        let wanted = Self.headEnd.count
        let view = bytes.readableBytesView
        latest = view.count >= wanted ? Array(view.suffix(wanted)) : Array((latest + view).suffix(wanted))
    }
}

/// The other end of a tunnel: the connection to the service. It reads the answer to the handshake, and holds what comes
/// behind it until the client's end is there.
final class TunnelPeer: ChannelInboundHandler, ChannelOutboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        case head(EventLoopPromise<ServiceHead>)
        case held
        case tunnel(TunnelSwitch, Tunnel)
        case over
    }

    private static let headEnd: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]

    private var state: State
    private var bytes = ByteBuffer()
    /// Whether the connection has ended before the client's end was there.
    private var hasEnded = false
    private var context: ChannelHandlerContext?

    init(_ head: EventLoopPromise<ServiceHead>) { state = .head(head) }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        close()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var part = unwrapInboundIn(data)
        switch state {
        case .head(let promise):
            bytes.writeBuffer(&part)
            readHead(promise, context)
        case .held: bytes.writeBuffer(&part)
        case .tunnel(let client, let tunnel):
            tunnel.heard()
            client.send(part)
        case .over: break
        }
    }

    func read(context: ChannelHandlerContext) {
        switch state {
        case .head: context.read()
        case .tunnel(let client, _): if client.takesMore { context.read() }
        case .held, .over: break
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if case .tunnel(let client, _) = state, context.channel.isWritable { client.readMore() }
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        close()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// Whether the service takes more now.
    var takesMore: Bool { context?.channel.isWritable ?? false }

    /// Sends to the service.
    func send(_ bytes: ByteBuffer) { context?.writeAndFlush(wrapOutboundOut(bytes), promise: nil) }

    /// Reads on, since the client takes more again.
    func readMore() { context?.read() }

    /// From now on what comes goes to the client; first what has come already.
    func connect(to client: TunnelSwitch, _ tunnel: Tunnel) {
        guard case .held = state else { return client.end() }
        state = .tunnel(client, tunnel)
        if bytes.readableBytes > 0 { client.send(bytes) }
        bytes = ByteBuffer()
        if hasEnded { return close() }
        context?.read()
    }

    /// Ends the connection.
    func end() {
        state = .over
        context?.close(promise: nil)
    }

    private func close() {
        switch state {
        case .head(let promise): promise.fail(TunnelFault.closed)
        case .tunnel(let client, _): client.end()
        case .held:
            // What it has sent until now is still for the client.
            hasEnded = true
            return
        case .over: break
        }
        state = .over
    }

    private func readHead(_ promise: EventLoopPromise<ServiceHead>, _ context: ChannelHandlerContext) {
        let view = bytes.readableBytesView
        guard let end = view.firstRange(of: Self.headEnd) else {
            if view.count > ServiceHead.longest { context.close(promise: nil) }
            return
        }
        guard view.distance(from: view.startIndex, to: end.lowerBound) <= ServiceHead.longest,
            let head = ServiceHead(view[..<end.lowerBound])
        else { return context.close(promise: nil) }
        bytes.moveReaderIndex(to: end.upperBound)
        state = .held
        promise.succeed(head)
    }
}
