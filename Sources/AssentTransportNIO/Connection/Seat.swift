import AssentCore

/// Where a call without a connection is, in the queue or with a connection that is being opened, so that it can leave
/// when it is suspended.
final class Seat: Sendable {
    private struct State {
        var isLeft = false
        var isTaken = false
        var leave: (@Sendable () -> Void)?
    }

    private let state = Locked(State())

    /// Whether the call was suspended before it had a connection.
    var isLeft: Bool { state.withLock { $0.isLeft } }

    /// The call waits for something; `leave` ends the waiting, and is called at once if the call has left.
    func occupy(_ leave: @escaping @Sendable () -> Void) {
        let isLeft = state.withLock { state in
            state.leave = leave
            return state.isLeft
        }
        if isLeft { leave() }
    }

    /// The call is suspended. Without effect once it has its connection.
    func leave() {
        let leave = state.withLock { state -> (@Sendable () -> Void)? in
            guard !state.isTaken else { return nil }
            state.isLeft = true
            return state.leave
        }
        leave?()
    }

    /// The call has a connection; whether it is still there to use it.
    func take() -> Bool {
        state.withLock { state in
            state.isTaken = !state.isLeft
            return state.isTaken
        }
    }
}
