import Assent
import AssentCore
import AssentServer
import AssentTransportNIO
import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix

/// A call through the SDK, against the same call by hand on NIO and NIOSSL: the same request on a kept connection to
/// the same server in another process, one at a time, in blocks that take turns. The SDK is once the whole façade with
/// a session that it attaches, and once only the cookie layer with the pinned transport.
struct CallBenchmark: Benchmark {
    static let name = "call"
    static let summary = "a call through the SDK against the same call by hand on NIO"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let path = "/accounts"
    private static let accept = "application/json"
    private static let cookie = (name: PinnedServer.cookieName, value: PinnedServer.session)
    private static let body = #"{"accounts":[{"id":"ES91","owner":"ana","balance":"1250.00","currency":"EUR"}]}"#
    private static let block = 25

    private var rounds: Int { setting.rounds(15, quick: 3) }
    private var blocks: Int { setting.rounds(40, quick: 8) }

    @concurrent
    func run() async throws -> [Comparison] {
        let directory = try setting.workspace.directory("call")
        let server = try await PinnedServer(AccountsReply.location, in: directory)
        defer { server.stop() }
        return try await measure(server)
    }

    private func measure(_ server: PinnedServer) async throws -> [Comparison] {
        // One loop for all, so that none has a thread more.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let transport = try server.transport(on: group)
        let hand = try await HandMadeClient.connect(
            port: server.port, certificatePEM: server.certificates.chainPEM, group: group)
        let whole = try await measureWhole(server, transport: transport, hand: hand)
        let layer = try await measureLayer(port: server.port, transport: transport, hand: hand)
        await hand.close()
        await transport.shutdown()
        try await group.shutdownGracefully()
        return [whole, layer]
    }

    private func measureWhole(
        _ server: PinnedServer, transport: NIOTransport, hand: HandMadeClient
    ) async throws -> Comparison {
        let assent = try await server.assent(over: transport)
        let url = server.origin + AccountsReply.path
        let call = try await compare(
            "Assent.send / by hand on NIO, latency", port: server.port, hand: hand,
            fields: [Self.cookie.name: Self.cookie.value, "X-Authenticate-Response": "header"]
        ) {
            let reply = try await assent.send(.get(url, headers: [.accept: Self.accept]))
            guard reply.status == 200 else { throw BenchFailure("status \(reply.status)") }
            return try await reply.body.collect(upTo: 1 << 20)
        }
        return call
    }

    private func measureLayer(port: Int, transport: NIOTransport, hand: HandMadeClient) async throws -> Comparison {
        let origin = try Origin("https://localhost:\(port)")
        let cookies = CookieStore(clock: SystemClock())
        await cookies.store(["\(Self.cookie.name)=\(Self.cookie.value); Secure; Path=/"], from: origin, path: "/")
        let pipeline = HTTPPipeline(transport, layers: [CookieMiddleware(store: cookies, origins: [origin])])
        return try await compare(
            "cookie layer and transport / by hand on NIO, latency", port: port, hand: hand, fields: [:]
        ) {
            let request = HTTPRequest(
                method: .get, scheme: "https", authority: "localhost:\(port)", path: AccountsReply.path,
                headerFields: [.accept: Self.accept])
            let reply = try await pipeline.send(HTTPCall(request))
            guard reply.status == 200 else { throw BenchFailure("status \(reply.status)") }
            return try await reply.body.collect(upTo: 1 << 20)
        }
    }

    /// Measures `call` against the hand-made client, which sends `fields` besides what every call has.
    private func compare(
        _ title: String, port: Int, hand: HandMadeClient, fields: KeyValuePairs<String, String>,
        _ call: () async throws -> [UInt8]
    ) async throws -> Comparison {
        let byHand = { try await Self.call(hand, port: port, fields: fields) }
        var comparison = Comparison(benchmark: Self.name, title: title, unit: "s", aim: .atMost(1.1))
        for round in 0...rounds {
            var subject: [Double] = []
            var baseline: [Double] = []
            for index in 0..<blocks {
                if index.isMultiple(of: 2) {
                    try await Self.time(&subject, call)
                    try await Self.time(&baseline, byHand)
                } else {
                    try await Self.time(&baseline, byHand)
                    try await Self.time(&subject, call)
                }
            }
            // The first round warms both up.
            guard round > 0 else { continue }
            comparison.add(subject: Figure.median(subject), baseline: Figure.median(baseline), of: rounds)
        }
        return comparison
    }

    private static func time(_ durations: inout [Double], _ call: () async throws -> [UInt8]) async throws {
        let clock = ContinuousClock()
        let expected = Array(body.utf8)
        for _ in 0..<block {
            let start = clock.now
            let reply = try await call()
            durations.append((clock.now - start).inSeconds)
            guard reply == expected else { throw BenchFailure("an unexpected reply") }
        }
    }

    private static func call(
        _ client: HandMadeClient, port: Int, fields: KeyValuePairs<String, String>
    ) async throws -> [UInt8] {
        var headers: HTTPHeaders = [
            "Host": "localhost:\(port)", "Accept": accept, "Cookie": "\(cookie.name)=\(cookie.value)",
        ]
        for (name, value) in fields { headers.add(name: name, value: value) }
        let reply = try await client.send(
            HTTPRequestHead(version: .http1_1, method: .GET, uri: path, headers: headers))
        guard reply.head.status == .ok else { throw BenchFailure("status \(reply.head.status.code)") }
        return reply.body
    }
}
