import AssentCore
import NIOCore
import NIOSSL
import NIOTLS

/// One connection: the last handler of its channel. All of it runs on the channel's event loop.
final class HTTPConnection: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = Never
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let dial: Dial
    private let pool: ConnectionPool
    private let isSecure: Bool
    private var context: ChannelHandlerContext?
    private var handle: ConnectionHandle?
    private var input = ByteBuffer()
    private var exchange: Exchange?
    private var cancelledEarly: UInt64?
    private var lastEnded: UInt64 = 0
    private var closingError: HTTPTransportError?
    private var endsOrderly = true
    private var isClosing = false
    private var isHeld = false
    private var heldRead = false
    private var idleSince: NIODeadline?
    private var timer: Scheduled<Void>?
    private var timerDeadline = NIODeadline.distantFuture

    init(dial: Dial, pool: ConnectionPool, isSecure: Bool) {
        self.dial = dial
        self.pool = pool
        self.isSecure = isSecure
    }

    // MARK: - Opening

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if !isSecure { becomeReady(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        self.context = nil
        // It refers back to this object.
        handle = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted(let negotiated) = event as? TLSUserEvent {
            if let negotiated, negotiated != TLSClient.applicationProtocol {
                close(HTTPTransportError(.tlsFailed, "the server chose another protocol"))
            } else {
                becomeReady(context)
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func becomeReady(_ context: ChannelHandlerContext) {
        let handle = ConnectionHandle(
            id: dial.connectionID, generation: dial.generation, channel: context.channel, connection: self)
        guard dial.complete(handle, pool: pool) else { return close(nil) }
        self.handle = handle
    }

    // MARK: - Requests

    func start(_ start: ExchangeStart) {
        let exchange = Exchange(start, limits: pool.parserLimits)
        guard let handle, let context, !isClosing, context.channel.isActive, self.exchange == nil else {
            return refuse(start)
        }
        // What cannot be repeated must not be written to a connection that is known to be dead.
        if start.isReused, !start.request.isIdempotent, context.channel.isClosedByPeer {
            refuse(start)
            return close(nil)
        }
        self.exchange = exchange
        idleSince = nil
        if cancelledEarly == start.id {
            return abort(start.id, HTTPTransportError(.cancelled, "the task was cancelled"))
        }
        guard start.deadline > .now() else {
            return abort(start.id, HTTPTransportError(.timedOut, "the total time limit has passed"))
        }
        exchange.hasWritten = true
        context.writeAndFlush(wrapOutboundOut(start.request.bytes), promise: nil)
        if case .none = start.request.content {
            exchange.isRequestComplete = true
        } else {
            let upload = Upload(connection: handle, exchange: start.id, content: start.request.content)
            exchange.upload = Task { await upload.run() }
        }
        armTimer()
    }

    private func refuse(_ start: ExchangeStart) {
        let error = HTTPTransportError(.connectionClosed, "the server closed the connection")
        start.continuation.resume(throwing: ExchangeFailure(error: error, isUnsent: true, isStale: true))
    }

    func write(_ id: UInt64, _ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>) {
        guard let exchange, exchange.start.id == id, let context, !isClosing else {
            return promise.fail(HTTPTransportError(.connectionClosed, "the exchange has ended"))
        }
        exchange.lastProgress = .now()
        context.writeAndFlush(wrapOutboundOut(bytes), promise: promise)
    }

    func finishUpload(_ id: UInt64, _ error: HTTPTransportError?) {
        guard let exchange, exchange.start.id == id else { return }
        exchange.lastProgress = .now()
        if let error { return abort(id, error) }
        exchange.isRequestComplete = true
    }

    /// Ends this exchange, if it is still the current one, and with it the connection.
    func abort(_ id: UInt64, _ error: HTTPTransportError) {
        guard let exchange, exchange.start.id == id else {
            // The end of a stream that was given up comes after the end of its exchange; the next one is not meant.
            if id > lastEnded { cancelledEarly = id }
            return
        }
        close(error)
    }

    // MARK: - Replies

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        guard let exchange, !isClosing else {
            // Nobody asked; whatever this is, it must not be taken for a reply to the next request.
            return close(HTTPTransportError(.malformedReply, "the server sent bytes without a request"))
        }
        exchange.lastProgress = .now()
        exchange.hasRead = true
        if input.readableBytes == 0 { input = bytes } else { input.writeBuffer(&bytes) }
        do {
            try advance(exchange)
        } catch {
            close(error)
        }
    }

    private func advance(_ exchange: Exchange) throws(HTTPTransportError) {
        while true {
            switch try exchange.parser.next(&input) {
            case .needsMore:
                if input.readableBytes == 0 { input.clear() }
                return
            case .head(let response):
                exchange.response = response
                if let length = exchange.parser.declaredLength, length > exchange.start.limits.replyBytes {
                    throw HTTPTransportError(.bodyTooLarge, "the reply has \(length) bytes")
                }
            case .content(let slice):
                exchange.received += slice.readableBytes
                guard exchange.received <= exchange.start.limits.replyBytes else {
                    throw HTTPTransportError(
                        .bodyTooLarge, "the reply has more than \(exchange.start.limits.replyBytes) bytes")
                }
                if exchange.continuation != nil {
                    exchange.early += slice.readableBytesView
                } else if exchange.stream?.push(Array(slice.readableBytesView)) == true {
                    isHeld = true
                }
            case .end:
                return complete(exchange)
            }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if let exchange, let handle, exchange.response != nil, exchange.continuation != nil {
            exchange.deliver(isComplete: false, connection: handle)
        }
        context.fireChannelReadComplete()
    }

    private func complete(_ exchange: Exchange) {
        guard let handle, let context else { return }
        end(exchange)
        exchange.upload?.cancel()
        let isReusable =
            pool.keepsConnections && exchange.parser.keepsAlive && exchange.isRequestComplete
            && input.readableBytes == 0
            && context.channel.isActive && !isClosing
        isHeld = false
        releaseHeldRead()
        // Before the reply is handed over, so that the next request finds this connection.
        if isReusable {
            idleSince = .now()
            if pool.release(handle) { armTimer() } else { close(nil) }
        }
        if exchange.continuation != nil {
            exchange.deliver(isComplete: true, connection: handle)
        } else {
            exchange.stream?.finish(.success(()))
        }
        if !isReusable { close(nil) }
    }

    // MARK: - Back-pressure

    func read(context: ChannelHandlerContext) {
        if isHeld { heldRead = true } else { context.read() }
    }

    func resumeReading(_ id: UInt64) {
        guard exchange?.start.id == id else { return }
        isHeld = false
        exchange?.lastProgress = .now()
        releaseHeldRead()
        armTimer()
    }

    private func releaseHeldRead() {
        guard heldRead else { return }
        heldRead = false
        context?.read()
    }

    // MARK: - Ending

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let tls = error as? NIOSSLError, tls == .uncleanShutdown {
            // The channel ends by itself; a content that depends on its end is then cut off.
            endsOrderly = false
            return
        }
        let isTLS = handle == nil || error is NIOSSLError || error is BoringSSLError
        close(HTTPTransportError(isTLS ? .tlsFailed : .connectionClosed, isTLS ? "TLS failed" : "the connection broke"))
    }

    func channelInactive(context: ChannelHandlerContext) {
        let wasClosing = isClosing
        isClosing = true
        timer?.cancel()
        if let exchange {
            do {
                if let closingError { throw closingError }
                try exchange.parser.endOfInput(orderly: endsOrderly && !wasClosing)
                complete(exchange)
            } catch {
                fail(exchange, error as? HTTPTransportError ?? HTTPTransportError(.connectionClosed, "it ended"))
            }
        }
        if let handle {
            pool.closed(handle)
        } else {
            dial.fail(closingError ?? HTTPTransportError(.tlsFailed, "the server closed during the TLS handshake"))
        }
        context.fireChannelInactive()
    }

    /// Closes the connection; a running exchange fails with `error` at once.
    private func close(_ error: HTTPTransportError?) {
        if closingError == nil { closingError = error }
        if handle == nil, let error { dial.fail(error) }
        let wasClosing = isClosing
        isClosing = true
        if let exchange { fail(exchange, error ?? HTTPTransportError(.connectionClosed, "the connection was closed")) }
        if !wasClosing { context?.close(promise: nil) }
    }

    private func fail(_ exchange: Exchange, _ error: HTTPTransportError) {
        guard let handle else { return }
        end(exchange)
        let isStale = exchange.start.isReused && !exchange.hasRead && error.code == .connectionClosed
        exchange.fail(error, isStale: isStale, connection: handle)
    }

    private func end(_ exchange: Exchange) {
        self.exchange = nil
        lastEnded = max(lastEnded, exchange.start.id)
    }

    // MARK: - Time

    /// When the connection must be given up, as things are; there is one timer, which looks again when it fires.
    private var nextDeadline: NIODeadline? {
        if let exchange {
            let total = exchange.start.deadline
            return isHeld ? total : min(total, exchange.lastProgress + exchange.start.limits.read.timeAmount)
        }
        return idleSince.map { $0 + pool.idleTimeout }
    }

    private func armTimer() {
        guard let deadline = nextDeadline, let context, timer == nil || deadline < timerDeadline else { return }
        timer?.cancel()
        timerDeadline = deadline
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { self.timerFired() }
    }

    private func timerFired() {
        timer = nil
        guard let deadline = nextDeadline, !isClosing else { return }
        guard deadline <= .now() else { return armTimer() }
        guard let exchange else { return close(nil) }
        let limit = exchange.start.deadline <= .now() ? "total" : "read"
        close(HTTPTransportError(.timedOut, "the \(limit) time limit has passed"))
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
