import AssentCore

/// Lets many tasks wait for one piece of work. Who is cancelled stops waiting; the work goes on for the others, and to
/// its end even when nobody waits any more.
final class SingleFlight<Value: Sendable>: Sendable {
    private struct State {
        var waiting: [Int: CheckedContinuation<Value, any Error>] = [:]
        var lastID = 0
        var isRunning = false
    }

    /// The caller was cancelled. Where the work itself ends with a `CancellationError`, its callers have waited for it.
    private struct StoppedWaiting: Error {}

    private let state = Locked(State())

    /// How many wait.
    var count: Int { state.withLock { $0.waiting.count } }

    /// The value of the work that is under way, or of `work`, which is begun when there is none. `afterwards` is done
    /// by each caller who has waited to the end, or once without one when nobody has.
    func joinOrStart(
        _ work: @escaping @Sendable () async throws -> Value,
        afterwards: @escaping @Sendable () async -> Void = {}
    ) async throws -> Value {
        do {
            let value = try await join(work, unawaited: afterwards)
            await afterwards()
            return value
        } catch is StoppedWaiting {
            throw CancellationError()
        } catch {
            await afterwards()
            throw error
        }
    }

    private func join(
        _ work: @escaping @Sendable () async throws -> Value, unawaited: @escaping @Sendable () async -> Void
    ) async throws -> Value {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // Cancelled before it could be found by the handler below.
                let (isCancelled, begins) = state.withLock { state in
                    guard !Task.isCancelled else { return (true, false) }
                    state.waiting[id] = continuation
                    defer { state.isRunning = true }
                    return (false, !state.isRunning)
                }
                if isCancelled { continuation.resume(throwing: StoppedWaiting()) }
                if begins { Task { if await !self.run(work) { await unawaited() } } }
            }
        } onCancel: {
            let continuation = state.withLock { $0.waiting.removeValue(forKey: id) }
            continuation?.resume(throwing: StoppedWaiting())
        }
    }

    /// - Returns: whether anybody has waited for it.
    private func run(_ work: @Sendable () async throws -> Value) async -> Bool {
        let result: Result<Value, any Error>
        do { result = .success(try await work()) } catch { result = .failure(error) }
        let waiting = state.withLock { state in
            defer { state = State(lastID: state.lastID) }
            return Array(state.waiting.values)
        }
        for continuation in waiting { continuation.resume(with: result) }
        return !waiting.isEmpty
    }
}
