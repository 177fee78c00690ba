import Foundation
import Testing

/// A race on purpose, so that the thread sanitizer can be seen to find one. It is built for that only.
@Suite("A planted race")
struct PlantedRaceTests {
    private final class Counter: @unchecked Sendable { var value = 0 }

    @Test(
        "Two tasks count without a lock", .enabled(if: ProcessInfo.processInfo.environment["ASSENT_PLANT_RACE"] != nil))
    func planted() async {
        let counter = Counter()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<10_000 { counter.value += 1 }
                }
            }
        }
        #expect(counter.value > 0)
    }
}
