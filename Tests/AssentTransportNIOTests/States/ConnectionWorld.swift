import AssentCore
import NIOCore

@testable import AssentTransportNIO

/// A connection's state machine together with those who wait for it: the dial, the caller, the reader, the pool. Every
/// action is held against what was promised before. It knows nothing of how the machine decides.
struct ConnectionWorld {
    enum Exchange {
        case current, ended, future
    }

    enum Moment: CaseIterable {
        case early, afterProgress, afterTotal
    }

    enum Event {
        case opened
        case start(ConnectionState.Request, isActive: Bool, isDead: Bool)
        case write(Exchange)
        case uploadEnded(Exchange, fails: Bool)
        case abort(Exchange)
        case received
        case head(length: Int?)
        case content(Int)
        case readComplete
        case replyEnded(keepsAlive: Bool, isClean: Bool)
        case notKept
        case hold
        case read
        case resume(Exchange)
        case suspend(Exchange)
        case goOn(Exchange)
        case close(HTTPTransportError.Code?)
        case broke(isTLS: Bool)
        case cutOff
        case inactive(isComplete: Bool)
        case timer(Moment)
    }

    /// What a call that was sent has got so far.
    struct Call {
        let request: ConnectionState.Request
        var hasReply = false
        var hasHead = false
        var hasRead = false
        var isUploaded: Bool
        var received = 0
        var progress: NIODeadline
        /// When it must be done; later by each pause.
        var end: NIODeadline
        var suspendedSince: NIODeadline?
    }

    enum Channel: Int {
        case open, closing, gone
    }

    static let replyBytes = 100
    static let readLimit = TimeAmount.seconds(30)
    static let idle = TimeAmount.seconds(10)

    private(set) var machine: ConnectionState
    private(set) var complaint: String?
    private(set) var dialWaits = true
    private(set) var isMember = false
    private(set) var call: Call?
    private(set) var lastEnded: UInt64 = 0
    private(set) var abortedEarly: UInt64?
    private(set) var channel = Channel.open
    private(set) var isFree = false
    /// Whether the channel asked for bytes and was put off.
    private(set) var owesRead = false
    private(set) var isHeld = false
    private(set) var now = NIODeadline.uptimeNanoseconds(1)
    private(set) var freeSince: NIODeadline?
    private(set) var isCutOff = false
    private let keepsConnections: Bool

    init(keepsConnections: Bool = true) {
        self.keepsConnections = keepsConnections
        machine = ConnectionState(limits: .init(idle: Self.idle, keepsConnections: keepsConnections))
    }

    var isSuspended: Bool { call?.suspendedSince != nil }

    private mutating func must(_ condition: Bool, _ text: @autoclosure () -> String) {
        if !condition, complaint == nil { complaint = text() }
    }

    /// The request that a pool would send next.
    func request(isReused: Bool = false, hasUpload: Bool = false, isLate: Bool = false) -> ConnectionState.Request {
        .init(
            id: lastEnded + 1 + (call == nil ? 0 : 1), deadline: isLate ? now : now + .seconds(60),
            readLimit: Self.readLimit, replyBytes: Self.replyBytes, hasUpload: hasUpload, isReused: isReused)
    }

    private func id(_ exchange: Exchange) -> UInt64 {
        let current = call?.request.id ?? 1 << 40
        return switch exchange {
        case .current: current
        case .ended: lastEnded
        case .future: request().id
        }
    }

    // MARK: - Events

    mutating func apply(_ event: Event) {
        now = now + .milliseconds(1)
        switch event {
        case .opened: opened()
        case .start(let request, let isActive, let isDead): start(request, isActive, isDead)
        case .write(let exchange):
            let isCurrent = id(exchange) == call?.request.id
            must(machine.mayWrite(id(exchange), now: now) == isCurrent, "content of another exchange is written")
            if isCurrent { call?.progress = now }
        case .uploadEnded(let exchange, let fails):
            let isCurrent = id(exchange) == call?.request.id
            let error = fails ? HTTPTransportError(.bodyFailed, "") : nil
            if isCurrent, !fails {
                call?.isUploaded = true
                call?.progress = now
            }
            close(machine.uploadEnded(id(exchange), error, now: now), because: isCurrent ? error : nil)
        case .abort(let exchange):
            let id = id(exchange)
            let isCurrent = id == call?.request.id
            if !isCurrent, id > lastEnded { abortedEarly = id }
            let error = HTTPTransportError(.cancelled, "")
            close(machine.abort(id, error), because: isCurrent ? error : nil)
        case .received, .head, .content, .readComplete, .replyEnded: reply(event)
        case .hold:
            machine.hold()
            if call != nil { isHeld = true }
        case .read:
            let goesOn = machine.mayRead()
            must(!isFree || goesOn, "a free connection does not notice its end")
            must(call == nil || goesOn != (isHeld || isSuspended), "whether it reads is not what its reader needs")
            if !goesOn { owesRead = true }
        case .resume(let exchange):
            let isCurrent = id(exchange) == call?.request.id
            let owed = owesRead
            let reads = machine.resumeReading(id(exchange), now: now)
            must(reads == (isCurrent && owed && !isSuspended), "reading on is answered wrongly")
            if isCurrent {
                call?.progress = now
                isHeld = false
                if !isSuspended { owesRead = false }
            }
        case .suspend(let exchange):
            let isNew = id(exchange) == call?.request.id && !isSuspended
            must(machine.suspend(id(exchange), now: now) == isNew, "a suspension is answered wrongly")
            if isNew { call?.suspendedSince = now }
        case .goOn(let exchange): goOn(id(exchange))
        case .notKept: close(machine.notKept(), because: Self.any)
        case .close(let code):
            close(machine.close(code.map { HTTPTransportError($0, "") }), because: Self.any)
        case .broke(let isTLS): close(machine.broke(isTLS: isTLS), because: Self.any)
        case .cutOff:
            machine.cutOff()
            isCutOff = true
        case .inactive(let isComplete): inactive(isComplete)
        case .timer(let moment): timer(moment)
        }
        alarm()
    }

