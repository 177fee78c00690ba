import AssentCore
import NIOCore

/// One connection's life as a state machine: without bytes, channels, tasks or a clock.
///
/// Each method takes an event and returns what must be done about it; the ``HTTPConnection`` does that, in the order in
/// which it is named. Every event is allowed in every state: one that makes no sense changes nothing, or closes the
/// connection. The dial, the caller and the reader of a reply each get exactly one answer.
///
///     opening ──opened──▶ free ──start──▶ busy ──replyEnded──▶ free …
///        │                 │               │
///        └────────────── close ────────────┴──▶ closing ──becameInactive──▶ closed
///
/// A busy connection can be suspended: the network is not read from and no time limit passes until it goes on.
struct ConnectionState: Sendable {
    struct Limits: Sendable {
        /// How long a connection without a call is kept.
        let idle: TimeAmount
        /// Whether a connection serves more than one request.
        let keepsConnections: Bool
    }

    /// What matters of a request here.
    struct Request: Sendable {
        let id: UInt64
        let deadline: NIODeadline
        /// The longest time without progress.
        let readLimit: TimeAmount
        let replyBytes: Int
        /// Whether content follows the bytes that are written first.
        let hasUpload: Bool
        /// Whether the connection has served before: it may have gone stale.
        let isReused: Bool
        /// The longest time from the end of the request to the end of the reply's header; `nil` for no such limit.
        var headLimit: TimeAmount?
    }

    // MARK: - States

    /// How much of a reply has come.
    enum Reply: Sendable {
        case awaited
        /// Its header is there and was not handed over yet.
        case known
        /// The caller has it; the content follows.
        case delivered
    }

    struct Exchange: Sendable {
        let request: Request
        var reply = Reply.awaited
        var received = 0
        var hasRead = false
        var isRequestComplete: Bool
        var lastProgress: NIODeadline
        /// When the request was complete.
        var requestEnd: NIODeadline
        /// When the reply must be complete; later than the request says by the time that it was suspended.
        var deadline: NIODeadline
        /// Since when the app wants nothing to happen.
        var suspendedSince: NIODeadline?

        /// When the reply's header must be complete; `nil` while something else is waited for. Bytes of it do not put
        /// that off.
        var headEnd: NIODeadline? {
            guard reply == .awaited, isRequestComplete, let limit = request.headLimit else { return nil }
            return requestEnd + limit
        }
    }

    enum Phase: Sendable {
        /// TCP is connected; the dial waits.
        case opening
        /// No call is running. `since` is the end of the last one.
        case free(since: NIODeadline?)
        case busy(Exchange)
        /// The channel closes. Everything that waited has its answer.
        case closing(isMember: Bool)
        case closed
    }

    /// What keeps the network from being read, but for a suspension.
    struct Reading: Sendable, Hashable {
        /// The reader is behind.
        var isBehind = false
        /// The network was to be asked for more, and was not.
        var isAsked = false
    }

    private let limits: Limits
    private(set) var phase = Phase.opening
    private(set) var reading = Reading()
    /// Whether the end of the connection may be taken for the end of a reply.
    private(set) var endsOrderly = true
    /// An exchange that was cancelled before it began.
    private(set) var cancelledEarly: UInt64?
    private(set) var lastEnded: UInt64 = 0
    /// When the timer will look, if one is set.
    private(set) var alarm: NIODeadline?

    init(limits: Limits) {
        self.limits = limits
    }
}

// MARK: - Opening

extension ConnectionState {
    /// The handshake is done, or a plain connection needs none. Returns whether to hand the connection over.
    mutating func opened() -> Bool {
        guard case .opening = phase else { return false }
        phase = .free(since: nil)
        return true
    }
}

// MARK: - Requests

extension ConnectionState {
    /// A call wants to send its request. `isActive` says whether the channel is open; `isDead` that the peer is known
    /// to have closed it, and that the request would not be repeated.
    mutating func start(_ request: Request, isActive: Bool, isDead: Bool, now: NIODeadline) -> StartAction {
        guard case .free = phase, isActive else { return .refuse(Self.stale) }
        if isDead {
            phase = .closing(isMember: true)
            return .refuseAndClose(Self.stale)
        }
        if cancelledEarly == request.id {
            return refuse(request, HTTPTransportError(.cancelled, "The task was cancelled."))
        }
        guard request.deadline > now else {
            return refuse(request, HTTPTransportError(.timedOut, "The total time limit has passed."))
        }
        phase = .busy(
            Exchange(
                request: request, isRequestComplete: !request.hasUpload, lastProgress: now, requestEnd: now,
                deadline: request.deadline))
        return .send
    }

    private mutating func refuse(_ request: Request, _ error: HTTPTransportError) -> StartAction {
        phase = .closing(isMember: true)
        lastEnded = max(lastEnded, request.id)
        return .refuseAndClose(ExchangeFailure(error: error, isUnsent: true, isStale: false))
    }

