import AssentCore

/// Lets only one of several requests that got the same advice ask the user. The others wait for what comes of it.
actor StepUpCoordinator {
    enum Role {
        /// Ask the user, then say what came of it with ``StepUpCoordinator/leave(_:_:)``, or
        /// ``StepUpCoordinator/handOver(_:)``.
        case lead
        /// Somebody else asked, and this came of it.
        case follow(Result<Void, any Error>)
    }

    private var waiting: [String: [Int: CheckedContinuation<Role, Never>]] = [:]
    private var lastID = 0

    func enter(_ key: String) async -> Role {
        guard waiting[key] != nil else {
            waiting[key] = [:]
            return .lead
        }
        lastID += 1
        let id = lastID
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled {
                    continuation.resume(returning: .follow(.failure(CancellationError())))
                } else {
                    waiting[key]?[id] = continuation
                }
            }
        } onCancel: {
            Task { await self.cancel(key, id) }
        }
    }

    func leave(_ key: String, _ result: Result<Void, any Error>) {
        for continuation in (waiting.removeValue(forKey: key) ?? [:]).values {
            continuation.resume(returning: .follow(result))
        }
    }

    /// The leader was cancelled: one of those who wait asks in its place.
    func handOver(_ key: String) {
        guard let next = waiting[key]?.keys.min() else {
            waiting[key] = nil
            return
        }
        waiting[key]?.removeValue(forKey: next)?.resume(returning: .lead)
    }

    private func cancel(_ key: String, _ id: Int) {
        waiting[key]?.removeValue(forKey: id)?.resume(returning: .follow(.failure(CancellationError())))
    }
}
