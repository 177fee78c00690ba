import AssentStore

/// A policy decision that takes an approved transaction, against the same two statements in one transaction by hand on
/// the same file: how many in the same time, one at a time and eight in parallel, in blocks that take turns.
struct TakeBenchmark: Benchmark {
    static let name = "take"
    static let summary = "a decision that takes a transaction against the same SQL by hand"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let block = 24

    private var rounds: Int { setting.rounds(15, quick: 3) }
    private var blocks: Int { setting.rounds(16, quick: 4) }

    @concurrent
    func run() async throws -> [Comparison] {
        let path = try setting.workspace.directory("take") + "/assent.sqlite"
        let world = try await TakeWorld(path: path)
        let level = try await world.database.run(SQLStatement("PRAGMA synchronous")).first?.integer("synchronous")
        guard level == 2 else { throw BenchFailure("synchronous is not FULL") }
        var comparisons: [Comparison] = []
        for parallel in [1, 8] {
            comparisons.append(try await measure(world, parallel: parallel))
        }
        try world.hand.close()
        try await world.database.close()
        return comparisons
    }

    private func measure(_ world: TakeWorld, parallel: Int) async throws -> Comparison {
        let way = parallel == 1 ? "one at a time" : "\(parallel) in parallel"
        var comparison = Comparison(
            benchmark: Self.name, title: "evaluate-with-take / same SQL by hand, throughput, \(way)", unit: "1/s",
            aim: .atLeast(0.7))
        for round in 0...rounds {
            let prepared = try await world.prepare(2 * blocks * Self.block)
            var rest = prepared[...]
            var subject = Duration.zero
            var baseline = Duration.zero
            for index in 0..<(2 * blocks) {
                let block = Array(rest.prefix(Self.block))
                rest = rest.dropFirst(Self.block)
                // Subject, baseline, baseline, subject: neither is always the first after the other.
                if index % 4 == 0 || index % 4 == 3 {
                    subject += try await Self.time(block, parallel: parallel) { try await world.take($0) }
                } else {
                    baseline += try await Self.time(block, parallel: parallel) { try await world.hand.take($0) }
                }
            }
            guard try await world.hand.taken(prepared) == prepared.count else {
                throw BenchFailure("not every transaction was taken once")
            }
            // The first round warms both up.
            guard round > 0 else { continue }
            let takes = Double(blocks * Self.block)
            comparison.add(
                subject: takes / subject.inSeconds, baseline: takes / baseline.inSeconds, of: rounds)
        }
        return comparison
    }

    private static func time(
        _ block: [TakeWorld.Prepared], parallel: Int,
        _ take: @escaping @Sendable (TakeWorld.Prepared) async throws -> Void
    ) async throws -> Duration {
        let clock = ContinuousClock()
        let start = clock.now
        if parallel == 1 {
            for each in block { try await take(each) }
        } else {
            try await withThrowingTaskGroup { group in
                for lane in 0..<parallel {
                    group.addTask {
                        for index in stride(from: lane, to: block.count, by: parallel) { try await take(block[index]) }
                    }
                }
                try await group.waitForAll()
            }
        }
        return clock.now - start
    }
}
