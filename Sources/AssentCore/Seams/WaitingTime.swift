package import Foundation

/// How long something waits, by a clock that may be set back meanwhile.
///
/// When the clock shows a time before the wait began, the wait ends. Otherwise it would last until the clock caught up.
package struct WaitingTime: Sendable, Hashable {
    private let begin: Date

    /// When the wait ends, if the clock is not set back.
    package let end: Date

    /// A wait of this many seconds from `now`.
    package init(_ seconds: TimeInterval, from now: Date) {
        begin = now
        end = now.addingTimeInterval(seconds)
    }

    /// Whether the wait has ended at `now`: after its end, or before its beginning.
    package func isOver(at now: Date) -> Bool { now < begin || now >= end }
}
