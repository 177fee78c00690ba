import AssentCore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Counting attempts")
struct AttemptCounterTests {
    @Test("Of many attempts at once, at two nodes, exactly the limit is let through")
    func parallel() async throws {
        let fixture = try await ProviderFixture()
        let second = try await fixture.secondNode().context
        let allowed = try await withThrowingTaskGroup(of: Bool.self) { group in
            for index in 0..<200 {
                group.addTask {
                    try await AttemptCounter(index.isMultiple(of: 2) ? fixture.context : second)
                        .attempt("totp:u", limit: 5, window: 300)
                }
            }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(allowed == 5)
    }

    @Test("Counters are apart, a new window starts anew, and a reset forgets")
    func windows() async throws {
        let fixture = try await ProviderFixture()
        let counter = AttemptCounter(fixture.context)
        func attempt(_ name: String) async throws -> Bool { try await counter.attempt(name, limit: 1, window: 300) }
        #expect(try await attempt("a"))
        #expect(try await !attempt("a"))
        #expect(try await attempt("b"))
        fixture.clock.advance(by: 299)
        #expect(try await !attempt("a"))
        fixture.clock.advance(by: 1)
        #expect(try await attempt("a"))
        try await counter.reset("a")
        #expect(try await attempt("a"))
    }

    @Test("Old windows are purged, the current one is not")
    func purge() async throws {
        let fixture = try await ProviderFixture()
        let counter = AttemptCounter(fixture.context)
        _ = try await counter.attempt("a", limit: 1, window: 60)
        fixture.clock.advance(by: 600)
        _ = try await counter.attempt("a", limit: 1, window: 60)
        try await counter.purge(before: fixture.clock.epochSeconds - 60)
        #expect(try await fixture.count("attempts") == 1)
        #expect(try await !counter.attempt("a", limit: 1, window: 60))
    }

    @Test("A window without length is a second, not a crash", arguments: [Int64(0), -5, .min])
    func oddWindow(window: Int64) async throws {
        #expect(try await AttemptCounter(ProviderFixture().context).attempt("a", limit: 1, window: window))
    }

    @Test("Of many calls at once exactly the limit is let through, each window anew, and counters are apart")
    func calls() async throws {
        let fixture = try await ProviderFixture()
        func allowed(_ name: String) async throws -> Int {
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<50 {
                    group.addTask { try await AttemptCounter(fixture.context).call(name, limit: 7, window: 60) }
                }
                return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
        }
        #expect(try await allowed("a") == 7)
        #expect(try await allowed("a") == 0)
        #expect(try await allowed("b") == 7)
        fixture.clock.advance(by: 60)
        #expect(try await allowed("a") == 7)
    }

    @Test("However many counters there are, no more are kept in memory than may be")
    func bounded() {
        let counts = CallCounts()
        for name in 0..<CallCounts.limit { _ = counts.add("\(name)", from: 0, to: 60) }
        #expect(counts.add("0", from: 0, to: 60) == 2)
        #expect(counts.count == CallCounts.limit)
        // The first of the next window takes the place of all whose window has ended.
        #expect(counts.add("new", from: 60, to: 120) == 1)
        #expect(counts.count == 1)
        #expect(counts.add("0", from: 60, to: 120) == 1)
        for name in 0..<CallCounts.limit { _ = counts.add("\(name)", from: 60, to: 120) }
        #expect((1...CallCounts.limit).contains(counts.count))
        counts.purge(before: 60)
        #expect(counts.count > 0)
        counts.purge(before: 61)
        #expect(counts.count == 0)
    }
}
