import Testing

@testable import AssentEngine

@Suite("The proofs that one process remembers")
struct ReplayMemoryTests {
    private static let now: Int64 = 1_800_000_000_000

    @Test("Where no key has many, all of them need a newer nonce, and nothing that was used is accepted")
    func manyKeys() {
        var memory = ReplayMemory(at: Self.now, limit: 1024)
        let expiresAt = Self.now + 270_000
        for index in 0..<1024 {
            // The last ones have nonces from a time ahead.
            let earliest = Self.now + (index > 1000 ? 59_000 : 0)
            #expect(
                memory.claim("\(index)", of: "key-\(index)", earliest: earliest, expiresAt: expiresAt, now: Self.now)
                    == .first)
        }
        let since = Self.now + 59_001
        for name in ["1024", "0", "1023"] {
            #expect(
                memory.claim(name, of: "key-" + name, earliest: since - 1, expiresAt: expiresAt, now: Self.now)
                    == .unknown(since: since))
        }
        #expect(memory.claim("1024", of: "key-1024", earliest: since, expiresAt: expiresAt, now: Self.now) == .first)
        #expect(memory.claim("1024", of: "key-1024", earliest: since, expiresAt: expiresAt, now: Self.now) == .repeated)
    }

    @Test("What has expired makes room first, and a key's own time is remembered for as long as it matters")
    func sweep() {
        var memory = ReplayMemory(at: Self.now, limit: 2)
        func claim(_ name: String, _ earliest: Int64, _ now: Int64) -> DPoPReplays.Claim {
            memory.claim(name, of: "key", earliest: earliest, expiresAt: earliest + 270_000, now: now)
        }
        #expect(claim("a", Self.now, Self.now) == .first)
        #expect(claim("b", Self.now, Self.now) == .first)
        #expect(claim("c", Self.now, Self.now) == .unknown(since: Self.now + 1))
        memory.sweep(now: Self.now + 200_000)
        #expect(claim("a", Self.now, Self.now + 200_000) == .unknown(since: Self.now + 1))
        #expect(claim("d", Self.now + 1, Self.now + 200_000) == .first)
        #expect(claim("e", Self.now + 1, Self.now + 200_000) == .first)
        let later = Self.now + 270_001
        #expect(claim("f", later, later) == .first)
    }

    @Test("A time that lies ahead is brought back to what nonces can have, once")
    func ahead() {
        var memory = ReplayMemory(at: Self.now + 7_200_000)
        let since = Self.now + 60_000
        for (now, earliest) in [(Self.now, Self.now), (Self.now + 500, since - 1)] {
            #expect(
                memory.claim("a", of: "key", earliest: earliest, expiresAt: since, now: now) == .unknown(since: since))
        }
        #expect(memory.claim("a", of: "key", earliest: since, expiresAt: since, now: Self.now + 600) == .first)
    }

    @Test("What has expired and is forgotten needs a newer nonce where the clock is set back to when it was in time")
    func setBack() {
        var memory = ReplayMemory(at: Self.now)
        func claim(_ name: String, madeAt: Int64, now: Int64) -> DPoPReplays.Claim {
            memory.claim(name, of: "key", earliest: madeAt, expiresAt: madeAt + 300_000, now: now)
        }
        #expect(claim("a", madeAt: Self.now, now: Self.now) == .first)
        let swept = Self.now + 300_000
        memory.sweep(now: swept)
        for back: Int64 in [61_000, 240_000, 359_999] {
            #expect(claim("a", madeAt: Self.now, now: swept - back) == .unknown(since: Self.now + 1))
        }
        for expected in [DPoPReplays.Claim.first, .repeated] {
            #expect(claim("b", madeAt: Self.now + 1, now: swept - 61_000) == expected)
        }
        // Nobody waits until a clock that was hours ahead has caught up.
        let now = swept - 7_200_000
        #expect(claim("c", madeAt: now, now: now) == .unknown(since: now + 60_000))
        #expect(claim("c", madeAt: now + 60_000, now: now + 500) == .first)
    }
}
