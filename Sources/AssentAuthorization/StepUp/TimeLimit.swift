package import AssentCore
package import Foundation

/// Runs an app's code for a bounded time.
package enum TimeLimit {
    /// The time is over.
    package struct Passed: Error {}

    /// Runs `work` in a task of its own. When the deadline passes, or the caller is cancelled, the task is cancelled,
    /// and not waited for: an app's code may never return.
    ///
    /// - Throws: ``Passed``, `CancellationError`, and what `work` throws.
    @concurrent package static func run<Value: Sendable>(
        until deadline: Date, clock: any WallClock, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let first = FirstResult<Value>()
        let worker = Task {
            do { first.settle(.success(try await work())) } catch { first.settle(.failure(error)) }
        }
        let timer = Task {
            try await clock.sleep(until: deadline)
            first.settle(.failure(Passed()))
        }
        defer {
            worker.cancel()
            timer.cancel()
        }
        return try await withTaskCancellationHandler {
            try await first.value()
        } onCancel: {
            first.settle(.failure(CancellationError()))
        }
    }
}

/// The first of several results; the others are dropped.
private final class FirstResult<Value: Sendable>: Sendable {
    private enum State {
        case open(CheckedContinuation<Value, any Error>?)
        case settled(Result<Value, any Error>)
    }

    private let state = Locked(State.open(nil))

    func settle(_ result: Result<Value, any Error>) {
        let waiting: CheckedContinuation<Value, any Error>? = state.withLock { state in
            guard case .open(let waiting) = state else { return nil }
            state = .settled(result)
            return waiting
        }
        waiting?.resume(with: result)
    }

    func value() async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let known: Result<Value, any Error>? = state.withLock { state in
                if case .settled(let result) = state { return result }
                state = .open(continuation)
                return nil
            }
            if let known { continuation.resume(with: known) }
        }
    }
}

extension WallClock {
    /// The time after a duration from now.
    package func time(after duration: Duration) -> Date {
        let (seconds, attoseconds) = duration.components
        return now.addingTimeInterval(TimeInterval(seconds) + TimeInterval(attoseconds) * 1e-18)
    }
}
