import AssentCore
import Foundation

/// This machine's clock, corrected by the provider's.
struct CorrectedClock: WallClock {
    let base: any WallClock

    /// Seconds that the provider's clock is ahead.
    let ahead: Int64

    var now: Date { base.now.addingTimeInterval(TimeInterval(ahead)) }

    func sleep(until deadline: Date) async throws {
        try await base.sleep(until: deadline.addingTimeInterval(-TimeInterval(ahead)))
    }
}
