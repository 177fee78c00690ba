import Testing

@testable import AssentEngine

@Suite("Payload encryption: ten thousand handshakes at once")
struct HandshakeLimitTests {
    private static let now: Int64 = 1_900_000_000_000

    /// How many of ten thousand get a place at a time.
    private func taken(
        of limits: inout HandshakeLimits, at now: Int64 = HandshakeLimitTests.now, by address: (Int) -> String?
    ) -> Int {
        var taken = 0
        for number in 0..<10_000 where limits.take(address(number), now: now) { taken += 1 }
        return taken
    }

    @Test("From one address twenty are answered, and nobody else waits for those that are not")
    func one() {
        var limits = HandshakeLimits()
        #expect(taken(of: &limits) { _ in "192.0.2.1" } == 20)
        #expect(taken(of: &limits) { _ in "192.0.2.2" } == 20)
        #expect(taken(of: &limits, at: Self.now + 1000) { _ in "192.0.2.1" } == 2)
        #expect(taken(of: &limits, at: Self.now + 3_600_000) { _ in "192.0.2.1" } == 20)
    }

    @Test("From many addresses, or from none that is known, two hundred are in a second; a clock set back gives none")
    func many() {
        var limits = HandshakeLimits()
        #expect(taken(of: &limits) { "192.0.2.\($0)" } == 200)
        #expect(taken(of: &limits, at: Self.now - 60_000) { "198.51.100.\($0)" } == 0)
        #expect(taken(of: &limits, at: Self.now - 59_000) { "203.0.113.\($0)" } == 200)
        var unknown = HandshakeLimits()
        #expect(taken(of: &unknown) { _ in nil } == 200)
    }
}