    /// A piece of the request's content is there; whether to write it.
    mutating func mayWrite(_ id: UInt64, now: NIODeadline) -> Bool {
        guard case .busy(var exchange) = phase, exchange.request.id == id else { return false }
        exchange.lastProgress = now
        phase = .busy(exchange)
        return true
    }

    /// The request's content is complete, or will never be.
    mutating func uploadEnded(_ id: UInt64, _ error: HTTPTransportError?, now: NIODeadline) -> Closing {
        guard case .busy(var exchange) = phase, exchange.request.id == id else { return .none }
        if let error { return close(error) }
        exchange.lastProgress = now
        exchange.requestEnd = now
        exchange.isRequestComplete = true
        phase = .busy(exchange)
        return .none
    }

    /// This exchange is not wanted any more. If it is the current one, the connection ends with it.
    mutating func abort(_ id: UInt64, _ error: HTTPTransportError) -> Closing {
        guard case .busy(let exchange) = phase, exchange.request.id == id else {
            // The end of a stream that was given up comes after the end of its exchange; the next one is not meant.
            if id > lastEnded { cancelledEarly = id }
            return .none
        }
        return close(error)
    }
}

// MARK: - Replies

extension ConnectionState {
    /// Bytes have come.
    mutating func received(now: NIODeadline) -> ReceiveAction {
        guard case .busy(var exchange) = phase else {
            // No request is waiting. These bytes must not be taken for a reply to the next one.
            return .close(close(HTTPTransportError(.malformedReply, "The server sent bytes without a request.")))
        }
        exchange.lastProgress = now
        exchange.hasRead = true
        phase = .busy(exchange)
        return .parse
    }

    /// The reply's header is complete; `length` is what it says of the content. `nil` means to read on.
    mutating func head(length: Int?) -> Closing? {
        guard case .busy(var exchange) = phase, case .awaited = exchange.reply else { return close(Self.disorder) }
        exchange.reply = .known
        phase = .busy(exchange)
        guard let length, length > exchange.request.replyBytes else { return nil }
        return close(HTTPTransportError(.bodyTooLarge, "The reply has \(length) bytes, more than are accepted."))
    }

    /// Some of the reply's content.
    mutating func content(_ count: Int) -> ContentAction {
        guard case .busy(var exchange) = phase, exchange.reply != .awaited else {
            return .close(close(Self.disorder))
        }
        let limit = exchange.request.replyBytes
        guard count <= limit - exchange.received else {
            return .close(close(HTTPTransportError(.bodyTooLarge, "The reply has more than \(limit) bytes.")))
        }
        exchange.received += count
        phase = .busy(exchange)
        return exchange.reply == .delivered ? .push : .collect
    }

    /// All bytes that have come were looked at; whether to hand the reply over now, its content to follow.
    mutating func deliversNow() -> Bool {
        guard case .busy(var exchange) = phase, exchange.reply == .known else { return false }
        exchange.reply = .delivered
        phase = .busy(exchange)
        return true
    }

    /// The reply is complete. `keepsAlive` says whether the peer will take another request; `isClean` whether the
    /// channel is open and nothing came behind the reply.
    mutating func replyEnded(keepsAlive: Bool, isClean: Bool, now: NIODeadline) -> EndAction {
        guard case .busy(let exchange) = phase, exchange.reply != .awaited else {
            return .close(close(Self.disorder))
        }
        let isReusable = limits.keepsConnections && keepsAlive && isClean && exchange.isRequestComplete
        lastEnded = max(lastEnded, exchange.request.id)
        phase = isReusable ? .free(since: now) : .closing(isMember: true)
        return .complete(
            Completion(
                delivery: exchange.reply == .delivered ? .end : .whole, resumesReading: endHold(),
                isReusable: isReusable))
    }

    /// The pool does not want the connection.
    mutating func notKept() -> Closing { close(nil) }
}

// MARK: - Back-pressure

extension ConnectionState {
    /// The reader is behind.
    mutating func hold() {
        guard case .busy = phase else { return }
        reading.isBehind = true
    }

    /// The channel wants more bytes; whether to ask the network for them.
    mutating func mayRead() -> Bool {
        guard reading.isBehind || isSuspended else { return true }
        reading.isAsked = true
        return false
    }

    /// The reader has caught up; whether to ask the network for bytes now.
    mutating func resumeReading(_ id: UInt64, now: NIODeadline) -> Bool {
        guard case .busy(var exchange) = phase, exchange.request.id == id else { return false }
        exchange.lastProgress = now
        phase = .busy(exchange)
        reading.isBehind = false
        return exchange.suspendedSince == nil && endHold()
    }

    private mutating func endHold() -> Bool {
        defer { reading = Reading() }
        return reading.isAsked
    }
}

// MARK: - Suspension

extension ConnectionState {
    /// Whether the running exchange is suspended.
    var isSuspended: Bool {
        guard case .busy(let exchange) = phase else { return false }
        return exchange.suspendedSince != nil
    }