    private static let any = HTTPTransportError(.connectionClosed, "")

    private mutating func opened() {
        let expected = channel == .open && dialWaits
        must(machine.opened() == expected, "the connection is handed over twice, or not at all")
        if expected { (dialWaits, isMember, isFree) = (false, true, true) }
    }

    private mutating func goOn(_ id: UInt64) {
        switch machine.goOn(id, now: now) {
        case .ignore: must(id != call?.request.id || !isSuspended, "a suspended call stands still for ever")
        case .goOn(let readsNow):
            guard id == call?.request.id, let since = call?.suspendedSince, let progress = call?.progress else {
                return must(false, "a call goes on that was not suspended")
            }
            must(readsNow == (owesRead && !isHeld), "whether it reads on is not what was owed")
            if !isHeld { owesRead = false }
            let end = (call?.end ?? now) + (now - since)
            call?.suspendedSince = nil
            call?.end = end
            call?.progress = progress + (now - max(since, progress))
        }
    }

    private mutating func start(_ request: ConnectionState.Request, _ isActive: Bool, _ isDead: Bool) {
        let isEarly = abortedEarly == request.id
        switch machine.start(request, isActive: isActive, isDead: isDead, now: now) {
        case .send:
            must(isFree && isActive && !isDead && !isEarly && request.deadline > now, "it sends what it must not")
            must(call == nil, "two requests at once")
            (isFree, freeSince) = (false, nil)
            call = Call(request: request, isUploaded: !request.hasUpload, progress: now, end: request.deadline)
        case .refuse(let failure):
            must(!isFree || !isActive, "a request is refused without need")
            must(failure.isUnsent && failure.isStale && !failure.error.mayHaveHadEffect, "the refusal says more")
        case .refuseAndClose(let failure):
            must(isFree && isActive, "a connection closes that is closed")
            must(isDead || isEarly || request.deadline <= now, "a request is refused without need")
            must(failure.isUnsent && !failure.error.mayHaveHadEffect, "the refusal says more")
            must(failure.isStale == isDead, "what may be repeated is wrong")
            (isFree, freeSince, channel) = (false, nil, .closing)
            if !isDead { lastEnded = max(lastEnded, request.id) }
        }
    }

    private mutating func reply(_ event: Event) {
        switch event {
        case .received:
            switch machine.received(now: now) {
            case .parse:
                must(call != nil, "bytes without a request are taken for a reply")
                call?.hasRead = true
                call?.progress = now
            case .close(let closing):
                must(call == nil, "a reply is refused")
                close(closing, because: Self.any)
            }
        case .head(let length):
            let isFine = call?.hasHead == false && length ?? 0 <= Self.replyBytes
            let closing = machine.head(length: length)
            must((closing == nil) == isFine, "a header is judged wrongly")
            // Also when its content is too long: the status is told.
            call?.hasHead = true
            if let closing { close(closing, because: Self.any) }
        case .content(let count):
            let isFine = call?.hasHead == true && (call?.received ?? 0) + count <= Self.replyBytes
            switch machine.content(count) {
            case .collect: must(isFine && call?.hasReply == false, "content is collected for nobody")
            case .push: must(isFine && call?.hasReply == true, "content is pushed to nobody")
            case .close(let closing):
                must(!isFine, "content is refused")
                close(closing, because: Self.any)
            }
            if isFine { call?.received += count }
        case .readComplete:
            let expected = call?.hasHead == true && call?.hasReply == false
            must(machine.deliversNow() == expected, "the reply is handed over twice, or not at all")
            if expected { call?.hasReply = true }
        case .replyEnded(let keepsAlive, let isClean): replyEnded(keepsAlive, isClean)
        default: break
        }
    }

