#if PostgreSQL && os(Linux)
import AssentCore
import Foundation

/// Lets one thread at a time write what a node remembers: those that open connections, and the one that writes the
/// mark. Two would write one temporary file.
final class NodeMemoryWriter: Sendable {
    private let file: NodeMemoryFile?
    private let isBusy = Locked(false)

    /// A writer of a file; `nil` for a node that keeps none.
    init(_ file: NodeMemoryFile?) { self.file = file }

    /// Blocks the thread until it is its turn, and runs `body`, which decides only then what it writes: else an older
    /// memory could replace a newer one.
    func alone(_ body: (NodeMemoryFile?) throws(StoreError) -> Void) throws(StoreError) {
        while isBusy.withLock({ isBusy in
            if isBusy { return true }
            isBusy = true
            return false
        }) { _ = poll(nil, 0, 1) }
        defer { isBusy.withLock { $0 = false } }
        try body(file)
    }
}
#endif
