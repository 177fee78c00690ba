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
        let (front, issuer, back) = (try ReservedPort(), try ReservedPort(), try ReservedPort())
        var file = HAProxyFile(defaults: "retries 3", "option redispatch 1")
        file.listen("gateway", at: front, before: try nodes.map { try Origin(try #require($0.gateway)).port })
        file.listen("server", at: issuer, before: try nodes.map { try Origin($0.server).port })
        file.addStatistics(at: back)
        ports = [front, issuer, back]
        server = "https://localhost:\(issuer.port)"
        gateway = "https://localhost:\(front.port)"
        statistics = "http://127.0.0.1:\(back.port)"
        process = try WatchedProcess.start(file.write(in: directory))
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
