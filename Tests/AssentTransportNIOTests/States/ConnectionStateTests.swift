import AssentCore
import NIOCore
import TestSupport
import Testing

@testable import AssentTransportNIO

@Suite("A connection gives everything that waits exactly one answer, in any order of events")
struct ConnectionStateTests {
    /// What makes two moments the same for what can happen next; times are left out.
    private struct Situation: Hashable {
        let flags: [Bool]
        let channel: ConnectionWorld.Channel
        let received: Int?
        let abortedEarly: Int
        let reading: ConnectionState.Reading
        let isSuspended: Bool

        init(_ world: ConnectionWorld) {
            let call = world.call
            flags = [
                world.dialWaits, world.isMember, world.isFree, world.isHeld, world.owesRead, world.isCutOff,
                world.freeSince != nil, world.machine.alarm != nil, call?.hasHead == true, call?.hasReply == true,
                call?.hasRead == true, call?.isUploaded == true, call?.request.isReused == true, world.isSuspended,
            ]
            channel = world.channel
            received = call?.received
            reading = world.machine.reading
            isSuspended = world.isSuspended
            let next = world.request().id
            abortedEarly = world.abortedEarly.map { $0 == next ? 2 : 1 } ?? 0
        }
    }

    /// Everything that can happen, also what makes no sense now.
    private func events(_ world: ConnectionWorld) -> [ConnectionWorld.Event] {
        var events: [ConnectionWorld.Event] = [
            .opened, .received, .readComplete, .notKept, .hold, .read, .cutOff, .close(nil), .close(.tlsFailed),
            .close(.connectionClosed), .head(length: nil), .head(length: 10), .head(length: 101), .content(60),
            .content(101),
        ]
        for isReused in [false, true] {
            for hasUpload in [false, true] {
                let request = world.request(isReused: isReused, hasUpload: hasUpload)
                events.append(.start(request, isActive: true, isDead: false))
            }
        }
        events += [
            .start(world.request(isReused: true), isActive: true, isDead: true),
            .start(world.request(), isActive: false, isDead: false),
            .start(world.request(isLate: true), isActive: true, isDead: false),
        ]
        for exchange in [ConnectionWorld.Exchange.current, .ended, .future] {
            events += [
                .write(exchange), .uploadEnded(exchange, fails: false), .uploadEnded(exchange, fails: true),
                .abort(exchange), .resume(exchange), .suspend(exchange), .goOn(exchange),
            ]
        }
        for flag in [false, true] {
            events += [
                .replyEnded(keepsAlive: flag, isClean: true), .replyEnded(keepsAlive: true, isClean: flag),
                .broke(isTLS: flag), .inactive(isComplete: flag),
            ]
        }
        events += ConnectionWorld.Moment.allCases.map { .timer($0) }
        return events
    }

    @Test("Every event in every state", arguments: [true, false])
    func everything(keepsConnections: Bool) async {
        let first = ConnectionWorld(keepsConnections: keepsConnections)
        var seen: Set<Situation> = [Situation(first)]
        var open = [first]
        var transitions = 0
        while let world = open.popLast() {
            await Task.yield()
            for event in events(world) {
                var next = world
                next.apply(event)
                transitions += 1
                if let complaint = next.complaint {
                    Issue.record("\(complaint), at \(event) in \(world.machine)")
                    return
                }
                if seen.insert(Situation(next)).inserted { open.append(next) }
            }
        }
        #expect(seen.count > 700)
        #expect(seen.contains { $0.isSuspended })
        #expect(transitions == seen.count * events(first).count)
        #expect(Set(seen.map(\.channel)) == [.open, .closing, .gone])
    }

    /// Twenty thousand events over all walks, and a million with `make soak`.
    private static let steps = Soak.isOn ? 125_000 : 2_500

    @Test("Random events in eight walks", arguments: 0..<8)
    func walk(seed: Int) async {
        var random = SmallRandom(seed: seed)
        var world = ConnectionWorld(keepsConnections: seed != 7)
        var lives = 0
        var served = 0
        for step in 0..<Self.steps {
            // Nothing new happens to a connection that is gone.
            if world.channel == .gone, random.below(4) == 0 {
                world = ConnectionWorld(keepsConnections: seed != 7)
                lives += 1
            }
            // Tests of sockets run beside this one, against real time limits.
            if step % 100 == 0 { await Task.yield() }
            let wasBusy = world.call != nil
            world.apply(event(world, &random))
            if wasBusy, world.isFree { served += 1 }
            if let complaint = world.complaint {
                Issue.record("\(complaint), in step \(step)")
                return
            }
        }
        #expect(lives > (Soak.isOn ? 500 : 5))
        #expect(seed == 7 ? served == 0 : served > (Soak.isOn ? 1000 : 10))
    }

