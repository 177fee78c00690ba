package import Foundation

/// That the probes were asked for a call a moment ago. Its first sending then need not ask them again; what waits in
/// between, or is sent another time, does.
package final class IntegrityExamination: Sendable {
    /// For how many seconds it is of a moment ago.
    package static let lifetime: TimeInterval = 1

    private let end: Date
    private let begin: Date
    private let isTaken = Locked(false)

    /// - Parameter now: when they were asked.
    package init(at now: Date) { (begin, end) = (now, now.addingTimeInterval(Self.lifetime)) }

    /// Takes it for a sending.
    ///
    /// - Returns: whether the sending need not ask; at most once.
    package func take(at now: Date) -> Bool {
        // A clock that was put back says nothing.
        guard begin <= now, now <= end else { return false }
        return isTaken.withLock { isTaken in
            defer { isTaken = true }
            return !isTaken
        }
    }
}
