import Assent
import AssentCore
import AssentTransportNIO
import HTTPTypes
import NIOCore
import NIOPosix

/// A user's call by `UserClient`, against the same by `Assent.send`, in processor time, and against the same bytes on
/// the pinned transport alone, in latency: on kept connections to one server in another process, one at a time, in
/// blocks that take turns.
struct ResourceCallBenchmark: Benchmark {
    static let name = "resource-call"
    static let summary = "a user's call by UserClient against Assent.send and against the pinned transport alone"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    @concurrent
    func run() async throws -> [Comparison] {
        let server = try await PinnedServer(
            AccountsReply.location, in: try setting.workspace.directory("resource-call"))
        defer { server.stop() }
        // One loop for all, so that none has a thread more.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let transport = try server.transport(on: group)
        // What the probes cost is another benchmark's question: see GuardedCallBenchmark.
        let assent = try await server.assent(over: transport) {
            $0.integrity.controls = IntegrityControls(debugger: .off, preload: .off, rooted: .off)
        }
        let comparisons = try await measure(server, assent, transport)
        await transport.shutdown()
        try await group.shutdownGracefully()
        return comparisons
    }

    private func measure(
        _ server: PinnedServer, _ assent: Assent, _ transport: NIOTransport
    ) async throws -> [Comparison] {
        let request = ResourceRequest.get(server.origin + AccountsReply.path, headers: [.accept: "application/json"])
        let bare = try Self.bare(server)
        var processor = Comparison(
            benchmark: Self.name, title: "sendAuthenticatedRequest / Assent.send, processor time", unit: "s per call",
            aim: .atMost(1.02))
        var latency = Comparison(
            benchmark: Self.name, title: "sendAuthenticatedRequest / the pinned transport alone, latency", unit: "s",
            aim: .atMost(1.15))
        try await TimedCaller.inTurns(
            setting.callTurns, expecting: AccountsReply.body,
            {
                [
                    TimedCaller {
                        let reply = try await assent.userClient.sendAuthenticatedRequest(request)
                        return (reply.status, reply.data)
                    },
                    TimedCaller { try await TimedCaller.whole(assent.send(request)) },
                    TimedCaller(bare, over: transport),
                ]
            },
            count: { callers in
                processor.add(
                    subject: callers[0].processorTime, baseline: callers[1].processorTime, of: setting.callTurns.rounds)
                latency.add(
                    subject: callers[0].latency, baseline: callers[2].latency, of: setting.callTurns.rounds)
            })
        return [processor, latency]
    }

    /// The bytes that the SDK sends, but for what the transport adds by itself.
    private static func bare(_ server: PinnedServer) throws -> HTTPCall {
        var fields: HTTPFields = [
            .accept: "application/json", .cookie: "\(PinnedServer.cookieName)=\(PinnedServer.session)",
        ]
        for (name, value) in [
            (PinnedServer.cookieName, PinnedServer.session), ("X-Authenticate-Response", "header"),
        ] {
            guard let name = HTTPField.Name(name) else { throw BenchFailure("\(name) is no name of a field") }
            fields[name] = value
        }
        return try HTTPCall(.get, url: server.origin + AccountsReply.path, headerFields: fields)
    }
}
