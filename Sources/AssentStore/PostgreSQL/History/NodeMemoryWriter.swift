#if PostgreSQL && os(Linux)
import Foundation

/// Lets one thread at a time write what a node remembers: those that open connections, and the one that writes the
/// mark. Two would write one temporary file.
final class NodeMemoryWriter: Sendable {
    private let file: NodeMemoryFile?
    /// Not ``Locked``, whose bodies do not block: this one writes to a disk.
    private let turn = NSLock()

    /// A writer of a file; `nil` for a node that keeps none.
    init(_ file: NodeMemoryFile?) { self.file = file }

    /// Blocks the thread until it is its turn, and runs `body`, which decides only then what it writes: else an older
    /// memory could replace a newer one.
    func alone(_ body: (NodeMemoryFile?) throws(StoreError) -> Void) throws(StoreError) {
        turn.lock()
        defer { turn.unlock() }
        try body(file)
    }
}
#endif
