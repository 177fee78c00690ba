import AssentCore
import AssentEngine
import AssentPayload
import AssentStore
import AssentTesting
import Foundation
import Logging

/// How much memory a node needs for live sessions of payload encryption, each of which has taken messages: what the
/// process has with them less what it had before, for each.
struct PayloadSessionBenchmark: Benchmark {
    static let name = "payload-sessions"
    static let summary = "100,000 live sessions of payload encryption: memory of a node for each"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    @concurrent
    func run() async throws -> [Comparison] {
        let count = setting.rounds(100_000, quick: 10_000)
        let path = try setting.workspace.directory("payload-sessions") + "/assent.sqlite"
        let context = EngineContext(
            database: try await DatabaseLocation.sqlite(path: path).open(clock: SystemClock()), clock: SystemClock(),
            random: SystemRandom(), masterKey: try MasterKey(Secret(bytes: SystemRandom().bytes(MasterKey.byteCount))),
            logger: Logger(label: "bench", factory: { _ in SwiftLogNoOpLogHandler() }))
        let world = try await HandshakeWorld(context)
        // What the first ones load and allocate is not theirs.
        for _ in 0..<100 { try await world.makeUsedSession() }
        let before = try ResidentMemory.now
        for _ in 0..<count { try await world.makeUsedSession() }
        let kibibytes = (try ResidentMemory.now - before) * 1024 / Double(count)
        guard world.sessionCount == count + 100 else { throw BenchFailure("\(world.sessionCount) sessions are there") }
        var comparison = Comparison(
            benchmark: Self.name, title: "memory of a node for a live session, in KiB, to one", unit: "KiB",
            aim: .atMost(1))
        comparison.add(subject: kibibytes, baseline: 1, of: 1)
        try await context.database.close()
        return [comparison]
    }
}
