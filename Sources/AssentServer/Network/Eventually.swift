import AssentCore

/// A value that comes once, or the reason why it does not.
final class Eventually<Value: Sendable>: Sendable {
    private enum State {
        case open([CheckedContinuation<Value, any Error>])
        case settled(Result<Value, any Error>)
    }

    private let state = Locked(State.open([]))

    /// The value, once it is there. Throws why it does not come.
    var value: Value {
        get async throws {
            try await withCheckedThrowingContinuation { continuation in
                let known: Result<Value, any Error>? = state.withLock { state in
                    switch state {
                    case .open(let waiting):
                        state = .open(waiting + [continuation])
                        return nil
                    case .settled(let result): return result
                    }
                }
                if let known { continuation.resume(with: known) }
            }
        }
    }

    /// Says what came. Only the first time counts.
    func settle(_ result: Result<Value, any Error>) {
        let waiting = state.withLock { state -> [CheckedContinuation<Value, any Error>] in
            guard case .open(let waiting) = state else { return [] }
            state = .settled(result)
            return waiting
        }
        for continuation in waiting { continuation.resume(with: result) }
    }
}
