package import Foundation

extension WallClock {
    /// Tries `attempt` until it gives something, for locks that no system call waits for without blocking a thread.
    ///
    /// The pauses grow from 1 ms to 50 ms, so that a lock which is free soon is taken soon and a long wait costs
    /// little. They count as well as the clock does: one that is set back does not put the deadline off.
    ///
    /// - Parameters:
    ///   - deadline: when to give up. There is at least one attempt.
    ///   - attempt: returns `nil` when somebody else has the lock.
    /// - Returns: what `attempt` returned, or `nil` at the deadline.
    /// - Throws: what `attempt` throws, and `CancellationError`.
    package func poll<Value>(until deadline: Date, _ attempt: () throws -> Value?) async throws -> Value? {
        var pause: TimeInterval = 0.001
        var left = deadline.timeIntervalSince(now)
        while true {
            if let value = try attempt() { return value }
            let now = now
            guard now < deadline, left > 0 else { return nil }
            try await sleep(until: min(deadline, now.addingTimeInterval(min(pause, left))))
            left -= pause
            pause = min(pause * 2, 0.05)
        }
    }
}
