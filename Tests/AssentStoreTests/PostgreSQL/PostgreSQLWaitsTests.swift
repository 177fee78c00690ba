#if PostgreSQL && os(Linux)
import Testing

@testable import AssentStore

@Suite("How long calls wait for a connection")
struct PostgreSQLWaitsTests {
    private let start = ContinuousClock.now
    private let limit = Duration.seconds(5)

    private func time(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test("One alarm is set for all that wait, and each of them waits as long as it may")
    func oneAlarm() {
        var waits = PostgreSQLWaits()
        #expect(waits.begin(1, now: time(0), limit: limit) == time(5))
        #expect(waits.begin(2, now: time(1), limit: limit) == nil)
        #expect(waits.begin(3, now: time(4), limit: limit) == nil)
        let first = waits.ring(now: time(5))
        #expect(first.over == [1] && first.next == time(6))
        // Its alarm may ring late: all whose time is over are told then.
        let second = waits.ring(now: time(9))
        #expect(second.over == [2, 3] && second.next == nil)
        // Nobody waits, so the next one needs an alarm.
        #expect(waits.begin(4, now: time(20), limit: limit) == time(25))
    }

    @Test("A call that has its answer is told nothing, and sets no alarm any more")
    func answered() {
        var waits = PostgreSQLWaits()
        for call in 1...100 as ClosedRange<UInt64> {
            let alarm = waits.begin(call, now: time(0), limit: limit)
            #expect(alarm == (call == 1 ? time(5) : nil))
            waits.forget(call)
        }
        _ = waits.begin(101, now: time(2), limit: limit)
        let ring = waits.ring(now: time(5))
        #expect(ring.over == [] && ring.next == time(7))
        waits.forget(101)
        let last = waits.ring(now: time(7))
        #expect(last.over == [] && last.next == nil)
    }

    @Test("A call that waits once more, since its connection was lost, may not wait anew while its time goes on")
    func onceMore() {
        var waits = PostgreSQLWaits()
        _ = waits.begin(1, now: time(0), limit: limit)
        #expect(waits.begin(1, now: time(3), limit: limit) == nil)
        let ring = waits.ring(now: time(5))
        #expect(ring.over == [1] && ring.next == nil)
        // It had a connection when its time was over, so it is still there.
        #expect(waits.begin(1, now: time(6), limit: limit) == time(11))
        let late = waits.ring(now: time(11))
        #expect(late.over == [1] && late.next == nil)
    }
}
#endif
