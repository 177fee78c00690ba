import AssentCore

/// A value that others can wait for.
package final class Watched<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var waiting: [(test: @Sendable (Value) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
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
            let met = state.waiting.filter { $0.test(value) }.map(\.continuation)
            if !met.isEmpty { state.waiting.removeAll { $0.test(value) } }
            return (result, met)
        }
        for continuation in met { continuation.resume() }
        return result
    }

    package func wait(until test: @escaping @Sendable (Value) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isMet = state.withLock { state in
                if test(state.value) { return true }
                state.waiting.append((test, continuation))
                return false
            }
            if isMet { continuation.resume() }
        }
    }
}
