package import Foundation

/// A time for which something waits, or is left alone, by a clock that may be set back meanwhile.
///
/// Nobody knows then how much of it has passed, so it is over: else it would last until the clock has caught up.
package struct WaitingTime: Sendable, Hashable {
    private let begin: Date

    /// When it is over, unless the clock is set back before.
    package let end: Date

    /// A time of so many seconds from `now` on.
    package init(_ seconds: TimeInterval, from now: Date) {
        begin = now
        end = now.addingTimeInterval(seconds)
    }

    /// Whether it is over at `now`. It is also at a time before it began.
    package func isOver(at now: Date) -> Bool { now < begin || now >= end }
}
