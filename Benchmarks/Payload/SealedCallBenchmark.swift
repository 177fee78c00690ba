import Assent
import AssentCore
import AssentPeers
import AssentTransportNIO
import HTTPTypes
import NIOCore
import NIOPosix

/// A small GET with an access token through the gateway, sealed, against the same plain: processor time of client and
/// gateway together, and latency on kept connections, one call at a time in blocks that take turns; and how many
/// requests the first sealed call of a client takes.
struct SealedCallBenchmark: Benchmark {
    static let name = "sealed-call"
    static let summary = "a small call through the gateway sealed against the same plain"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    /// The kernel counts a server's processor time in hundredths of a second, so a block must take many of them.
    private var turns: CallTurns {
        CallTurns(rounds: setting.rounds(15, quick: 2), blocks: setting.rounds(8, quick: 2), block: 250)
    }

    @concurrent
    func run() async throws -> [Comparison] {
        let (upstream, port) = try await Nginx.accounts(in: try setting.workspace.directory("sealed-upstream"))
        defer { upstream.stop() }
        let gateway = try BenchServer(
            in: try setting.workspace.directory("sealed-call"), upstream: "http://127.0.0.1:\(port)")
        defer { gateway.stop() }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let network = try gateway.transport(on: group)
        var comparisons = try await measure(gateway, network)
        comparisons.append(try await countCold(gateway, network))
        await network.shutdown()
        try await group.shutdownGracefully()
        return comparisons
    }

    private static func call(_ gateway: BenchServer) throws -> HTTPCall {
        try HTTPCall(
            .get, url: gateway.gateway + AccountsReply.path,
            headerFields: [.accept: "application/json", .authorization: "Bearer \(gateway.accessToken)"])
    }

    private func measure(_ gateway: BenchServer, _ network: NIOTransport) async throws -> [Comparison] {
        let call = try Self.call(gateway)
        let process = gateway.process
        func caller(_ transport: any HTTPTransport) -> TimedCaller {
            TimedCaller(call, over: transport, spent: { try process.processorTime + ProcessTime.now })
        }
        var processor = Comparison(
            benchmark: Self.name, title: "a sealed call / the plain one, processor time of client and gateway",
            unit: "s per call", aim: .atMost(1.2))
        var latency = Comparison(
            benchmark: Self.name, title: "a sealed call / the plain one, kept connection, latency", unit: "s",
            aim: .atMost(1.15))
        let sealing = try gateway.sealing(network)
        try await TimedCaller.inTurns(
            turns, expecting: AccountsReply.body,
            { [caller(sealing), caller(network)] },
            count: { callers in
                processor.add(subject: callers[0].processorTime, baseline: callers[1].processorTime, of: turns.rounds)
                latency.add(subject: callers[0].latency, baseline: callers[1].latency, of: turns.rounds)
            })
        return [processor, latency]
    }

    /// The requests of a client's first call, which makes a session, and of its second.
    private func countCold(_ gateway: BenchServer, _ network: NIOTransport) async throws -> Comparison {
        var comparison = Comparison(
            benchmark: Self.name, title: "requests of a client's first sealed call / of its second", unit: "requests",
            aim: .exactly(2))
        let rounds = setting.rounds(5, quick: 2)
        for _ in 0..<rounds {
            let counting = CountingTransport(network)
            let sealing = try gateway.sealing(counting)
            var counts: [Int] = []
            for _ in 0..<2 {
                let before = counting.count
                let reply = try await sealing.send(try Self.call(gateway))
                guard reply.status == 200 else { throw BenchFailure("status \(reply.status)") }
                _ = try await reply.body.collect(upTo: 1 << 20)
                counts.append(counting.count - before)
            }
            comparison.add(subject: Double(counts[0]), baseline: Double(counts[1]), of: rounds)
        }
        return comparison
    }
}

/// Counts what is sent.
private final class CountingTransport: HTTPTransport {
    private let base: any HTTPTransport
    private let sent = Locked(0)

    init(_ base: any HTTPTransport) { self.base = base }

    var count: Int { sent.withLock { $0 } }

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        sent.withLock { $0 += 1 }
        return try await base.send(call)
    }
}
