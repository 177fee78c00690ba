import AssentCore

/// A value that others can wait for.
package final class Watched<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var waiting: [Int: (test: @Sendable (Value) -> Bool, continuation: CheckedContinuation<Void, Never>)] = [:]
        var lastID = 0
    }

    private let state: Locked<State>

    package init(_ value: Value) {
        state = Locked(State(value: value))
    }

    package var value: Value { state.withLock { $0.value } }

    @discardableResult
    package func update<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        let (result, met) = state.withLock { state in
            let result = body(&state.value)
            let value = state.value
            let met = state.waiting.filter { $0.value.test(value) }
            for id in met.keys { state.waiting[id] = nil }
            return (result, met.values.map(\.continuation))
        }
        for continuation in met { continuation.resume() }
        return result
    }

    /// Waits until it is so. Also returns when the task is cancelled: what is expected then fails, and nothing hangs.
    package func wait(until test: @escaping @Sendable (Value) -> Bool) async {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    // Cancelled before it could be found by the handler below.
                    if Task.isCancelled || test(state.value) { return true }
                    state.waiting[id] = (test, continuation)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: id) }?.continuation.resume()
        }
    }
}