    private mutating func replyEnded(_ keepsAlive: Bool, _ isClean: Bool) {
        switch machine.replyEnded(keepsAlive: keepsAlive, isClean: isClean, now: now) {
        case .complete(let completion):
            must(completion.resumesReading == owesRead, "reading does not go on")
            must(
                completion.isReusable == (keepsConnections && keepsAlive && isClean && call?.isUploaded == true),
                "a doubtful connection is used again, or a good one is not")
            complete(completion.delivery)
            (isHeld, owesRead) = (false, false)
            if completion.isReusable { (isFree, freeSince) = (true, now) } else { channel = .closing }
        case .close(let closing):
            must(call?.hasHead != true, "a complete reply is refused")
            close(closing, because: Self.any)
        }
    }

    private mutating func inactive(_ isComplete: Bool) {
        let mayComplete = isComplete && !isCutOff && call?.hasHead == true
        let missing = isComplete ? nil : HTTPTransportError(.connectionClosed, "")
        let departure = machine.becameInactive(missing: missing)
        switch departure.answer {
        case .completed(let delivery):
            must(mayComplete, "a reply that was cut off is taken for complete")
            complete(delivery)
        case .lost(let loss):
            must(!mayComplete, "a complete reply is lost")
            lose(loss)
        }
        must(departure.leavesPool == isMember, "the pool is told twice, or not at all")
        must(!dialWaits && call == nil, "somebody waits for ever")
        (isMember, isFree, freeSince, channel) = (false, false, nil, .gone)
    }

    private mutating func timer(_ moment: Moment) {
        switch moment {
        case .early: break
        case .afterProgress: now = now + Self.readLimit
        case .afterTotal: now = now + .seconds(120)
        }
        let isDue = machine.deadline.map { $0 <= now } ?? false
        let wasBusy = call != nil && !isSuspended
        must(!isSuspended || !isDue, "the clock of a suspended call goes on")
        let closing = machine.timerFired(now: now)
        must(closing.closesChannel == isDue, "the timer closes too early or too late")
        close(closing, because: isDue ? HTTPTransportError(.timedOut, "") : nil)
        must(!wasBusy || moment != .afterTotal || call == nil, "a call outlives its time")
        must(!wasBusy || moment != .afterProgress || isHeld || call == nil, "a call waits for bytes for ever")
    }

    // MARK: - What the machine promises

    private mutating func complete(_ delivery: ConnectionState.Delivery) {
        guard let call else { return must(false, "a reply for nobody") }
        must(call.hasHead && call.hasReply == (delivery == .end), "the caller is answered twice, or the reader never")
        end(call)
    }

    private mutating func close(_ closing: ConnectionState.Closing, because error: HTTPTransportError?) {
        let mustClose = channel == .open && error != nil
        must(closing.closesChannel == mustClose, "the channel is closed twice, or not at all")
        lose(closing.loss)
        guard mustClose else { return }
        must(!dialWaits && call == nil, "somebody waits for ever")
        (channel, isFree, freeSince) = (.closing, false, nil)
    }

    private mutating func lose(_ loss: ConnectionState.Loss) {
        switch loss {
        case .none: break
        case .dial:
            must(dialWaits, "the dial is answered twice")
            dialWaits = false
        case .caller(let failure):
            guard let call else { return must(false, "a failure for nobody") }
            must(!call.hasHead && !call.hasReply, "the status is lost")
            must(!failure.isUnsent && failure.error.mayHaveHadEffect, "a request that was sent may have had an effect")
            let isStale = call.request.isReused && !call.hasRead && failure.error.code == .connectionClosed
            must(failure.isStale == isStale, "what may be repeated is wrong")
            end(call)
        case .reader(let error, let isDelivered):
            guard let call else { return must(false, "a failure for nobody") }
            must(call.hasHead && call.hasReply == isDelivered, "the caller is answered twice, or never")
            must(error.mayHaveHadEffect, "a request that was sent may have had an effect")
            end(call)
        }
    }

    private mutating func end(_ ended: Call) {
        lastEnded = max(lastEnded, ended.request.id)
        call = nil
    }

    /// The timer looks early enough, whatever has happened.
    private mutating func alarm() {
        if let deadline = machine.nextAlarm() {
            must(deadline == machine.deadline, "the timer is set for another time")
        }
        let expected: NIODeadline? =
            if let call {
                isSuspended ? nil : isHeld ? call.end : min(call.end, call.progress + Self.readLimit)
            } else {
                freeSince.map { $0 + Self.idle }
            }
        must(machine.deadline == expected, "the deadline is wrong")
        if let expected { must(machine.alarm.map { $0 <= expected } ?? false, "no timer looks in time") }
    }
}
