import Assent
import AssentCore
import AssentTransportNIO
import HTTPTypes
import NIOCore
import NIOPosix

/// What pins and probes cost a small call: with pins against without, on kept connections and on one for each call, and
/// with all probes against with none. One call at a time, in blocks that take turns.
struct GuardedCallBenchmark: Benchmark {
    static let name = "guarded-call"
    static let summary = "a call with pins, and one with probes, against the same without"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let path = "/status"
    private static let body = #"{"isOpen":true}"#
    private var rounds: Int { setting.rounds(15, quick: 3) }

    @concurrent
    func run() async throws -> [Comparison] {
        let location = "location / { return 200 '\(Self.body)'; }"
        let kept = try await PinnedServer(location, in: try setting.workspace.directory("guarded-kept"))
        defer { kept.stop() }
        let closing = try await PinnedServer(
            "keepalive_timeout 0; \(location)", in: try setting.workspace.directory("guarded-closing"))
        defer { closing.stop() }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let comparisons = [
            try await pins(
                kept, on: group, "a call with pins / without, on a kept connection, latency", aim: 1.02, blocks: 40),
            try await pins(
                closing, on: group, "a call with pins / without, with a connection of its own, latency", aim: 1.1,
                blocks: 10),
            try await probes(kept, on: group),
        ]
        try await group.shutdownGracefully()
        return comparisons
    }

    private func pins(
        _ server: PinnedServer, on group: MultiThreadedEventLoopGroup, _ title: String, aim: Double, blocks: Int
    ) async throws -> Comparison {
        let (pinned, unpinned) = (
            try server.transport(on: group), try server.transport(on: group, isPinned: false)
        )
        let call = try HTTPCall(.get, url: server.origin + Self.path)
        let comparison = try await compare(
            title, unit: "s", aim: aim, blocks: blocks,
            { [TimedCaller(call, over: pinned), TimedCaller(call, over: unpinned)] }, \.latency)
        await pinned.shutdown()
        await unpinned.shutdown()
        return comparison
    }

    private func probes(
        _ server: PinnedServer, on group: MultiThreadedEventLoopGroup
    ) async throws -> Comparison {
        let transport = try server.transport(on: group)
        // What they find is reported, so that a machine on which this runs stops nothing.
        let guarded = try await server.assent(over: transport) {
            $0.integrity.controls = IntegrityControls(debugger: .report, preload: .report, rooted: .report)
        }
        let bare = try await server.assent(over: transport) {
            $0.integrity.controls = IntegrityControls(debugger: .off, preload: .off, rooted: .off)
        }
        let request = ResourceRequest.get(server.origin + Self.path)
        func caller(_ assent: Assent) -> TimedCaller {
            TimedCaller {
                let reply = try await assent.userClient.sendAuthenticatedRequest(request)
                return (reply.status, reply.data)
            }
        }
        let comparison = try await compare(
            "sendAuthenticatedRequest with all probes / with none, processor time", unit: "s per call", aim: 1.02,
            blocks: 40, { [caller(guarded), caller(bare)] }, \.processorTime)
        await transport.shutdown()
        return comparison
    }

    /// The first caller against the second.
    private func compare(
        _ title: String, unit: String, aim: Double, blocks: Int, _ make: () -> [TimedCaller],
        _ figure: (TimedCaller) -> Double
    ) async throws -> Comparison {
        var comparison = Comparison(benchmark: Self.name, title: title, unit: unit, aim: .atMost(aim))
        try await TimedCaller.inTurns(
            CallTurns(rounds: rounds, blocks: setting.rounds(blocks, quick: max(2, blocks / 5))),
            expecting: Self.body, make,
            count: { comparison.add(subject: figure($0[0]), baseline: figure($0[1]), of: rounds) })
        return comparison
    }
}
