/// Suspends a call and lets it go on, from outside of the layers that send it. It is handed with the call:
/// ``HTTPCall/control``.
///
/// A transport that does not know it sends the call as any other.
package final class CallControl: Sendable {
    private struct State {
        var isSuspended = false
        var suspensions = 0
        var watchers: [UInt64: @Sendable () -> Void] = [:]
        var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var lastID: UInt64 = 0

        mutating func nextID() -> UInt64 {
            lastID += 1
            return lastID
        }

        /// Everyone who waits for the call to go on.
        mutating func takeWaiters() -> [CheckedContinuation<Void, any Error>] {
            defer { waiters = [:] }
            return Array(waiters.values)
        }
    }

    private let state = Locked(State())

    /// A control of one call, which is not suspended.
    package init() {}

    /// Whether the call is to stand still now.
    package var isSuspended: Bool { state.withLock { $0.isSuspended } }

    /// How often it was suspended so far.
    package var suspensions: Int { state.withLock { $0.suspensions } }

    /// The call stands still as soon as its layers see this; nothing new is sent, read or handed over.
    package func suspend() {
        let watchers = state.withLock { state -> [@Sendable () -> Void] in
            guard !state.isSuspended else { return [] }
            state.isSuspended = true
            state.suspensions += 1
            return Array(state.watchers.values)
        }
        for watcher in watchers { watcher() }
    }

    /// The call goes on.
    package func resume() {
        let (watchers, waiters) = state.withLock { state in
            guard state.isSuspended else {
                return ([] as [@Sendable () -> Void], [] as [CheckedContinuation<Void, any Error>])
            }
            state.isSuspended = false
            return (Array(state.watchers.values), state.takeWaiters())
        }
        for watcher in watchers { watcher() }
        for waiter in waiters { waiter.resume() }
    }

    /// The transport has no room for one more suspended call: this one goes on.
    package func refuse() {
        let waiters = state.withLock { state in
            state.isSuspended = false
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits while the call is suspended.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    package func whenRunning() async throws {
        guard isSuspended else { return try Task.checkCancellation() }
        let id = state.withLock { $0.nextID() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (waiter: CheckedContinuation<Void, any Error>) in
                let result = state.withLock { state -> Result<Void, any Error>? in
                    // Under the lock: a cancellation that comes later finds the waiter.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    guard state.isSuspended else { return .success(()) }
                    state.waiters[id] = waiter
                    return nil
                }
                if let result { waiter.resume(with: result) }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
        }
    }

    /// Calls `body` after every change, on any thread, until the watch ends. What holds then is asked of the control.
    package func watch(_ body: @escaping @Sendable () -> Void) -> Watch {
        let id = state.withLock { state in
            let id = state.nextID()
            state.watchers[id] = body
            return id
        }
        return Watch(control: self, id: id)
    }

    fileprivate func forget(_ id: UInt64) {
        // What the watcher holds is let go outside of the lock: it may hold the last of somebody who comes here again.
        _ = state.withLock { $0.watchers.removeValue(forKey: id) }
    }

    /// Somebody who wants to know of changes, until it is let go.
    package final class Watch: Sendable {
        private let control: CallControl
        private let id: UInt64

        fileprivate init(control: CallControl, id: UInt64) {
            self.control = control
            self.id = id
        }

        deinit { control.forget(id) }

        /// No more calls.
        package func end() { control.forget(id) }
    }
}
