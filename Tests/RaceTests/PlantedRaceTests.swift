import AssentCore
import Foundation
import Testing

/// A race on purpose, so that the thread sanitizer can be seen to find one (`Scripts/check_races.sh`).
@Suite("A planted race")
struct PlantedRaceTests {
    private final class Counter: @unchecked Sendable { var value = 0 }

    @Test(
        "Two threads count without a lock",
        .enabled(if: ProcessInfo.processInfo.environment["ASSENT_PLANT_RACE"] != nil),
        .timeLimit(.minutes(1)))
    func planted() async {
        let counter = Counter()
        let (started, ended) = (Locked(0), Locked(0))
        for _ in 0..<2 {
            Thread.detachNewThread {
                started.withLock { $0 += 1 }
                while started.withLock({ $0 }) < 2 {}
                for _ in 0..<2_000_000 { counter.value += 1 }
                ended.withLock { $0 += 1 }
            }
        }
        while ended.withLock({ $0 }) < 2 { await Task.yield() }
        #expect(counter.value > 0)
    }
}
