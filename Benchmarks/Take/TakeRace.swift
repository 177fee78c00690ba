/// Takes by the engine and takes by hand on the same database, in blocks that take turns.
struct TakeRace: Sendable {
    let world: TakeWorld
    let hand: any HandMadeTake
    let setting: BenchSetting

    private static let block = 96

    private var rounds: Int { setting.rounds(15, quick: 3) }
    private var blocks: Int { setting.rounds(8, quick: 2) }

    /// How many the engine takes in the time in which one is taken by hand.
    func run(_ name: String, _ baseline: String, parallel: Int, aim: Double) async throws -> Comparison {
        let way = parallel == 1 ? "one at a time" : "\(parallel) in parallel"
        var comparison = Comparison(
            benchmark: name, title: "evaluate-with-take / \(baseline), throughput, \(way)", unit: "1/s",
            aim: .atLeast(aim))
        for round in 0...rounds {
            let prepared = try await world.prepare(2 * blocks * Self.block)
            var rest = prepared[...]
            var subject = Duration.zero
            var baseline = Duration.zero
            for index in 0..<(2 * blocks) {
                let block = Array(rest.prefix(Self.block))
                rest = rest.dropFirst(Self.block)
                let clock = ContinuousClock()
                // Subject, baseline, baseline, subject: neither is always the first after the other.
                if index % 4 == 0 || index % 4 == 3 {
                    subject += try await clock.measure { try await take(block, parallel: parallel) }
                } else {
                    baseline += try await clock.measure { try await hand.take(block, parallel: parallel) }
                }
            }
            guard try await world.taken(prepared) == prepared.count else {
                throw BenchFailure("not every transaction was taken once")
            }
            // The first round warms both up.
            guard round > 0 else { continue }
            let takes = Double(blocks * Self.block)
            comparison.add(subject: takes / subject.inSeconds, baseline: takes / baseline.inSeconds, of: rounds)
        }
        return comparison
    }

    private func take(_ block: [TakeWorld.Prepared], parallel: Int) async throws {
        if parallel == 1 {
            for each in block { try await world.take(each) }
            return
        }
        try await withThrowingTaskGroup { group in
            for lane in 0..<parallel {
                group.addTask {
                    for index in stride(from: lane, to: block.count, by: parallel) {
                        try await world.take(block[index])
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
