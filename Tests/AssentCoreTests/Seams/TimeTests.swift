import AssentCore
import AssentTesting
import Foundation
import Testing

@Suite("ManualClock")
struct ManualClockTests {
    @Test("It stands until it is moved, both ways")
    func moving() {
        let clock = ManualClock()
        #expect(clock.epochSeconds == 1_767_225_600)
        clock.advance(by: 1.5)
        #expect(clock.epochSeconds == 1_767_225_601)
        #expect(clock.epochMilliseconds == 1_767_225_601_500)
        clock.advance(by: -2)
        #expect(clock.epochSeconds == 1_767_225_599)
    }

    @Test("Seconds and milliseconds are rounded down, also before 1970")
    func rounding() {
        #expect(ManualClock(Date(timeIntervalSince1970: -0.5)).epochSeconds == -1)
        #expect(ManualClock(Date(timeIntervalSince1970: 0.9996)).epochMilliseconds == 999)
    }

    @Test("A date made from milliseconds gives the same milliseconds")
    func milliseconds() {
        for milliseconds in Int64(1_767_225_600_000)..<1_767_225_602_000 {
            let clock = ManualClock(Date(timeIntervalSince1970: Double(milliseconds) / 1000))
            #expect(clock.epochMilliseconds == milliseconds)
        }
    }

    @Test("Who sleeps wakes when the clock has been moved to the deadline, and not before")
    func sleeping() async throws {
        let clock = ManualClock()
        let woken = Locked<[Int]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for seconds in [20, 10] {
                group.addTask {
                    try await clock.sleep(until: clock.now + Double(seconds))
                    woken.withLock { $0.append(seconds) }
                }
            }
            while clock.sleeperCount < 2 { await Task.yield() }
            clock.advance(by: 9.999)
            #expect(clock.sleeperCount == 2)
            clock.advance(by: 0.001)
            #expect(clock.sleeperCount == 1)
            clock.advance(by: 100)
            try await group.waitForAll()
        }
        #expect(Set(woken.withLock { $0 }) == [10, 20])
        try await clock.sleep(until: clock.now)
    }

    @Test("A cancelled sleeper wakes with an error")
    func cancellation() async throws {
        let clock = ManualClock()
        let task = Task { try await clock.sleep(until: clock.now + 10) }
        while clock.sleeperCount < 1 { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(clock.sleeperCount == 0)
    }
}

@Suite("RandomSource")
struct RandomSourceTests {
    private struct Fixed: RandomSource {
        let byte: UInt8
        func bytes(_ count: Int) -> [UInt8] { Array(repeating: byte, count: count) }
    }

    @Test("A UUID has version 4 and its variant, whatever the random bytes are")
    func uuid() {
        #expect(Fixed(byte: 0xFF).uuid() == "ffffffff-ffff-4fff-bfff-ffffffffffff")
        #expect(Fixed(byte: 0).uuid() == "00000000-0000-4000-8000-000000000000")
        let random = SeededRandom(seed: 3)
        let all = (0..<1000).map { _ in random.uuid() }
        #expect(Set(all).count == 1000)
        #expect(all.allSatisfy { UUID(uuidString: $0)?.uuidString.lowercased() == $0 })
    }

    @Test("A token has the bytes that were asked for")
    func token() {
        #expect(Fixed(byte: 0).token(byteCount: 3) == "AAAA")
        #expect(Base64URL.decode(SystemRandom().token())?.count == 32)
    }

    @Test("The system's generator gives as many bytes as asked for, and others each time")
    func system() {
        for count in [0, 1, 7, 8, 9, 16, 33] { #expect(SystemRandom().bytes(count).count == count) }
        #expect(SystemRandom().bytes(32) != SystemRandom().bytes(32))
        var seen: Set<UInt8> = []
        for byte in SystemRandom().bytes(8192) { seen.insert(byte) }
        #expect(seen.count == 256)
    }

    @Test("A seeded generator repeats itself, and another seed does not")
    func seeded() {
        #expect(SeededRandom(seed: 1).bytes(16) == SeededRandom(seed: 1).bytes(16))
        #expect(SeededRandom(seed: 1).bytes(16) != SeededRandom(seed: 2).bytes(16))
    }
}
