import AssentCore
import AssentEngine
import AssentStore
import StoreTesting

/// A login with a PIN, as the server answers its three calls (the evaluation of the PIN, its confirmation, and the
/// token request that the opened key has signed), against the same cryptography and SQL by hand: seconds for a login,
/// one at a time. What the device calculates, TLS and HTTP are on neither side.
struct PINLoginBenchmark: Benchmark {
    static let name = "pin-login"
    static let summary = "the three calls of a login with a PIN against the same cryptography and SQL by hand"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    @concurrent
    func run() async throws -> [Comparison] {
        let path = try setting.workspace.directory("pin-login") + "/assent.sqlite"
        let world = try await PINLoginWorld(.sqlite(path: path))
        let file = try await HandMadeSQLiteRows(path: path)
        var comparisons = [try await measure("SQLite", world, file)]
        try file.close()
        try await world.close()
        #if PostgreSQL && os(Linux)
        let server = try await PostgreSQLServer.start()
        let configuration = try await server.offPool { try $0.makeDatabase() }
        let node = try await PINLoginWorld(.postgresql(configuration))
        let lane = try HandMadePostgreSQLRows(configuration, parallel: 1)
        comparisons.append(try await measure("PostgreSQL", node, lane))
        try await node.close()
        #endif
        return comparisons
    }

    private func measure(
        _ kind: String, _ world: PINLoginWorld, _ rows: any HandMadeRows
    ) async throws -> Comparison {
        let user = try await world.enrolled()
        // Its container is one that the server does not touch meanwhile.
        let byHand = try PINLoginByHand(try await world.enrolled(), instance: world.instance)
        var comparison = Comparison(
            benchmark: Self.name, title: "\(kind): a login with a PIN / its three calls by hand, time", unit: "s",
            aim: .atMost(1.5))
        let (rounds, each) = (setting.rounds(9, quick: 2), setting.rounds(40, quick: 10))
        try await comparison.inTurns(rounds: rounds) {
            (
                subject: {
                    _ = world.takeTime()
                    for _ in 0..<each { try await world.logIn(user) }
                    return world.takeTime().inSeconds / Double(each)
                },
                baseline: {
                    let requests = (0..<each).flatMap { _ in byHand.calls() }
                    let time = try await ContinuousClock().measure { try await rows.run(requests, parallel: 1) }
                    return time.inSeconds / Double(each)
                }
            )
        }
        return comparison
    }
}
