#if PostgreSQL && os(Linux)
import CPQ
import Foundation

/// Wakes a thread that waits for a socket.
final class PostgreSQLBell: Sendable {
    /// What can be read after ``ring()``.
    let descriptor: Int32

    init() throws {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { throw StoreError(.unavailable, "no file descriptor is free") }
    }

    deinit { close(descriptor) }

    func ring() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout<UInt64>.size)
    }

    /// Takes all rings.
    func answer() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout<UInt64>.size)
    }
}
#endif
