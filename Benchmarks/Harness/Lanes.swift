import AssentCore
import Foundation

/// Work by numbers, spread over lanes that go on side by side, each in the order of its numbers.
enum Lanes {
    /// Does the work in tasks.
    static func run(
        _ count: Int, parallel: Int, _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        if parallel == 1 {
            for index in 0..<count { try await body(index) }
            return
        }
        try await withThrowingTaskGroup { group in
            for lane in 0..<parallel {
                group.addTask {
                    for index in stride(from: lane, to: count, by: parallel) { try await body(index) }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Does the work on threads of its own, for calls that block. Each thread has a lane to itself, so none waits for a
    /// lock.
    static func run<Lane>(
        _ count: Int, on lanes: [Locked<Lane>], parallel: Int,
        _ body: @escaping @Sendable (inout Lane, Int) throws -> Void
    ) async throws {
        try await withThrowingTaskGroup { group in
            for (number, lane) in lanes.prefix(parallel).enumerated() {
                group.addTask {
                    try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
                        Thread.detachNewThread {
                            done.resume(
                                with: Result {
                                    for index in stride(from: number, to: count, by: parallel) {
                                        try lane.withLock { try body(&$0, index) }
                                    }
                                })
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
