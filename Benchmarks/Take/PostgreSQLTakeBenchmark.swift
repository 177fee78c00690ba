#if PostgreSQL && os(Linux)
import AssentStore
import StoreTesting

/// The same as ``TakeBenchmark`` on a PostgreSQL server of the benchmark's own, against libpq by hand.
struct PostgreSQLTakeBenchmark: Benchmark {
    static let name = "take-postgresql"
    static let summary = "a decision that takes a transaction on PostgreSQL against the same SQL by hand with libpq"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let most = 32

    @concurrent
    func run() async throws -> [Comparison] {
        let server = try await PostgreSQLServer.start()
        var configuration = try await server.offPool { try $0.makeDatabase() }
        configuration.connections = Self.most
        let world = try await TakeWorld(.postgresql(configuration))
        let hand = try HandMadePostgreSQLTake(configuration, parallel: Self.most)
        let race = TakeRace(world: world, hand: hand, setting: setting)
        var comparisons: [Comparison] = []
        for parallel in [1, 8, Self.most] {
            comparisons.append(try await race.run(Self.name, "same SQL by hand", parallel: parallel, aim: 0.8))
        }
        try await world.database.close()
        return comparisons
    }
}
#endif
