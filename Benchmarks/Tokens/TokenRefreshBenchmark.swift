import AssentCore
import AssentTesting
import AssentTokens
import Foundation

/// A thousand tasks that want a token when the stored one is over: how many refreshes reach the server.
struct TokenRefreshBenchmark: Benchmark {
    static let name = "token-refresh"
    static let summary = "1,000 callers with an expired token: refreshes at the server"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let callers = 1000

    @concurrent
    func run() async throws -> [Comparison] {
        let server = try BenchServer(in: try setting.workspace.directory("token-refresh"))
        defer { server.stop() }
        let clock = ManualClock(Date())
        let manager = try await server.manager(clock: clock)
        var tokens = try await manager.tokens()
        var comparison = Comparison(
            benchmark: Self.name, title: "refreshes at the server / times that a token was over, 1,000 callers",
            unit: "refreshes", aim: .exactly(1))
        let rounds = setting.rounds(5, quick: 2)
        for _ in 0..<rounds {
            guard let end = tokens.expiresAt else { throw BenchFailure("a token without an end") }
            clock.advance(by: end.timeIntervalSince(clock.now) + 1)
            let before = try await server.refreshes()
            let got = try await withThrowingTaskGroup { group in
                for _ in 0..<Self.callers { group.addTask { try await manager.tokens() } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            guard let first = got.first, got.count == Self.callers, first != tokens, got.allSatisfy({ $0 == first })
            else { throw BenchFailure("not everybody has got the one new token") }
            tokens = first
            comparison.add(subject: Double(try await server.refreshes() - before), baseline: 1, of: rounds)
        }
        return [comparison]
    }
}
