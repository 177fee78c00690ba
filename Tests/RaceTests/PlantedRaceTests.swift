import AssentCore
import Foundation
import Synchronization
import Testing

/// Races on purpose, so that the thread sanitizer can be seen to find them (`Scripts/check_races.sh`).
@Suite(
    "A planted race", .enabled(if: ProcessInfo.processInfo.environment["ASSENT_PLANT_RACE"] != nil))
struct PlantedRaceTests {
    /// A value that two write in turn. Relaxed atomics say whose turn it is: that orders nothing, so it is a race
    /// however the two are scheduled. Nobody ends or does much else before both have written: the sanitizer drops what
    /// it cannot tell in full, and it forgets threads that have ended.
    private final class Turns: @unchecked Sendable {
        private var value = 0
        private let writes = Atomic(0)

        func writeFirst() {
            value = 1
            writes.store(1, ordering: .relaxed)
            wait(for: 2)
        }

        func writeSecond() {
            wait(for: 1)
            value = 2
            writes.store(2, ordering: .relaxed)
        }

        private func wait(for count: Int) {
            while writes.load(ordering: .relaxed) < count { sched_yield() }
        }
    }

    @Test("Two threads write without a lock")
    func threads() async {
        let turns = Turns()
        let ended = Locked(0)
        for body in [turns.writeFirst, turns.writeSecond] {
            Thread.detachNewThread {
                body()
                ended.withLock { $0 += 1 }
            }
        }
        while ended.withLock({ $0 }) < 2 { await Task.yield() }
    }

    @Test("What a continuation's body does is watched, though how its value is handed over is not")
    func continuation() async throws {
        let turns = Turns()
        Thread.detachNewThread { turns.writeSecond() }
        try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Void, any Error>) in
            turns.writeFirst()
            continuation.resume()
        }
    }
}
