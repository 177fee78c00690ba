import AssentCore
import Foundation

/// Threads of their own for work that takes long: on Swift's own few threads it would hold up everything else.
final class PasswordWorkers: Sendable {
    private let queue: OperationQueue
    private let limit: Int
    private let count = Locked(0)

    init(parallel: Int, waiting: Int) {
        queue = OperationQueue()
        queue.maxConcurrentOperationCount = parallel
        limit = parallel + waiting
    }

    /// Runs `work` on one of the threads.
    ///
    /// - Throws: ``EngineError`` `busy` when too many wait already; and what `work` throws.
    func run<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        let isAccepted = count.withLock { count in
            guard count < limit else { return false }
            count += 1
            return true
        }
        guard isAccepted else { throw EngineError(.busy) }
        return try await withCheckedThrowingContinuation { continuation in
            queue.addOperation { [count] in
                let result = Swift.Result { try work() }
                count.withLock { $0 -= 1 }
                continuation.resume(with: result)
            }
        }
    }
}
