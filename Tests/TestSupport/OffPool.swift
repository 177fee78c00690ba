import Foundation

/// Runs what blocks on a thread on which that holds nobody up: the pool that tests and servers share has as few threads
/// as the machine has cores.
@discardableResult
package func offPool<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}
