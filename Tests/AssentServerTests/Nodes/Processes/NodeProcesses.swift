#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import AsyncHTTPClient
import Foundation
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Processes of `assent serve` on one PostgreSQL database, as behind a load balancer, and one service behind them all.
final class NodeProcesses: Sendable {
    /// The PostgreSQL server, which is this world's own: a test may stop it.
    let database: PostgreSQLServer

    let upstream: TestUpstream

    private let directory: String
    private let node: FixtureNode
    private let editing: @Sendable (String) -> String
    private let client = ServeProcess.makeClient()
    private let nodes = Locked<[ServeProcess]>([])
    private let gateways = Locked<[GatewayProcess]>([])

    /// Runs `body` in a world of its own, and ends all processes; with a change to the file of all nodes.
    static func run(
        editing: @escaping @Sendable (String) -> String = { $0 }, _ body: (NodeProcesses) async throws -> Void
    ) async throws {
        let world = try await NodeProcesses(editing)
        do {
            try await body(world)
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private init(_ editing: @escaping @Sendable (String) -> String) async throws {
        self.editing = editing
        directory = try ServerFixture.makeDirectory()
        let server = try await offPool { try PostgreSQLServer() }
        database = server
        let configuration = try await offPool { try server.makeDatabase() }
        node = FixtureNode(database: configuration, keyFile: directory + "/key")
        upstream = try await TestUpstream.start()
    }

    /// Starts one more node. The first one makes Ana's password.
    func start() async throws -> ServeProcess {
        let place = directory + "/\(nodes.withLock(\.count))"
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let yaml = try node.adapted(editing(ServeProcess.yaml(upstream: upstream.port)))
        try Data(yaml.utf8).write(to: URL(fileURLWithPath: place + "/assent.yaml"))
        let serve = try await ServeProcess.start(directory: place, client: client)
        nodes.withLock { $0.append(serve) }
        return serve
    }

    /// Starts a gateway elsewhere that asks this node, before the same service.
    func gateway(before node: ServeProcess) async throws -> GatewayProcess {
        let index = try #require(nodes.withLock { $0.firstIndex { $0 === node } })
        let gateway = try await GatewayProcess.start(
            node.server, directory: directory + "/\(index)", upstream: upstream.port, client: client)
        gateways.withLock { $0.append(gateway) }
        return gateway
    }

    /// A static key of payload encryption, as an operator makes one.
    func payloadKey() async throws -> PayloadKeys.Listed {
        let text = try String(contentsOfFile: node.keyFile, encoding: .utf8)
        let bytes = try #require(Data(base64Encoded: text.trimmingCharacters(in: .whitespacesAndNewlines)))
        let database = try await openDatabase()
        let context = EngineContext(
            database: database, clock: SystemClock(), random: SystemRandom(),
            masterKey: try MasterKey(Secret(bytes: Array(bytes))),
            logger: Logger(label: "nodes", factory: { _ in SwiftLogNoOpLogHandler() }))
        let key = try await SealedClient.key(context)
        try await database.close()
        return key
    }

    /// The nodes' database, opened by this process beside them.
    func openDatabase() async throws -> any SQLDatabase {
        var configuration = node.database
        configuration.bePatient(seconds: Patience.seconds)
        return try await DatabaseLocation.postgresql(configuration).open(clock: SystemClock())
    }

    /// Whom the requests that have reached the service were to pay, one entry for each request.
    var payees: [String] {
        upstream.requests.compactMap { (try? JSONValue.parse($0.body))?["to"]?.string }
    }

    private func stop() async {
        try? await client.shutdown()
        for gateway in gateways.withLock({ $0 }) { await gateway.process.stop() }
        for node in nodes.withLock({ $0 }) { await node.process.stop() }
        await upstream.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }
}

extension ServeProcess {
    /// Waits until it says that it is ready, or that it is not.
    func wait(untilReady isReady: Bool) async throws {
        let url = server.dropLast("/am".count) + "/readyz"
        while try await send("GET", String(url)).status != (isReady ? 200 : 503), !Task.isCancelled {
            await Task.yield()
        }
    }

    /// How much memory it has, in MiB (`VmRSS` of proc(5)).
    var memory: Int {
        get throws {
            let status = try String(contentsOfFile: "/proc/\(process.identifier)/status", encoding: .utf8)
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
            return try #require(line.split(separator: " ").dropLast().last.flatMap { Int($0) }) / 1024
        }
    }
}
#endif
