import AssentCore
package import Foundation

/// The clock of the demo: it stands still until the story moves it forward.
package struct DemoClock: WallClock {
    private let time: Locked<Date>

    /// A clock that stands still at a time.
    package init(_ now: Date = Date()) { time = Locked(now) }

    package var now: Date { time.withLock { $0 } }

    func advance(by seconds: TimeInterval) { time.withLock { $0 += seconds } }

    /// Lets the clock run while `body` waits for somebody else: its first minute ten times as fast as time passes.
    func running<Result: Sendable>(while body: () async throws -> Result) async rethrows -> Result {
        let begin = now
        let running = Task {
            while !Task.isCancelled {
                try await Task.sleep(for: .milliseconds(50))
                // On a slow machine nothing that is asked for may expire meanwhile.
                advance(by: now < begin + 60 ? 0.5 : 0.05)
            }
        }
        defer { running.cancel() }
        return try await body()
    }

    /// Looks at the clock again and again: the few tasks that wait in a demo do not justify a list of sleepers.
    package func sleep(until deadline: Date) async throws {
        while now < deadline { try await Task.sleep(for: .milliseconds(50)) }
        try Task.checkCancellation()
    }
}
