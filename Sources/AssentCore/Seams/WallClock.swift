public import Foundation

/// Where the time comes from: a seam, so that tests and the demo can move it.
public protocol WallClock: Sendable {
    /// The current time.
    var now: Date { get }

    /// Waits until `deadline` has passed. Throws `CancellationError` when the task is cancelled meanwhile.
    func sleep(until deadline: Date) async throws
}

extension WallClock {
    /// Seconds since 1970-01-01T00:00:00Z, rounded down, as JWTs and the store use them.
    public var epochSeconds: Int64 { Int64(now.timeIntervalSince1970.rounded(.down)) }

    /// Milliseconds since 1970-01-01T00:00:00Z, rounded down, as AM uses them.
    ///
    /// A `Date` keeps no exact milliseconds, so one microsecond is added first: a date made from n milliseconds gives n
    /// again.
    public var epochMilliseconds: Int64 { Int64((now.timeIntervalSince1970 * 1000 + 0.001).rounded(.down)) }
}

/// The machine's own clock.
public struct SystemClock: WallClock {
    /// The machine's own clock.
    public init() {}

    /// The current time.
    public var now: Date { Date() }

    /// Waits until `deadline` has passed.
    public func sleep(until deadline: Date) async throws {
        let seconds = deadline.timeIntervalSince(now)
        if seconds > 0 { try await Task.sleep(for: .seconds(seconds)) } else { try Task.checkCancellation() }
    }
}
