public import AssentAuthorization
import AssentCore

/// A call that is under way: it can be suspended, resumed and cancelled, and says how far it is.
///
/// ```swift
/// let task = assent.userClient.sendAuthenticatedRequest(request) { _, error in
///     if let error { print(error.detail) }
/// }
/// task?.suspend()
/// task?.resume()
/// ```
///
/// It goes on without being kept. While it is suspended our own time limits stand still, and the server's do not;
/// `docs/resources.md` says what ``resume()`` does when the server has ended the connection by then.
public final class NetworkTask: Sendable {
    private struct Status {
        /// Never `suspended`: the control knows that.
        var state = State.running
        var response: ResourceResponse?
        var error: ResourceError?
        var progress = NetworkProgress()
        var isTold = false
        var work: Task<Void, Never>?
        var listeners: [UInt64: AsyncStream<NetworkProgress>.Continuation] = [:]
        var lastListener: UInt64 = 0
    }

    /// A name that no other task has.
    public let identifier: String

    /// What was asked.
    public let request: ResourceRequest

    let control = CallControl()
    private let completion: ResourceCompletion
    private let status = Locked(Status())

    init(identifier: String, request: ResourceRequest, completion: @escaping ResourceCompletion) {
        self.identifier = identifier
        self.request = request
        self.completion = completion
    }

    /// Where it is.
    public var state: State {
        let state = status.withLock { $0.state }
        return state == .running && control.isSuspended ? .suspended : state
    }

    /// What the resource answered; `nil` until the task has ended, or when nothing came.
    public var response: ResourceResponse? { status.withLock { $0.response } }

    /// Why it failed: what the completion is told. `nil` until the task has ended, or when it went well.
    public var error: ResourceError? { status.withLock { $0.error } }

    /// How far it is, now and at every change, to the end of the task. A slow reader gets the newest.
    ///
    /// The sequence ends when the completion has returned.
    public var progress: AsyncStream<NetworkProgress> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: NetworkProgress.self, bufferingPolicy: .bufferingNewest(1))
        let id = status.withLock { status -> UInt64 in
            status.lastListener += 1
            return status.lastListener
        }
        continuation.onTermination = { [weak self] _ in
            self?.status.withLock { $0.listeners[id] = nil }
        }
        let isTold = status.withLock { status -> Bool in
            continuation.yield(status.progress)
            if !status.isTold { status.listeners[id] = continuation }
            return status.isTold
        }
        if isTold { continuation.finish() }
        return stream
    }

    // MARK: - What an app does

    /// Ends it: the completion is told 9006, once. A call that was sent may have had its effect all the same.
    public func cancel() {
        let work = status.withLock { status -> Task<Void, Never>?? in
            guard let next = status.state.after(.cancel) else { return nil }
            status.state = next
            status.error = ResourceError(.generic, .actionCancelled, "The call was cancelled.")
            return .some(status.work)
        }
        guard let work else { return }
        work?.cancel()
        // The caller may hold a lock that the completion wants.
        Task { tell() }
    }

    /// Lets it stand still: nothing more is sent, read or told until ``resume()``.
    ///
    /// At most 16 calls of an origin that have a connection are suspended at once. One more goes on, and its ``state``
    /// is `running` again.
    public func suspend() {
        if state.after(.suspend) != nil { control.suspend() }
    }

    /// Lets it go on.
    public func resume() {
        if state.after(.resume) != nil { control.resume() }
    }

    // MARK: - What the transfer does

    /// Begins; what `work` answers is told when the task is not suspended.
    func start(_ work: @escaping @Sendable () async -> Transfer.Outcome) {
        let running = Task { await self.end(await work()) }
        let isCancelled = status.withLock { status -> Bool in
            status.work = running
            return status.state == .cancelled
        }
        if isCancelled { running.cancel() }
    }

    /// Something was sent, or has come.
    func report(_ change: @Sendable (inout NetworkProgress) -> Void) {
        status.withLock { status in
            change(&status.progress)
            for listener in status.listeners.values { listener.yield(status.progress) }
        }
    }

    private func end(_ outcome: Transfer.Outcome) async {
        enum Step { case told, wait, over }
        while true {
            let step = status.withLock { status -> Step in
                guard status.state == .running else { return .over }
                guard !control.isSuspended else { return .wait }
                status.state = .completed
                status.response = outcome.response
                status.error = outcome.error ?? outcome.response?.error
                return .told
            }
            switch step {
            case .told: return tell()
            case .over: return
            case .wait: try? await control.whenRunning()
            }
        }
    }

    private func tell() {
        let (response, error) = status.withLock { ($0.response, $0.error) }
        completion(response, error)
        let listeners = status.withLock { status in
            status.isTold = true
            return Array(status.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}
