#if PostgreSQL && os(Linux)
import Testing

@testable import AssentStore

@Suite("The pool of connections, as a state machine")
struct PostgreSQLPoolStateTests {
    private typealias Action = PostgreSQLPoolState.Action
    private let start = ContinuousClock.now
    private let error = StoreError(.unavailable, "away")

    private func pool(connections: Int = 2, waiting: Int = 3) -> PostgreSQLPoolState {
        PostgreSQLPoolState(limits: .init(connections: connections, waiting: waiting))
    }

    @Test("A call opens a connection, uses it, and the next call uses it again")
    func one() {
        var pool = pool()
        #expect(pool.ask(1, now: start) == [.limitWait(call: 1), .open(1)])
        #expect(pool.opened(1, now: start) == [.run(call: 1, connection: 1)])
        #expect(pool.finished(1) == [])
        #expect(pool.ask(2, now: start) == [.run(call: 2, connection: 1)])
        #expect(pool.members == [1: .busy(call: 2)])
    }

    @Test("As many connections are opened as are wanted and allowed; who waits longest is served first")
    func order() {
        var pool = pool()
        #expect(pool.ask(1, now: start) == [.limitWait(call: 1), .open(1)])
        #expect(pool.ask(2, now: start) == [.limitWait(call: 2), .open(2)])
        #expect(pool.ask(3, now: start) == [.limitWait(call: 3)])
        #expect(pool.ask(4, now: start) == [.refuse(call: 4, .tooMany(3))])
        #expect(pool.opened(2, now: start) == [.run(call: 1, connection: 2)])
        #expect(pool.finished(2) == [.run(call: 2, connection: 2)])
        #expect(pool.opened(1, now: start) == [.run(call: 3, connection: 1)])
        #expect(pool.finished(2) == [] && pool.finished(1) == [])
        // The one that was used last is used next.
        #expect(pool.ask(5, now: start) == [.run(call: 5, connection: 1)])
        #expect(pool.ask(6, now: start) == [.run(call: 6, connection: 2)])
    }

    @Test("Nobody waits too long, and nobody is refused twice")
    func waits() {
        var pool = pool(connections: 1)
        _ = pool.ask(1, now: start) + pool.opened(1, now: start) + pool.ask(2, now: start)
        #expect(pool.waitedTooLong(2) == [.refuse(call: 2, .waitedTooLong)])
        #expect(pool.waitedTooLong(2) == [] && pool.cancel(2) == [] && pool.waitedTooLong(1) == [])
        _ = pool.ask(3, now: start)
        #expect(pool.cancel(3) == [.refuse(call: 3, .cancelled)])
        #expect(pool.cancel(1) == [.interrupt(call: 1, connection: 1)])
        #expect(pool.finished(1) == [])
    }

