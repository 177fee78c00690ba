import AssentCore
import AssentTesting
import Foundation
import Testing

/// Moves by itself to whatever it is asked to wait for, and writes down how long that is.
private struct LeapingClock: WallClock {
    let manual = ManualClock()
    let pauses = Locked<[TimeInterval]>([])

    var now: Date { manual.now }

    func sleep(until deadline: Date) async throws {
        try Task.checkCancellation()
        let pause = deadline.timeIntervalSince(now)
        pauses.withLock { $0.append(pause) }
        manual.advance(by: pause)
    }
}

@Suite("Polling for a lock")
struct PollingTests {
    @Test("A lock that is free is taken without waiting, even after the deadline")
    func free() async throws {
        let clock = LeapingClock()
        #expect(try await clock.poll(until: .distantPast) { 7 } == 7)
        #expect(clock.pauses.withLock { $0 }.isEmpty)
    }

    @Test("The pauses double from 1 ms and stop growing at 50 ms")
    func rhythm() async throws {
        let clock = LeapingClock()
        var left = 9
        let value = try await clock.poll(until: .distantFuture) {
            left -= 1
            return left == 0 ? "free" : nil
        }
        #expect(value == "free")
        let pauses = clock.pauses.withLock { $0 }.map { ($0 * 1000).rounded() }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 50, 50])
    }

    @Test("A lock that is never free gives nothing at the deadline, and the last pause ends there")
    func deadline() async throws {
        let clock = LeapingClock()
        let end = clock.now + 0.1
        #expect(try await clock.poll(until: end) { Int?.none } == nil)
        #expect(abs(clock.now.timeIntervalSince(end)) < 0.001)
    }

    @Test("A clock that is set back does not put the deadline off")
    func setBack() async throws {
        let clock = LeapingClock()
        var attempts = 0
        let value = try await clock.poll(until: clock.now + 1) { () -> Int? in
            attempts += 1
            if attempts == 2 { clock.manual.advance(by: -3600) }
            return attempts > 100 ? attempts : nil
        }
        #expect(value == nil)
    }

    @Test("A cancelled task stops waiting")
    func cancellation() async throws {
        let clock = LeapingClock()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await clock.poll(until: .distantFuture) { Int?.none }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
