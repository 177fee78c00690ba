import AssentPeers
import Foundation
import NIOCore
import NIOPosix

/// Messages there and back on WebSockets through the gateway, against nginx with `proxy_pass`: both with TLS and the
/// same certificate in front, and the same service behind. Processor time per message of the process in the middle.
///
/// The gateway has decided at the handshake, which is not measured; it looks the callers up again every thirty seconds.
/// nginx asks nobody.
struct WebSocketBenchmark: Benchmark {
    static let name = "websocket"
    static let summary = "WebSockets through the gateway against nginx, as processor time"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let connections = 16
    private static let path = "/live"
    private static let message = (0..<512).map { UInt8(truncatingIfNeeded: $0) }

    private var rounds: Int { setting.rounds(7, quick: 2) }
    private var messages: Int { setting.rounds(16_000, quick: 3_200) }

    /// A way to the service.
    private struct Side {
        let server: ChildProcess
        let clients: [EchoClient]
    }

    @concurrent
    func run() async throws -> [Comparison] {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let service = try await EchoPeer.start(on: group)
        guard let servicePort = service.localAddress?.port, let port = try await Nginx.freePorts(1).first else {
            throw BenchFailure("no free ports")
        }
        let directory = try setting.workspace.directory("websocket")
        let gateway = try BenchServer(
            in: directory, upstream: "http://127.0.0.1:\(servicePort)", hasWebSockets: true)
        defer { gateway.stop() }
        let front = try await Nginx.start(
            """
            server {
                listen 127.0.0.1:\(port) ssl;
                \(Nginx.tls(chain: gateway.chainFile, key: directory + "/data/server.key"))
                location / {
                    proxy_http_version 1.1;
                    proxy_set_header Upgrade $http_upgrade;
                    proxy_set_header Connection "upgrade";
                    proxy_pass http://127.0.0.1:\(servicePort);
                }
            }
            """, in: try setting.workspace.directory("websocket-front"), ports: [port])
        defer { front.stop() }

        let certificate = try String(contentsOfFile: gateway.chainFile, encoding: .utf8)
        let fields = [("Authorization", "Bearer \(gateway.accessToken)")]
        func side(_ server: ChildProcess, port: Int) async throws -> Side {
            var clients: [EchoClient] = []
            for _ in 0..<Self.connections {
                let client = try await EchoClient.connect(port: port, certificatePEM: certificate, group: group)
                try await client.open(Self.path, fields: fields)
                clients.append(client)
            }
            return Side(server: server, clients: clients)
        }
        let comparison = try await measure(
            subject: try await side(gateway.process, port: gateway.gatewayPort),
            baseline: try await side(front, port: port))
        try await service.close()
        try await group.shutdownGracefully()
        return [comparison]
    }

    private func measure(subject: Side, baseline: Side) async throws -> Comparison {
        for side in [subject, baseline] { _ = try await load(side, messages: messages / 4) }
        var comparison = Comparison(
            benchmark: Self.name, title: "WebSockets through the gateway / through nginx, processor time",
            unit: "s per message", aim: .atMost(2))
        for round in 1...rounds {
            let isSwapped = round.isMultiple(of: 2)
            let one = try await load(isSwapped ? baseline : subject, messages: messages)
            let other = try await load(isSwapped ? subject : baseline, messages: messages)
            comparison.add(subject: isSwapped ? other : one, baseline: isSwapped ? one : other, of: rounds)
        }
        for client in subject.clients + baseline.clients { await client.close() }
        return comparison
    }

    /// Sends messages on all connections at once; returns the processor time of the process in the middle for each.
    private func load(_ side: Side, messages: Int) async throws -> Double {
        let each = messages / side.clients.count
        let before = try side.server.processorTime
        try await withThrowingTaskGroup { group in
            for client in side.clients {
                group.addTask { for _ in 0..<each { try await client.echo(Self.message) } }
            }
            try await group.waitForAll()
        }
        return (try side.server.processorTime - before) / Double(each * side.clients.count)
    }
}