    /// Mostly what happens in a good life, and now and then anything.
    private func event(_ world: ConnectionWorld, _ random: inout SmallRandom) -> ConnectionWorld.Event {
        if world.channel == .closing, random.below(6) == 0 { return .inactive(isComplete: random.below(2) == 0) }
        let exchange = random.pick([ConnectionWorld.Exchange.current, .current, .current, .ended, .future]) ?? .current
        switch random.below(100) {
        case 0..<8: return .opened
        case 8..<22:
            let request = world.request(
                isReused: random.below(2) == 0, hasUpload: random.below(3) == 0, isLate: random.below(40) == 0)
            return .start(request, isActive: random.below(40) > 0, isDead: random.below(40) == 0)
        case 22..<36: return world.call == nil && random.below(60) > 0 ? .opened : .received
        case 36..<46: return random.below(40) == 0 || world.call?.hasHead == false ? .head(length: 50) : .readComplete
        case 46..<56: return world.call?.hasHead == true || random.below(40) == 0 ? .content(random.below(12)) : .opened
        case 56..<62: return .readComplete
        case 62..<70:
            let isGood = random.below(10) > 0
            return world.call?.hasHead == true || random.below(40) == 0
                ? .replyEnded(keepsAlive: isGood, isClean: true) : .read
        case 70..<74: return .hold
        case 74..<77: return .read
        case 77: return .suspend(exchange)
        case 78..<80: return .goOn(exchange)
        case 80..<84: return .resume(exchange)
        case 84..<88: return .write(exchange)
        case 88..<92: return .uploadEnded(exchange, fails: random.below(10) == 0)
        case 92: return .abort(exchange)
        case 93: return random.below(3) == 0 ? .inactive(isComplete: random.below(2) == 0) : .timer(.early)
        case 94: return random.below(3) == 0 ? .close(random.pick([nil, .connectionClosed]) ?? nil) : .read
        case 95: return random.below(3) == 0 ? .broke(isTLS: random.below(2) == 0) : .read
        case 96: return .timer(random.below(3) == 0 ? .afterTotal : random.below(2) == 0 ? .afterProgress : .early)
        case 97: return random.below(3) == 0 ? .cutOff : .hold
        case 98: return random.below(3) == 0 ? .notKept : .resume(.current)
        default: return .timer(.early)
        }
    }

    // MARK: - By example

    @Test("A suspended call has no time limit, and what was left of both afterwards")
    func suspension() {
        let start = NIODeadline.now()
        var state = ConnectionState(limits: Self.limits)
        _ = state.opened()
        let request = ConnectionState.Request(
            id: 1, deadline: start + .seconds(60), readLimit: .seconds(30), replyBytes: 100, hasUpload: false,
            isReused: false)
        _ = state.start(request, isActive: true, isDead: false, now: start)
        let suspends = [state.suspend(1, now: start + .seconds(20)), state.suspend(1, now: start + .seconds(21))]
        #expect(suspends == [true, false])
        #expect(state.deadline == nil)
        let late = state.timerFired(now: start + .hours(1))
        let reads = state.mayRead()
        #expect(!late.closesChannel && !reads)
        guard case .goOn(readsNow: true) = state.goOn(1, now: start + .seconds(120)) else {
            Issue.record("it does not read on")
            return
        }
        #expect(state.deadline == start + .seconds(130))
        _ = state.received(now: start + .seconds(125))
        #expect(state.deadline == start + .seconds(155))
        _ = state.received(now: start + .seconds(150))
        #expect(state.deadline == start + .seconds(160))
    }

    @Test("The time for a reply's header begins when the request is complete, and bytes of the header do not extend it")
    func headLimit() {
        let start = NIODeadline.now()
        var request = ConnectionState.Request(
            id: 1, deadline: start + .seconds(600), readLimit: .seconds(30), replyBytes: 100, hasUpload: true,
            isReused: false)
        request.headLimit = .seconds(10)
        var state = ConnectionState(limits: Self.limits)
        _ = state.opened()
        _ = state.start(request, isActive: true, isDead: false, now: start)
        #expect(state.deadline == start + .seconds(30), "a client may send its content slowly")
        _ = state.mayWrite(1, now: start + .seconds(20))
        #expect(state.deadline == start + .seconds(50))
        _ = state.uploadEnded(1, nil, now: start + .seconds(25))
        #expect(state.deadline == start + .seconds(35))
        _ = state.received(now: start + .seconds(34))
        #expect(state.deadline == start + .seconds(35))
        _ = state.suspend(1, now: start + .seconds(34))
        _ = state.goOn(1, now: start + .seconds(134))
        #expect(state.deadline == start + .seconds(135), "a second is left")
        var late = state
        guard case .caller(let failure) = late.timerFired(now: start + .seconds(135)).loss else {
            Issue.record("the caller is not answered")
            return
        }
        #expect(failure.error.code == .timedOut && failure.error.mayHaveHadEffect)
        #expect(failure.error.detail.contains("head"))
        _ = state.head(length: 5)
        #expect(state.deadline == start + .seconds(164), "from here on silence is bounded")
        request = ConnectionState.Request(
            id: 2, deadline: start + .seconds(60), readLimit: .seconds(30), replyBytes: 100, hasUpload: false,
            isReused: false, headLimit: .seconds(90))
        var other = ConnectionState(limits: Self.limits)
        _ = other.opened()
        _ = other.start(request, isActive: true, isDead: false, now: start)
        #expect(other.deadline == start + .seconds(60), "the whole time is bounded in any case")
    }

