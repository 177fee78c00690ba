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
}
