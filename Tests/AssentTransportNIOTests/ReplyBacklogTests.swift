import Testing

@testable import AssentTransportNIO

@Suite("What was not read yet of a reply")
struct ReplyBacklogTests {
    private let piece = [UInt8](repeating: 7, count: 32 << 10)

    @Test("pauses the connection when it is too much, and lets it go on once, when most was read")
    func marks() {
        var backlog = ReplyBacklog()
        let holds = (0..<8).map { _ in backlog.add(piece) }
        #expect(holds == Array(repeating: false, count: 7) + [true])
        let resumes = (0..<8).map { _ in backlog.take()?.resumes }
        #expect(resumes == [false, false, false, false, false, true, false, false])
        let rest = backlog.take()
        #expect(rest == nil)
    }

    @Test("lets a paused connection go on, also when more of what was on its way comes while it is read")
    func arrivesWhilePaused() {
        var backlog = ReplyBacklog()
        for _ in 0..<8 { _ = backlog.add(piece) }
        _ = backlog.take()
        let isHeld = backlog.add([1])
        #expect(isHeld, "the connection has paused and was not told to go on")
        var resumed = 0
        while let (_, resumes) = backlog.take() { if resumes { resumed += 1 } }
        #expect(resumed == 1)
    }

    @Test("comes out as it went in, in pieces that are not single bytes")
    func order() {
        var backlog = ReplyBacklog()
        let sent = (0..<40_000).map { UInt8(truncatingIfNeeded: $0) }
        for byte in sent { _ = backlog.add([byte]) }
        var (received, pieces): ([UInt8], Int) = ([], 0)
        while let (bytes, _) = backlog.take() {
            received += bytes
            pieces += 1
        }
        #expect(received == sent && pieces < 5)
    }
}
