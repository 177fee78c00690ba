import AssentStore

/// A policy decision that takes an approved transaction, against the same two statements in one transaction by hand on
/// the same file: how many in the same time, one at a time, eight and thirty-two in parallel, in blocks that take
/// turns. By hand each transaction has a sync of its own; the server's, when they wait at the same time, share one.
struct TakeBenchmark: Benchmark {
    static let name = "take"
    static let summary = "a decision that takes a transaction against the same SQL by hand"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    @concurrent
    func run() async throws -> [Comparison] {
        let path = try setting.workspace.directory("take") + "/assent.sqlite"
        let world = try await TakeWorld(.sqlite(path: path))
        let level = try await world.database.run(SQLStatement("PRAGMA synchronous")).first?.integer("synchronous")
        guard level == 2 else { throw BenchFailure("synchronous is not FULL") }
        let race = TakeRace(world: world, hand: try await HandMadeSQLiteTake(path: path), setting: setting)
        var comparisons: [Comparison] = []
        for (parallel, aim) in [(1, 0.7), (8, 2), (32, 2)] {
            comparisons.append(try await race.run(Self.name, "same SQL by hand", parallel: parallel, aim: aim))
        }
        try race.hand.close()
        try await world.database.close()
        return comparisons
    }
}