    @Test("A suspended call whose connection ends is answered as any other, and an ended one is not suspended")
    func suspendedEnd() {
        var state = busy()
        _ = state.suspend(1, now: .now())
        guard
            case .lost(.caller(let failure)) = state.becameInactive(missing: HTTPTransportError(.connectionClosed, ""))
                .answer
        else {
            Issue.record("the caller is not answered")
            return
        }
        #expect(failure.error.code == .connectionClosed)
        let suspends = state.suspend(1, now: .now())
        #expect(!suspends && !state.isSuspended)
    }

    private static let limits = ConnectionState.Limits(idle: .seconds(10), keepsConnections: true)

    private func request(_ id: UInt64, isReused: Bool = false) -> ConnectionState.Request {
        .init(
            id: id, deadline: .distantFuture, readLimit: .seconds(30), replyBytes: 100, hasUpload: false,
            isReused: isReused)
    }

    /// A connection that has sent request 1.
    private func busy(isReused: Bool = false) -> ConnectionState {
        var state = ConnectionState(limits: Self.limits)
        _ = state.opened()
        _ = state.start(request(1, isReused: isReused), isActive: true, isDead: false, now: .now())
        return state
    }

    @Test("A call may be repeated only when its kept connection ended without a byte of a reply")
    func repeatable() {
        for (isReused, hasRead) in [(true, false), (true, true), (false, false)] {
            var state = busy(isReused: isReused)
            if hasRead { _ = state.received(now: .now()) }
            let departure = state.becameInactive(missing: HTTPTransportError(.connectionClosed, ""))
            guard case .lost(.caller(let failure)) = departure.answer else {
                Issue.record("the caller is not answered")
                continue
            }
            #expect(failure.isStale == (isReused && !hasRead))
            #expect(!failure.isUnsent && failure.error.mayHaveHadEffect)
        }
    }

    @Test("A content that ends with its connection is complete only when the peer said so")
    func endOfConnection() {
        for isCutOff in [false, true] {
            var state = busy()
            _ = state.received(now: .now())
            _ = state.head(length: nil)
            _ = state.deliversNow()
            if isCutOff { state.cutOff() }
            switch state.becameInactive(missing: nil).answer {
            case .completed(.end): #expect(!isCutOff)
            case .lost(.reader(let error, true)): #expect(isCutOff && error.code == .connectionClosed)
            default: Issue.record("the reader is not answered")
            }
        }
    }

    @Test("A connection that this side closes never completes a content without a length")
    func closedHere() {
        var state = busy()
        _ = state.received(now: .now())
        _ = state.head(length: nil)
        _ = state.deliversNow()
        guard case .reader(let error, true) = state.close(nil).loss else {
            Issue.record("the reader is not answered")
            return
        }
        #expect(error.code == .connectionClosed)
        guard case .lost(.none) = state.becameInactive(missing: nil).answer else {
            Issue.record("it is answered twice")
            return
        }
    }

    @Test("A cancellation that comes before its request stops it; one that comes after its end stops nothing")
    func earlyAndLate() {
        var early = ConnectionState(limits: Self.limits)
        _ = early.opened()
        _ = early.abort(5, HTTPTransportError(.cancelled, ""))
        guard case .refuseAndClose(let failure) = early.start(request(5), isActive: true, isDead: false, now: .now())
        else {
            Issue.record("it is sent")
            return
        }
        #expect(failure.error.code == .cancelled && failure.isUnsent)

        var late = busy()
        _ = late.received(now: .now())
        _ = late.head(length: 0)
        _ = late.replyEnded(keepsAlive: true, isClean: true, now: .now())
        _ = late.start(request(2), isActive: true, isDead: false, now: .now())
        let ofTheEnded = late.abort(1, HTTPTransportError(.cancelled, ""))
        let ofTheCurrent = late.abort(2, HTTPTransportError(.cancelled, ""))
        #expect(!ofTheEnded.closesChannel && ofTheCurrent.closesChannel)
    }
}
