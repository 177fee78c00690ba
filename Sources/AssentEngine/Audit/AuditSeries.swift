import AssentCore

/// Whose audit records a server writes, and in which order. Each node has a series of its own, so that no node waits
/// for another one's.
package final class AuditSeries: Sendable {
    /// The node. It stays the same when the server is started again, and no two servers of a database share it.
    package let node: String

    private let latest = Locked<Int64>(0)

    /// The series of a node.
    package init(node: String) {
        self.node = node
    }

    /// The place of the next record: microseconds since 1970, but always later than the one before, whatever the clock
    /// says. Records of several nodes are in the order of their clocks, those of one node in the order in which they
    /// were made.
    func next(at now: Int64) -> Int64 { next(1, at: now) }

    /// The first of so many places in a row.
    func next(_ count: Int64, at now: Int64) -> Int64 {
        latest.withLock { latest in
            let first = max(now, latest + 1)
            latest = first + count - 1
            return first
        }
    }

    /// Goes on after `position`, which an earlier run of the node has written.
    func resume(after position: Int64) {
        latest.withLock { $0 = max($0, position) }
    }
}
