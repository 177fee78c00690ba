import AssentCore
import Foundation
import Testing

@Suite("A time that something waits for")
struct WaitingTimeTests {
    @Test(
        "It is over at its end, and where the clock was set back to before its beginning",
        arguments: [(-3600.0, true), (-0.001, true), (0, false), (9.999, false), (10, true), (3600, true)])
    func end(seconds: TimeInterval, isOver: Bool) {
        let begin = Date(timeIntervalSince1970: 1_800_000_000)
        let time = WaitingTime(10, from: begin)
        #expect(time.isOver(at: begin.addingTimeInterval(seconds)) == isOver)
        #expect(time.end == begin.addingTimeInterval(10))
    }
}
