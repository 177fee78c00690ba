public import AssentCore
import Foundation

/// What every ``/AssentCore/RollbackCounter`` must do.
public enum RollbackCounterContract {
    /// Checks that `counter`, which nobody else uses, only grows.
    ///
    /// - Throws: ``KeyProviderContract/Violation``, or what the counter threw unexpectedly.
    public static func check(_ counter: any RollbackCounter) async throws {
        let first = try await counter.value()
        try KeyProviderContract.expect(try await counter.value() == first, "reading changes the number")
        try KeyProviderContract.expect(try await counter.increment() == first + 1, "an increment did not add one")
        try KeyProviderContract.expect(try await counter.value() == first + 1, "the number was not kept")
        let numbers = try await withThrowingTaskGroup(of: UInt64.self) { group in
            for _ in 0..<8 { group.addTask { try await counter.increment() } }
            return try await group.reduce(into: Set<UInt64>()) { $0.insert($1) }
        }
        try KeyProviderContract.expect(
            numbers == Set(first + 2...first + 9), "parallel increments gave the same number, or left one out")
        try KeyProviderContract.expect(try await counter.value() == first + 9, "an increment was lost")
    }
}
