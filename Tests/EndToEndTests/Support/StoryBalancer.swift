#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentDemo

/// HAProxy before two nodes of a story's server, as in `Examples/cluster`: before their servers and before their
/// gateways it sends each connection to the next one, and ends no TLS. Between it and each listener is a stretch of
/// network that counts the connections.
final class StoryBalancer: Sendable {
    enum Listener: String, CaseIterable, Sendable { case server, gateway }

    /// The stretch before one listener of a node, whose port becomes known when the node has started.
    private struct Stretch: Sendable {
        let relay: Relay
        let port: Locked<Int?>
        let connections: Locked<Int>

        static func start() async throws -> Stretch {
            let port = Locked<Int?>(nil)
            let connections = Locked(0)
            let relay = try await Relay.start(to: {
                connections.withLock { $0 += 1 }
                return port.withLock { $0 }
            })
            return Stretch(relay: relay, port: port, connections: connections)
        }
    }

    private let process: SpawnedProcess
    /// Ends it when this process ends, however that happens.
    private let guardian: SpawnedProcess
    private let ports: [Listener: ReservedPort]
    private let stretches: [Listener: [Stretch]]

    /// Starts one, whose file is in `directory`.
    init(in directory: String) async throws {
        var ports: [Listener: ReservedPort] = [:]
        var stretches: [Listener: [Stretch]] = [:]
        var file = HAProxyFile()
        for listener in Listener.allCases {
            let port = try ReservedPort()
            let both = [try await Stretch.start(), try await Stretch.start()]
            file.listen(listener.rawValue, at: port, before: both.map(\.relay.port))
            ports[listener] = port
            stretches[listener] = both
        }
        (self.ports, self.stretches) = (ports, stretches)
        let words = try file.write(in: directory)
        let process = try SpawnedProcess(try #require(words.first), Array(words.dropFirst()))
        self.process = process
        guardian = try process.guardian()
    }

    var isRunning: Bool { process.isRunning }

    /// Where clients find a listener of the nodes.
    func port(of listener: Listener) -> Int { ports[listener]?.port ?? 0 }

    /// Says where a listener of a node is, 0 or 1.
    func lead(to port: Int?, _ listener: Listener, of node: Int) {
        guard let both = stretches[listener], both.indices.contains(node) else { return }
        both[node].port.withLock { $0 = port }
    }

    /// How many connections each node has had there since ``clear()``.
    func connections(of listener: Listener) -> [Int] {
        (stretches[listener] ?? []).map { stretch in stretch.connections.withLock { $0 } }
    }

    /// Begins to count anew.
    func clear() {
        for stretch in stretches.values.joined() { stretch.connections.withLock { $0 = 0 } }
    }

    func stop() async {
        process.signal(SIGKILL)
        _ = await process.ended()
        // Its number may soon be somebody else's.
        guardian.signal(SIGKILL)
        _ = await guardian.ended()
        for stretch in stretches.values.joined() { try? await stretch.relay.stop() }
    }
}
#endif
