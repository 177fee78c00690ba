#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentServer

/// HAProxy before the gateways of several processes, as in `Examples/cluster`: it sends each connection to the next one
/// and ends no TLS. It looks after nobody: a node that refuses a connection is one that was killed, and the next one
/// gets the connection.
final class HAProxy: Sendable {
    /// Where clients find the gateways.
    let gateway: String

    private let process: WatchedProcess
    private let statistics: String
    private let ports: [ReservedPort]

    private static let program = "/usr/sbin/haproxy"

    /// Runs `body` beside one, and ends it.
    static func run(before nodes: [ServeProcess], _ body: (HAProxy) async throws -> Void) async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let haproxy = try HAProxy(nodes, directory: directory)
        do {
            try await haproxy.waitUntilReady(by: try #require(nodes.first))
            try await body(haproxy)
        } catch {
            await haproxy.process.stop()
            throw error
        }
        await haproxy.process.stop()
    }

    private init(_ nodes: [ServeProcess], directory: String) throws {
        try #require(
            FileManager.default.isExecutableFile(atPath: Self.program), "run Scripts/setup.sh: it installs HAProxy")
        let (front, back) = (try ReservedPort(), try ReservedPort())
        let servers = try nodes.enumerated().map { index, node -> String in
            let address = try Origin(try #require(node.gateway))
            return "    server node\(index) 127.0.0.1:\(address.port)"
        }
        let file = directory + "/haproxy.cfg"
        let lines =
            [
                "global", "    maxconn 400", "defaults", "    timeout connect 10m",
                "    timeout client \(Patience.seconds)s", "    timeout server \(Patience.seconds)s", "    retries 3",
                "    option redispatch 1", "listen gateway", "    mode tcp", "    balance roundrobin",
                "    bind 127.0.0.1:\(front.port)",
            ] + servers + [
                "listen statistics", "    mode http", "    bind 127.0.0.1:\(back.port)", "    stats enable",
                "    stats uri /",
            ]
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: file))
        ports = [front, back]
        gateway = "https://localhost:\(front.port)"
        statistics = "http://127.0.0.1:\(back.port)"
        process = try WatchedProcess.start([Self.program, "-db", "-f", file])
    }

    private func waitUntilReady(by node: ServeProcess) async throws {
        while (try? await node.send("GET", statistics + "/;csv"))?.status != 200, !Task.isCancelled {
            try #require(process.isRunning, "\(process.errors)")
            await Task.yield()
        }
    }

    /// How many connections each node has had from it.
    func connections(askedBy node: ServeProcess) async throws -> [Int] {
        let answer = try await node.send("GET", statistics + "/;csv")
        return answer.text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: ",", omittingEmptySubsequences: false)
            guard fields.count > 7, fields[0] == "gateway", fields[1].hasPrefix("node") else { return nil }
            return Int(fields[7])
        }
    }
}
#endif
