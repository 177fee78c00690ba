import AssentTokens

/// An access token that is good, asked for again and again, against an actor call that returns the same tokens as a
/// constant: what it costs to ask before every request instead of keeping the token somewhere.
struct TokenReadBenchmark: Benchmark {
    static let name = "token-read"
    static let summary = "reading a good token against an actor call that returns a constant"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let block = 20_000

    private actor Constant {
        private let tokens: TokenSet

        init(_ tokens: TokenSet) { self.tokens = tokens }

        @inline(never)
        func value() async throws -> TokenSet { tokens }
    }

    @concurrent
    func run() async throws -> [Comparison] {
        let server = try BenchServer(in: try setting.workspace.directory("token-read"))
        defer { server.stop() }
        let manager = try await server.manager()
        let expected = try await manager.tokens()
        let constant = Constant(expected)
        var comparison = Comparison(
            benchmark: Self.name, title: "TokenManager.tokens / actor call that returns a constant, time", unit: "s",
            aim: .atMost(2))
        let rounds = setting.rounds(21, quick: 3)
        for round in 0...rounds {
            var last = expected
            let baseline = try await Self.time {
                for _ in 0..<Self.block { last = try await constant.value() }
            }
            let subject = try await Self.time {
                for _ in 0..<Self.block { last = try await manager.tokens() }
            }
            guard last == expected else { throw BenchFailure("another token") }
            // The first round warms both up.
            guard round > 0 else { continue }
            let calls = Double(Self.block)
            comparison.add(subject: subject / calls, baseline: baseline / calls, of: rounds)
        }
        return [comparison]
    }

    private static func time(_ body: () async throws -> Void) async throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        try await body()
        return (clock.now - start).inSeconds
    }
}
