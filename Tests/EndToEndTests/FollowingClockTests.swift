import Foundation
import Testing

@Suite("The clock of a server beside programs")
struct FollowingClockTests {
    @Test("It stands still until it follows, is then at most ten seconds behind, and may be ahead")
    func follows() {
        let start = Date(timeIntervalSinceNow: -150)
        let clock = FollowingClock(start)
        clock.advance(by: 30)
        #expect(clock.now == start.addingTimeInterval(30))
        clock.follow()
        let before = Date()
        #expect(clock.now >= before.addingTimeInterval(-10))
        clock.advance(by: 86_400)
        let ahead = clock.now
        #expect(ahead > Date() && clock.now == ahead)
    }
}