    @Test("When no server answers, all that wait are told at once, and nobody tries again before the pause is over")
    func away() {
        var pool = pool()
        _ = pool.ask(1, now: start) + pool.ask(2, now: start)
        #expect(pool.openFailed(1, error, now: start, leavingOut: 0) == [])
        #expect(
            pool.openFailed(2, error, now: start, leavingOut: 0)
                == [.refuse(call: 1, .unreachable(error)), .refuse(call: 2, .unreachable(error))])
        #expect(pool.ask(3, now: start + .milliseconds(199)) == [.refuse(call: 3, .unreachable(error))])
        #expect(pool.ask(4, now: start + .milliseconds(200)) == [.limitWait(call: 4), .open(3)])
        // One tries; the others wait for what comes of it.
        #expect(pool.ask(5, now: start + .seconds(1)) == [.limitWait(call: 5)])
        #expect(pool.opened(3, now: start) == [.run(call: 4, connection: 3), .open(4)])
        #expect(pool.failures == 0)
    }

    @Test("The pause grows to two seconds, and chance takes at most half of it")
    func pauses() {
        for (share, least) in [(0.0, 2.0), (1.0, 1.0)] {
            var pool = pool()
            var now = start
            for _ in 0..<12 {
                _ = pool.ask(1, now: now)
                let connection = pool.members.first { $0.value == .opening }?.key ?? 0
                _ = pool.openFailed(connection, error, now: now, leavingOut: share)
                now += .seconds(2)
            }
            let before = now - .seconds(2) + .seconds(least) - .milliseconds(1)
            #expect(pool.ask(2, now: before) == [.refuse(call: 2, .unreachable(error))])
            #expect(pool.ask(3, now: before + .milliseconds(2)).count == 2)
        }
    }

    @Test("While others serve, a connection that cannot be opened costs nobody anything")
    func fewer() {
        var pool = pool()
        _ = pool.ask(1, now: start) + pool.opened(1, now: start) + pool.ask(2, now: start)
        #expect(pool.openFailed(2, error, now: start, leavingOut: 0) == [])
        #expect(pool.ask(3, now: start) == [.limitWait(call: 3)])
        #expect(pool.finished(1) == [.run(call: 2, connection: 1)])
        #expect(pool.finished(1) == [.run(call: 3, connection: 1)])
        #expect(pool.ask(4, now: start + .seconds(1)) == [.limitWait(call: 4), .open(3)])
    }

    @Test("A call whose connection is lost is first in the queue; idle connections go, too, since they may be as dead")
    func lost() {
        var pool = pool()
        _ = pool.ask(1, now: start) + pool.ask(2, now: start)
        _ = pool.opened(1, now: start) + pool.opened(2, now: start) + pool.finished(2)
        #expect(pool.gone(1, now: start) == [.limitWait(call: 1), .end(2), .open(3)])
        #expect(pool.ask(4, now: start) == [.limitWait(call: 4)])
        #expect(pool.gone(2, now: start) == [.open(4)])
        #expect(pool.opened(3, now: start) == [.run(call: 1, connection: 3)])
        #expect(pool.gone(3, answered: 1, now: start) == [])
        #expect(pool.opened(4, now: start) == [.run(call: 4, connection: 4)])
        #expect(pool.finished(4) == [] && pool.gone(4, now: start) == [])
        #expect(pool.members.isEmpty && pool.idle.isEmpty)
    }

    @Test("At the end nothing is served any more: waiting calls are refused, connections end when they are free")
    func end() {
        var pool = pool()
        _ = pool.ask(1, now: start) + pool.opened(1, now: start) + pool.ask(2, now: start) + pool.ask(3, now: start)
        _ = pool.opened(2, now: start)
        #expect(pool.end() == [.refuse(call: 3, .ended)])
        #expect(!pool.isEmpty)
        #expect(pool.ask(4, now: start) == [.refuse(call: 4, .ended)])
        #expect(pool.finished(1) == [.end(1)])
        #expect(pool.gone(1, now: start) == [])
        #expect(pool.gone(2, now: start) == [.refuse(call: 2, .ended)])
        #expect(pool.isEmpty && pool.end() == [])
        var opening = self.pool()
        _ = opening.ask(1, now: start)
        #expect(opening.end() == [.refuse(call: 1, .ended)])
        #expect(opening.isEmpty)
        #expect(opening.opened(1, now: start) == [.end(1)])
        var idle = self.pool()
        _ = idle.ask(1, now: start) + idle.opened(1, now: start) + idle.finished(1)
        #expect(idle.end() == [.end(1)])
        #expect(!idle.isEmpty && idle.end() == [] && idle.gone(1, now: start) == [] && idle.isEmpty)
    }

    @Test("Every event in every state keeps the limits, and each call gets one answer")
    func everything() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            var pool = pool(connections: 3, waiting: 4)
            var now = start
            var last: UInt64 = 0
            var asked: Set<UInt64> = []
            var refused: Set<UInt64> = []
            var served: Set<UInt64> = []
            for _ in 0..<120 {
                now += .milliseconds(Int.random(in: 0...300, using: &random))
                let connection = UInt64.random(in: 0...8, using: &random)
                let call = UInt64.random(in: 0...last, using: &random)
                let actions: [Action]
                var given: UInt64?
                if case .busy(let call) = pool.members[connection] { given = call }
                switch Int.random(in: 0...40, using: &random) {
                case 0...12:
                    last += 1
                    asked.insert(last)
                    actions = pool.ask(last, now: now)
                case 13...18: actions = pool.opened(connection, now: now)
                case 19...22: actions = pool.openFailed(connection, error, now: now, leavingOut: 0.5)
                case 23...28:
                    actions = pool.finished(connection)
                    if let given { served.insert(given) }
                case 29...31: actions = pool.gone(connection, now: now)
                case 32...34:
                    actions = pool.gone(connection, answered: call, now: now)
                    if given == call { served.insert(call) }
                case 35...36: actions = pool.cancel(call)
                case 37...39: actions = pool.waitedTooLong(call)
                default: actions = pool.end()
                }
                check(actions, pool, &refused)
                let busy = pool.members.values.compactMap { if case .busy(let call) = $0 { call } else { nil } }
                // Each call waits, is worked on, or has its answer: none is lost, and none has two.
                #expect(refused.union(served).union(pool.waiting).union(busy) == asked)
                #expect(refused.count + served.count + pool.waiting.count + busy.count == asked.count)
            }
        }
    }

    private func check(_ actions: [Action], _ pool: PostgreSQLPoolState, _ refused: inout Set<UInt64>) {
        for action in actions {
            switch action {
            case .refuse(let call, _):
                #expect(refused.insert(call).inserted)
                #expect(!pool.waiting.contains(call))
            case .run(let call, let connection):
                #expect(pool.members[connection] == .busy(call: call))
                #expect(!refused.contains(call) && !pool.waiting.contains(call))
            case .open(let connection): #expect(pool.members[connection] == .opening)
            case .end(let connection): #expect(pool.members[connection] == .ending || pool.members[connection] == nil)
            case .interrupt(let call, let connection): #expect(pool.members[connection] == .busy(call: call))
            case .limitWait(let call): #expect(pool.waiting.contains(call))
            }
        }
        #expect(pool.members.count <= 3 && pool.waiting.count <= 7)
        #expect(pool.idle.allSatisfy { pool.members[$0] == .idle } && Set(pool.idle).count == pool.idle.count)
        #expect(pool.idle.isEmpty || pool.waiting.isEmpty)
        #expect(Set(pool.waiting).count == pool.waiting.count)
        // Whoever waits waits for something.
        #expect(pool.waiting.isEmpty || !pool.members.isEmpty)
    }
}
#endif
