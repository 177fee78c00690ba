#if PostgreSQL && os(Linux)
import AssentStore
import Foundation
import StoreTesting

/// What a take costs a node when it has the PostgreSQL database for itself, and when it shares it with another node:
/// takes for each second of processor time of the nodes. PostgreSQL's own time is not in it.
struct NodesBenchmark: Benchmark {
    static let name = "nodes"
    static let summary = "takes per CPU second of two nodes on one PostgreSQL database against those of one node"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let connections = 10
    private static let parallel = 16
    private static let block = 192

    private var rounds: Int { setting.rounds(15, quick: 3) }
    private var blocks: Int { setting.rounds(4, quick: 2) }

    @concurrent
    func run() async throws -> [Comparison] {
        let server = try await PostgreSQLServer.start()
        var configuration = try await server.offPool { try $0.makeDatabase() }
        configuration.connections = Self.connections
        let first = try await TakeWorld(.postgresql(configuration))
        let second = try await TakeWorld(beside: first, .postgresql(configuration))
        var comparison = Comparison(
            benchmark: Self.name, title: "takes per CPU second, two nodes / one node on the same database",
            unit: "1/s", aim: .atLeast(0.9))
        for round in 0...rounds {
            let prepared = try await first.prepare(2 * blocks * Self.block)
            var rest = prepared[...]
            var (one, both) = (0.0, 0.0)
            for index in 0..<(2 * blocks) {
                let block = Array(rest.prefix(Self.block))
                rest = rest.dropFirst(Self.block)
                let nodes = index % 4 == 0 || index % 4 == 3 ? [first, second] : [first]
                let before = ProcessTime.now
                try await Self.take(block, nodes)
                let spent = ProcessTime.now - before
                if nodes.count == 1 { one += spent } else { both += spent }
            }
            guard try await first.taken(prepared) == prepared.count else {
                throw BenchFailure("not every transaction was taken once")
            }
            // The first round warms both up.
            guard round > 0 else { continue }
            let takes = Double(blocks * Self.block)
            comparison.add(subject: takes / both, baseline: takes / one, of: rounds)
        }
        for node in [first, second] { try await node.database.close() }
        return [comparison]
    }

    /// Each node takes its share, with as many tasks as the other.
    private static func take(_ block: [TakeWorld.Prepared], _ nodes: [TakeWorld]) async throws {
        let lanes = parallel * nodes.count
        try await withThrowingTaskGroup { group in
            for lane in 0..<lanes {
                group.addTask {
                    for index in stride(from: lane, to: block.count, by: lanes) {
                        try await nodes[lane % nodes.count].take(block[index])
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// What this process has spent, which is nothing but nodes while it takes.
}
#endif
