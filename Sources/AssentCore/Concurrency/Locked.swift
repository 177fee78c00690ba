public import Foundation

/// A value behind a lock, for the few places where an actor cannot serve (a synchronous callback, a test double).
///
/// It stands on `NSLock`: `Synchronization.Mutex` makes the thread sanitizer report races that are not there on Linux.
/// This is the package's only `@unchecked Sendable`: `value` is touched only between `lock()` and `unlock()`.
public final class Locked<Value>: @unchecked Sendable {
    // Not private, so that other modules compile `withLock` for their own type of value. It is generic code otherwise.
    @usableFromInline let lock = NSLock()
    @usableFromInline var value: Value

    /// Guards `value`.
    public init(_ value: sending Value) {
        self.value = value
    }

    /// Runs `body` while holding the lock. `body` must not block and must not lock again.
    @inlinable public func withLock<Result>(_ body: (inout Value) throws -> sending Result) rethrows -> sending Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}
