import AssentCore
import AssentPeers
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix

/// A GET with an access token through the gateway, against nginx with `proxy_pass` and `auth_request`, both with TLS
/// and the same certificate in front and the same nginx behind: processor time per request of all server processes but
/// the one behind, which is the same for both.
///
/// The gateway verifies the token's signature, looks up its grant, user and session in the database, and evaluates the
/// policies. nginx asks a second nginx server, in the same process, which compares the token with the one it knows: the
/// least that can be called a check.
struct GatewayBenchmark: Benchmark {
    static let name = "gateway"
    static let summary = "the gateway against nginx with auth_request, as processor time"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let connections = 16

    /// A way to the protected service.
    private struct Side {
        let server: ChildProcess
        let clients: [HandMadeClient]
        let head: HTTPRequestHead
    }

    @concurrent
    func run() async throws -> [Comparison] {
        let ports = try await Nginx.freePorts(3)
        guard ports.count == 3 else { throw BenchFailure("no free ports") }
        let upstream = try await Nginx.start(
            """
            server { listen 127.0.0.1:\(ports[0]); \(AccountsReply.location) }
            """, in: try setting.workspace.directory("upstream"), ports: [ports[0]])
        defer { upstream.stop() }

        let directory = try setting.workspace.directory("gateway")
        let gateway = try BenchServer(in: directory, upstream: "http://127.0.0.1:\(ports[0])")
        defer { gateway.stop() }
        let token = gateway.accessToken

        let chain = gateway.chainFile
        let front = try await Nginx.start(
            Self.frontLines(
                port: ports[1], checkPort: ports[2], upstreamPort: ports[0], token: token,
                tls: Nginx.tls(chain: chain, key: directory + "/data/server.key")),
            in: try setting.workspace.directory("front"), ports: [ports[1], ports[2]])
        defer { front.stop() }

        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let subject = try await side(gateway, on: group)
        var comparison = Comparison(
            benchmark: Self.name, title: "gateway / nginx proxy_pass + auth_request, processor time",
            unit: "s per request", aim: .atMost(2.5))
        let baseline = try await side(front, port: ports[1], chain: chain, token: token, on: group)
        try await measure(
            &comparison, subject, baseline, rounds: setting.rounds(7, quick: 2),
            requests: setting.rounds(8_000, quick: 2_000))
        var comparisons = [comparison]
        if let before = setting.before {
            let earlier = try BenchServer(
                in: try setting.workspace.directory("before"), upstream: "http://127.0.0.1:\(ports[0])",
                program: before)
            defer { earlier.stop() }
            var comparison = Comparison(
                benchmark: Self.name, title: "gateway / the same of an earlier build, processor time",
                unit: "s per request", aim: .atMost(1.02))
            let baseline = try await side(earlier, on: group)
            // Short turns: what else the machine does would else hit one side alone.
            try await measure(
                &comparison, subject, baseline, rounds: setting.rounds(51, quick: 5), requests: 2_000)
            comparisons.append(comparison)
            for client in baseline.clients { await client.close() }
        }
        for client in subject.clients + baseline.clients { await client.close() }
        try await group.shutdownGracefully()
        return comparisons
    }

    private func side(_ server: BenchServer, on group: any EventLoopGroup) async throws -> Side {
        try await side(
            server.process, port: server.gatewayPort, chain: server.chainFile, token: server.accessToken, on: group)
    }

    private func side(
        _ server: ChildProcess, port: Int, chain: String, token: String, on group: any EventLoopGroup
    ) async throws -> Side {
        let certificate = try String(contentsOfFile: chain, encoding: .utf8)
        var clients: [HandMadeClient] = []
        for _ in 0..<Self.connections {
            clients.append(try await HandMadeClient.connect(port: port, certificatePEM: certificate, group: group))
        }
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET, uri: AccountsReply.path,
            headers: [
                "Host": "localhost:\(port)", "Accept": "application/json", "Authorization": "Bearer \(token)",
            ])
        return Side(server: server, clients: clients, head: head)
    }

    private func measure(
        _ comparison: inout Comparison, _ subject: Side, _ baseline: Side, rounds: Int, requests: Int
    ) async throws {
        try await refuses(baseline)
        try await refuses(subject)
        // The server may still be on its way to its first answer.
        for side in [subject, baseline] { _ = try await load(side, requests: 2_000) }
        for round in 1...rounds {
            let (first, second) = round.isMultiple(of: 2) ? (baseline, subject) : (subject, baseline)
            let one = try await load(first, requests: requests)
            let other = try await load(second, requests: requests)
            comparison.add(
                subject: round.isMultiple(of: 2) ? other : one, baseline: round.isMultiple(of: 2) ? one : other,
                of: rounds)
        }
    }

    /// A side that lets everybody through does not do the work that is compared. Waits until the server answers at all.
    private func refuses(_ side: Side) async throws {
        var head = side.head
        head.headers.replaceOrAdd(name: "Authorization", value: "Bearer nonsense")
        guard let client = side.clients.first else { return }
        for _ in 0..<50 {
            switch try await client.send(head).head.status {
            case .unauthorized: return
            case .serviceUnavailable: try await Task.sleep(for: .milliseconds(100))
            case let status: throw BenchFailure("a wrong token is answered with \(status.code)")
            }
        }
        throw BenchFailure("the server does not answer")
    }

    /// Sends requests on all connections at once; returns the processor time of the server for each, in seconds.
    private func load(_ side: Side, requests: Int) async throws -> Double {
        let expected = Array(AccountsReply.body.utf8)
        let each = requests / side.clients.count
        let before = try side.server.processorTime
        try await withThrowingTaskGroup { group in
            for client in side.clients {
                group.addTask { [head = side.head] in
                    for _ in 0..<each {
                        let reply = try await client.send(head)
                        guard reply.head.status == .ok, reply.body == expected else {
                            throw BenchFailure("an unexpected reply: \(reply.head.status.code)")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        return (try side.server.processorTime - before) / Double(each * side.clients.count)
    }

    private static func frontLines(
        port: Int, checkPort: Int, upstreamPort: Int, token: String, tls: String
    ) -> String {
        """
        map_hash_bucket_size 4096;
        map $http_authorization $is_known { default 0; "Bearer \(token)" 1; }
        proxy_http_version 1.1;
        upstream service { server 127.0.0.1:\(upstreamPort); keepalive 32; keepalive_requests 10000000; }
        upstream check { server 127.0.0.1:\(checkPort); keepalive 32; keepalive_requests 10000000; }
        server {
            listen 127.0.0.1:\(checkPort);
            location / {
                if ($is_known = 0) { return 401; }
                add_header X-Remote-User ana;
                return 204;
            }
        }
        server {
            listen 127.0.0.1:\(port) ssl; \(tls)
            location / {
                auth_request /_check;
                auth_request_set $user $upstream_http_x_remote_user;
                proxy_set_header X-Remote-User $user;
                proxy_set_header Authorization "";
                proxy_set_header Connection "";
                proxy_pass http://service;
            }
            location = /_check {
                internal;
                proxy_pass_request_body off;
                proxy_set_header Content-Length "";
                proxy_set_header Connection "";
                proxy_pass http://check;
            }
        }
        """
    }
}
