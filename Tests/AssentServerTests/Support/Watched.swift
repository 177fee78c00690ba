import AssentCore

/// A value that tests can wait for.
final class Watched<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var waiting: [(test: @Sendable (Value) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state: Locked<State>

    init(_ value: Value) {
        state = Locked(State(value: value))
    }

    var value: Value { state.withLock { $0.value } }

    func update(_ body: (inout Value) -> Void) {
        let met = state.withLock { state in
            body(&state.value)
            let value = state.value
            let met = state.waiting.filter { $0.test(value) }.map(\.continuation)
            if !met.isEmpty { state.waiting.removeAll { $0.test(value) } }
            return met
        }
        for continuation in met { continuation.resume() }
    }

    func wait(until test: @escaping @Sendable (Value) -> Bool) async {
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
