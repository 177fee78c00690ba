import AssentCore
import NIOCore
import NIOSSL
import NIOTLS

/// One connection: the last handler of its channel, on whose event loop all of it runs. ``ConnectionState`` decides;
/// this reads, writes, answers and closes what it says.
final class HTTPConnection: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = Never
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let id: UInt64
    private let owner: any ConnectionOwner
    private let parserLimits: ReplyParser.Limits
    private let isSecure: Bool
    private var opening: ConnectionOpening?
    private var state: ConnectionState
    private var context: ChannelHandlerContext?
    private var handle: ConnectionHandle?
    private var exchange: Exchange?
    private var input = ByteBuffer()
    private var timer: Scheduled<Void>?

    init(
        id: UInt64, opening: ConnectionOpening, owner: any ConnectionOwner, settings: ConnectionSettings,
        isSecure: Bool
    ) {
        self.id = id
        self.opening = opening
        self.owner = owner
        self.isSecure = isSecure
        parserLimits = settings.parser
        state = ConnectionState(limits: .init(idle: settings.idle, keepsConnections: settings.keepsConnections))
    }

    // MARK: - Opening

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if !isSecure { becomeReady(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        self.context = nil
        // Both refer back to this object.
        handle = nil
        opening = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted(let negotiated) = event as? TLSUserEvent {
            if let negotiated, negotiated != TLSClient.applicationProtocol {
                run(state.close(HTTPTransportError(.tlsFailed, "The server chose another protocol than HTTP/1.1.")))
            } else {
                becomeReady(context)
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func becomeReady(_ context: ChannelHandlerContext) {
        guard state.opened(), let opening else { return }
        let handle = ConnectionHandle(id: id, channel: context.channel, connection: self)
        self.handle = handle
        self.opening = nil
        if !opening.succeed(handle) { run(state.close(nil)) }
    }

    // MARK: - Requests

    func start(_ start: ExchangeStart) {
        let channel = context?.channel
        let isActive = channel?.isActive == true
        // What is not repeated must not be written to a connection that is known to be dead.
        let isDead =
            isActive && start.isReused && start.request.needsLiveConnection && channel?.isClosedByPeer == true
        switch state.start(start.summary, isActive: isActive, isDead: isDead, now: .now()) {
        case .refuse(let failure): start.continuation.resume(throwing: failure)
        case .refuseAndClose(let failure):
            start.continuation.resume(throwing: failure)
            context?.close(promise: nil)
        case .send: send(start)
        }
    }

    private func send(_ start: ExchangeStart) {
        // Made first: it answers the caller even when it cannot begin.
        let exchange = Exchange(start, limits: parserLimits)
        guard let handle, let context else { return run(state.close(nil)) }
        self.exchange = exchange
        context.writeAndFlush(wrapOutboundOut(start.request.bytes), promise: nil)
        if start.request.hasUpload {
            let upload = Upload(
                connection: handle, exchange: start.id, content: start.request.content, control: start.control)
            exchange.upload = Task { await upload.run() }
        }
        if let control = start.control {
            let id = start.id
            exchange.watch = control.watch { handle.adjust(id) }
            adjust(id)
        }
        setTimer()
    }

    /// Suspends the exchange, or lets it go on, as its control says now.
    func adjust(_ id: UInt64) {
        guard let control = exchange?.control else { return }
        if control.isSuspended {
            guard state.suspend(id, now: .now()), !owner.suspended(self.id) else { return }
            control.refuse()
        }
        guard case .goOn(let readsNow) = state.goOn(id, now: .now()) else { return }
        owner.goesOn(self.id)
        if readsNow { context?.read() }
        setTimer()
    }

    func write(_ id: UInt64, _ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>) {
        guard state.mayWrite(id, now: .now()), let context else {
            return promise.fail(HTTPTransportError(.connectionClosed, "The exchange has ended."))
        }
        context.writeAndFlush(wrapOutboundOut(bytes), promise: promise)
    }

    func finishUpload(_ id: UInt64, _ error: HTTPTransportError?) {
        run(state.uploadEnded(id, error, now: .now()))
        // What is waited for next may have a shorter limit.
        setTimer()
    }

    /// Ends this exchange, if it is still the current one, and with it the connection.
    func abort(_ id: UInt64, _ error: HTTPTransportError) {
        run(state.abort(id, error))
    }

    /// Ends the connection with what runs on it.
    func end(_ error: HTTPTransportError) {
        run(state.close(error))
    }

    // MARK: - Replies

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        switch state.received(now: .now()) {
        case .close(let closing): run(closing)
        case .parse:
            if input.readableBytes == 0 { input = bytes } else { input.writeBuffer(&bytes) }
            while parse(context) {}
            // Let go of, and not cleared: as long as this has the bytes, too, TLS copies its whole buffer before it
            // writes the next ones into it.
            if input.readableBytes == 0 { input = ByteBuffer() }
        }
    }

    /// Takes the next piece of a reply out of the bytes; whether there may be more.
    private func parse(_ context: ChannelHandlerContext) -> Bool {
        guard let exchange else { return false }
        let step: ReplyParser.Step
        do {
            step = try exchange.parser.next(&input)
        } catch {
            run(state.close(error))
            return false
        }
        switch step {
        case .needsMore:
            return false
        case .head(let response):
            // Known also when its content is too long: the caller gets the status, the reader the error.
            exchange.response = response
            if let closing = state.head(length: exchange.parser.declaredLength) {
                run(closing)
                return false
            }
            setTimer()
        case .content(let slice):
            switch state.content(slice.readableBytes) {
            case .collect: exchange.early += slice.readableBytesView
            case .push: if exchange.push(slice) { state.hold() }
            case .close(let closing):
                run(closing)
                return false
            }
        case .end:
            let isClean = input.readableBytes == 0 && context.channel.isActive
            switch state.replyEnded(keepsAlive: exchange.parser.keepsAlive, isClean: isClean, now: .now()) {
            case .complete(let completion): complete(exchange, completion)
            case .close(let closing): run(closing)
            }
            return false
        }
        return true
    }

    private func complete(_ exchange: Exchange, _ completion: ConnectionState.Completion) {
        self.exchange = nil
        if completion.resumesReading { context?.read() }
        // Before the reply is handed over, so that the next request finds this connection.
        if completion.isReusable {
            if owner.released(id) { setTimer() } else { run(state.notKept()) }
        }
        exchange.complete(completion.delivery)
        if !completion.isReusable { context?.close(promise: nil) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if let exchange, let handle, state.deliversNow() { exchange.deliver(from: handle) }
        context.fireChannelReadComplete()
    }

    // MARK: - Back-pressure

    func read(context: ChannelHandlerContext) {
        if state.mayRead() { context.read() }
    }

    func resumeReading(_ id: UInt64) {
        if state.resumeReading(id, now: .now()) { context?.read() }
        setTimer()
    }

    // MARK: - Ending

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let tls = error as? NIOSSLError, tls == .uncleanShutdown {
            // The channel ends by itself; a content that depends on its end is then cut off.
            state.cutOff()
        } else {
            run(state.broke(isTLS: error is NIOSSLError || error is BoringSSLError))
        }
    }

    /// The pool, the dial or the app closes the connection.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        answer(state.close(nil).loss)
        context.close(mode: mode, promise: promise)
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        var missing: HTTPTransportError?
        do {
            try exchange?.parser.endOfInput(orderly: state.endsOrderly)
        } catch {
            missing = error
        }
        let departure = state.becameInactive(missing: missing)
        switch departure.answer {
        case .completed(let delivery): takeExchange()?.complete(delivery)
        case .lost(let loss): answer(loss)
        }
        if departure.leavesPool { owner.closed(id) }
        context.fireChannelInactive()
    }

    private func run(_ closing: ConnectionState.Closing) {
        answer(closing.loss)
        if closing.closesChannel { context?.close(promise: nil) }
    }

    private func answer(_ loss: ConnectionState.Loss) {
        switch loss {
        case .none: return
        case .dial(let error):
            opening?.fail(error)
            opening = nil
        case .caller(let failure): takeExchange()?.fail(failure)
        case .reader(let error, let isDelivered):
            let ended = takeExchange()
            if !isDelivered, let handle { ended?.deliver(from: handle) }
            ended?.breakOff(error)
        }
    }

    private func takeExchange() -> Exchange? {
        defer { exchange = nil }
        return exchange
    }

    // MARK: - Time

    private func setTimer() {
        guard let context, let deadline = state.nextAlarm() else { return }
        timer?.cancel()
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { self.timerFired() }
    }

    private func timerFired() {
        timer = nil
        run(state.timerFired(now: .now()))
        setTimer()
    }
}

extension Duration {
    /// Rounded down to nanoseconds and kept within what NIO can add to a time.
    var timeAmount: TimeAmount {
        let (seconds, attoseconds) = components
        let bounded = min(max(seconds, 0), 1 << 32)
        return .nanoseconds(bounded * 1_000_000_000 + max(0, attoseconds) / 1_000_000_000)
    }
}
