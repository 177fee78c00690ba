#if PostgreSQL && os(Linux)
import AssentConfiguration
import AssentCore
import AssentStore
import AssentTesting
import Foundation
import InMemoryLogging
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What a node looks at every minute")
struct NodeWatchTests {
    /// A node on a PostgreSQL database.
    private struct Node {
        let location: DatabaseLocation
        let context: EngineContext
        let clock = ManualClock(Date())
        let log = InMemoryLogHandler()

        init(_ configuration: PostgreSQLConfiguration) async throws {
            location = .postgresql(configuration)
            context = EngineContext(
                database: try await location.open(clock: clock), clock: clock, random: SystemRandom(),
                masterKey: try MasterKey(Secret(bytes: SystemRandom().bytes(MasterKey.byteCount))), node: "a",
                logger: Logger(label: "test") { [log] _ in log })
        }

        func watch(_ hold: any NodeHold, limit: Int64? = 30) -> NodeWatch {
            NodeWatch(context, location, hold, clockLimit: limit.map { .seconds($0) })
        }

        var complaints: [Logger.Level] { log.entries.map(\.level).filter { $0 >= .notice } }
    }

    private static func database() async throws -> PostgreSQLConfiguration {
        let server = try await PostgreSQLServer.shared()
        var configuration = try await offPool { try server.makeDatabase() }
        configuration.connections = 2
        return configuration
    }

    @Test("A clock that is off is logged from 5 seconds on, and from the limit on the node is not ready")
    func clocks() async throws {
        let node = try await Node(try await Self.database())
        let watch = node.watch(try #require(try await node.location.hold(node: "a")))
        for (ahead, levels, isReady) in [
            (0, [], true), (12, [.warning], true), (14, [], true), (60, [.error], false), (61, [], false),
            (15, [.warning], true), (0, [.notice], true), (-60, [.error], false), (0, [.notice], true),
        ] as [(Double, [Logger.Level], Bool)] {
            let before = node.complaints.count
            node.clock.advance(by: Date().timeIntervalSince(node.clock.now) + ahead)
            await watch.look()
            #expect(Array(node.complaints.dropFirst(before)) == levels, "\(ahead)")
            #expect((watch.reason == nil) == isReady, "\(ahead)")
        }
        watch.end()
        try await node.context.database.close()
    }

    @Test("A start with the node id of another server is refused, until that one has ended")
    func copiedID() async throws {
        let location = DatabaseLocation.postgresql(try await Self.database())
        let directory = DataDirectory(unchecked: "/data")
        let first = try await NodeWatch.hold("a", location, in: directory)
        let error = await #expect(throws: ConfigurationError.self) {
            try await NodeWatch.hold("a", location, in: directory)
        }
        #expect(error?.file == "/data/node" && error?.message.contains("has this node id") == true)
        try await NodeWatch.hold("b", location, in: directory).release()
        first.release()
        try await NodeWatch.hold("a", location, in: directory).release()
    }

    @Test("A server with a copied data directory does not start beside the first one")
    func copiedDirectory() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let node = FixtureNode(database: try await Self.database(), keyFile: directory + "/key")
        let first = try await ServerFixture(node: node)
        let data = URL(fileURLWithPath: first.directory).appending(path: "data/node").path
        try FileManager.default.createDirectory(
            atPath: directory + "/data", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try PrivateFile.create(directory + "/data/node", try PrivateFile.read(data))
        let error = await #expect(throws: ConfigurationError.self) {
            try await ServerFixture(kept: directory, node: node)
        }
        #expect(error?.message.contains("has this node id") == true)
        await first.stop()
        await (try ServerFixture(kept: directory, node: node)).stop()
    }

    @Test("An id whose connection was lost is taken again; when another server was faster, the node is not ready")
    func lostConnection() async throws {
        let node = try await Node(try await Self.database())
        let hold = try #require(try await node.location.hold(node: "a"))
        let watch = node.watch(hold, limit: nil)
        func end(_ hold: any NodeHold) async throws {
            _ = try await node.context.database.run(
                .read(
                    """
                    SELECT count(pg_terminate_backend(pid)) AS ended FROM pg_locks
                    WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
                        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                    """))
            while hold.isHeld { await Task.yield() }
        }
        try await end(hold)
        await watch.look()
        #expect(watch.reason == nil && node.complaints.isEmpty)
        let second = try await node.location.hold(node: "a")
        #expect(second == nil)
        watch.end()
        let other = try #require(try await node.location.hold(node: "a"))
        await watch.look()
        #expect(watch.reason?.contains("node's id") == true && node.complaints == [.error])
        other.release()
        await watch.look()
        #expect(watch.reason == nil)
        watch.end()
        try await node.context.database.close()
    }
}
#endif
