public import AssentCore
public import Foundation

/// A clock that stands still until it is moved. A task that sleeps on it wakes when it has been moved past the
/// deadline.
public final class ManualClock: WallClock {
    private struct State {
        var now: Date
        var sleepers: [Int: (deadline: Date, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var nextID = 0
    }

    private let state: Locked<State>

    /// A clock that shows `now`; by default 2026-01-01T00:00:00Z.
    public init(_ now: Date = Date(timeIntervalSince1970: 1_767_225_600)) {
        state = Locked(State(now: now))
    }

    /// What the clock shows.
    public var now: Date { state.withLock { $0.now } }

    /// How many tasks sleep on this clock now.
    public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// Moves the clock, also backwards, and wakes those whose deadline has passed.
    public func advance(by seconds: TimeInterval) {
        let due = state.withLock { state in
            state.now += seconds
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.map(\.continuation)
        }
        for continuation in due { continuation.resume() }
    }

    /// Puts the clock to another time, as an operator does: those who sleep have as long to sleep as before.
    package func put(by seconds: TimeInterval) {
        state.withLock { state in
            state.now += seconds
            state.sleepers = state.sleepers.mapValues {
                (deadline: $0.deadline.addingTimeInterval(seconds), continuation: $0.continuation)
            }
        }
    }

    /// Waits until the clock has been moved to `deadline` or later.
    public func sleep(until deadline: Date) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let immediate: Result<Void, any Error>? = state.withLock { state in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.now >= deadline { return .success(()) }
                    state.sleepers[id] = (deadline, continuation)
                    return nil
                }
                if let immediate { continuation.resume(with: immediate) }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
