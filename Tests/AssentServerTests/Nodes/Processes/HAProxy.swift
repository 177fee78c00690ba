#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentServer

/// HAProxy before several processes, as in `Examples/cluster`: before their gateways and before their servers it sends
/// each connection to the next one, and ends no TLS. It looks after nobody: a node that refuses a connection is one
/// that was killed, and the next one gets the connection.
final class HAProxy: Sendable {
    /// Where clients find the gateways.
    let gateway: String

    /// Where clients find the servers, as an origin.
    let server: String

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
        let (front, issuer, back) = (try ReservedPort(), try ReservedPort(), try ReservedPort())
        let gateways = try Self.lines("gateway", at: front, before: nodes.map { try #require($0.gateway) })
        let servers = try Self.lines("server", at: issuer, before: nodes.map(\.server))
        let file = directory + "/haproxy.cfg"
        let lines =
            [
                "global", "    maxconn 400", "defaults", "    timeout connect 10m",
                "    timeout client \(Patience.seconds)s", "    timeout server \(Patience.seconds)s", "    retries 3",
                "    option redispatch 1",
            ] + gateways + servers + [
                "listen statistics", "    mode http", "    bind 127.0.0.1:\(back.port)", "    stats enable",
                "    stats uri /",
            ]
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: file))
        ports = [front, issuer, back]
        server = "https://localhost:\(issuer.port)"
        gateway = "https://localhost:\(front.port)"
        statistics = "http://127.0.0.1:\(back.port)"
        process = try WatchedProcess.start([Self.program, "-db", "-f", file])
    }

    /// What the file says of one port, whose connections go to these addresses in turn.
    private static func lines(_ name: String, at port: ReservedPort, before urls: [String]) throws -> [String] {
        let nodes = try urls.enumerated().map { index, url -> String in
            let address = try Origin(url)
            return "    server node\(index) 127.0.0.1:\(address.port)"
        }
        return ["listen \(name)", "    mode tcp", "    balance roundrobin", "    bind 127.0.0.1:\(port.port)"] + nodes
    }

    private func waitUntilReady(by node: ServeProcess) async throws {
        while (try? await node.send("GET", statistics + "/;csv"))?.status != 200, !Task.isCancelled {
            try #require(process.isRunning, "\(process.errors)")
            await Task.yield()
        }
    }

    /// How many connections each node has had from it, at its gateway or at its server.
    func connections(of listener: String = "gateway", askedBy node: ServeProcess) async throws -> [Int] {
        let answer = try await node.send("GET", statistics + "/;csv")
        return answer.text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: ",", omittingEmptySubsequences: false)
            guard fields.count > 7, fields[0] == listener, fields[1].hasPrefix("node") else { return nil }
            return Int(fields[7])
        }
    }
}
#endif