    /// The app wants nothing to happen to this exchange for now; whether that is new. The pool is asked then, and may
    /// refuse: ``goOn(_:now:)``.
    mutating func suspend(_ id: UInt64, now: NIODeadline) -> Bool {
        guard case .busy(var exchange) = phase, exchange.request.id == id, exchange.suspendedSince == nil else {
            return false
        }
        exchange.suspendedSince = now
        phase = .busy(exchange)
        return true
    }

    /// A suspended exchange goes on, with what was left of its time limits.
    mutating func goOn(_ id: UInt64, now: NIODeadline) -> GoOnAction {
        guard case .busy(var exchange) = phase, exchange.request.id == id, let since = exchange.suspendedSince else {
            return .ignore
        }
        // Bytes that came meanwhile were progress then; the time since the last of them stands still all the same.
        let pause = now - max(since, exchange.lastProgress)
        exchange.lastProgress = exchange.lastProgress + pause
        exchange.requestEnd = exchange.requestEnd + (now - max(since, exchange.requestEnd))
        exchange.deadline = exchange.deadline + min(now - since, .distantFuture - exchange.deadline)
        exchange.suspendedSince = nil
        phase = .busy(exchange)
        return .goOn(readsNow: !reading.isBehind && endHold())
    }
}

// MARK: - Ending

extension ConnectionState {
    /// The connection is to end; a running exchange fails with `error` at once.
    mutating func close(_ error: HTTPTransportError?) -> Closing {
        switch phase {
        case .opening:
            phase = .closing(isMember: false)
            return Closing(loss: .dial(error ?? Self.endedInHandshake), closesChannel: true)
        case .free:
            phase = .closing(isMember: true)
            return Closing(loss: .none, closesChannel: true)
        case .busy(let exchange):
            phase = .closing(isMember: true)
            return Closing(loss: lose(exchange, error ?? Self.closedHere), closesChannel: true)
        case .closing, .closed: return .none
        }
    }

    /// The channel met an error. Before the connection is open every error is one of TLS.
    mutating func broke(isTLS: Bool) -> Closing {
        if case .opening = phase { return close(Self.brokenTLS) }
        return close(isTLS ? Self.brokenTLS : Self.broken)
    }

    /// TLS ended without a word: the end of the connection is not the end of a reply.
    mutating func cutOff() { endsOrderly = false }

    /// The channel is gone. `missing` says what is wrong with a reply that ends here; `nil` when it is complete with
    /// that.
    mutating func becameInactive(missing: HTTPTransportError?) -> Departure {
        defer {
            phase = .closed
            alarm = nil
        }
        switch phase {
        case .opening: return Departure(answer: .lost(.dial(Self.endedInHandshake)), leavesPool: false)
        case .free: return Departure(answer: .lost(.none), leavesPool: true)
        case .closing(let isMember): return Departure(answer: .lost(.none), leavesPool: isMember)
        case .closed: return Departure(answer: .lost(.none), leavesPool: false)
        case .busy(let exchange):
            if missing == nil, endsOrderly, exchange.reply != .awaited {
                lastEnded = max(lastEnded, exchange.request.id)
                return Departure(
                    answer: .completed(exchange.reply == .delivered ? .end : .whole), leavesPool: true)
            }
            return Departure(answer: .lost(lose(exchange, missing ?? Self.endedInReply)), leavesPool: true)
        }
    }

    private mutating func lose(_ exchange: Exchange, _ error: HTTPTransportError) -> Loss {
        lastEnded = max(lastEnded, exchange.request.id)
        let sent = error.afterSending()
        switch exchange.reply {
        case .known: return .reader(sent, isDelivered: false)
        case .delivered: return .reader(sent, isDelivered: true)
        case .awaited:
            let isStale = exchange.request.isReused && !exchange.hasRead && error.code == .connectionClosed
            return .caller(ExchangeFailure(error: sent, isUnsent: false, isStale: isStale))
        }
    }
}

// MARK: - Time

extension ConnectionState {
    /// When the connection must be given up, as things are.
    var deadline: NIODeadline? {
        switch phase {
        case .opening, .closing, .closed: return nil
        case .free(let since): return since.map { $0 + limits.idle }
        case .busy(let exchange):
            guard exchange.suspendedSince == nil else { return nil }
            guard !reading.isBehind else { return exchange.deadline }
            return min(exchange.deadline, exchange.headEnd ?? exchange.lastProgress + exchange.request.readLimit)
        }
    }

    /// When to set the timer anew; `nil` when the one that is set looks early enough. There is one timer, which looks
    /// again when it fires, so that progress does not move it.
    mutating func nextAlarm() -> NIODeadline? {
        guard let deadline else { return nil }
        if let alarm, alarm <= deadline { return nil }
        alarm = deadline
        return deadline
    }

    /// The timer has fired; afterwards ``nextAlarm()`` says when it must look again.
    mutating func timerFired(now: NIODeadline) -> Closing {
        alarm = nil
        guard let deadline, deadline <= now else { return .none }
        guard case .busy(let exchange) = phase else { return close(nil) }
        let limit = exchange.deadline <= now ? "total" : exchange.headEnd == nil ? "read" : "head"
        return close(HTTPTransportError(.timedOut, "The \(limit) time limit has passed."))
    }
}
