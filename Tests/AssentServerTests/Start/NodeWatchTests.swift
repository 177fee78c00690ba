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

@Suite("What a node looks at every minute", .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct NodeWatchTests {
    /// A node on a PostgreSQL database.
    private struct Node {
        let location: DatabaseLocation
        let context: EngineContext
        let clock = ManualClock(Date())
        let log = InMemoryLogHandler()

        /// With `served`, the time of the database server stands still: however long a look takes, the clocks differ by
        /// what the test says.
        init(_ configuration: PostgreSQLConfiguration, served: Int64? = nil) async throws {
            location = .postgresql(configuration)
            var database = try await location.open(clock: clock)
            if let served { database = TimedDatabase(base: database, served: served) }
            context = EngineContext(
                database: database, clock: clock, random: SystemRandom(),
                masterKey: try MasterKey(Secret(bytes: SystemRandom().bytes(MasterKey.byteCount))), node: "a",
                logger: Logger(label: "test") { [log] _ in log })
        }

        func watch(_ hold: any NodeHold, limit: Int64? = 30) -> NodeWatch {
            NodeWatch(context, location, hold, clockLimit: limit.map { .seconds($0) })
        }

        /// The reason that `/readyz` gives for not being ready.
        func reason(_ watch: NodeWatch) async -> String? {
            let health = HealthRoutes(database: context.database, passwords: Passwords(context), watch: watch)
            return await health.readiness().body["reason"]?.string
        }

        var complaints: [Logger.Level] { log.entries.map(\.level).filter { $0 >= .notice } }
    }

    private static func database() async throws -> PostgreSQLConfiguration {
        let server = try await PostgreSQLServer.shared()
        var configuration = try await offPool { try server.makeDatabase() }
        configuration.connections = 2
        configuration.bePatient(seconds: Patience.seconds)
        // Who is to be refused an id need not ask for long, and the others ask once it is free.
        configuration.holdLimit = 100
        return configuration
    }

    /// Waits until the server has noticed that the process that had a node's id has ended.
    private static func untilFree(_ configuration: PostgreSQLConfiguration) async throws {
        let server = try await PostgreSQLServer.shared()
        let held = """
            SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        try await Patience.wait(until: "no id is held") {
            try await server.offPool { try $0.sql(held, in: configuration.database) } == "0"
        }
    }

    @Test("A clock that is off is logged from 5 seconds on, and from the limit on the node is not ready")
    func clocks() async throws {
        let served = ManualClock().epochMilliseconds
        let node = try await Node(try await Self.database(), served: served)
        let watch = node.watch(try #require(try await node.location.hold(node: "a")))
        for (ahead, levels, isReady) in [
            (0, [], true), (12, [.warning], true), (14, [], true), (60, [.error], false), (61, [], false),
            (15, [.warning], true), (0, [.notice], true), (-60, [.error], false), (0, [.notice], true),
        ] as [(Double, [Logger.Level], Bool)] {
            let before = node.complaints.count
            node.clock.advance(by: Double(served - node.clock.epochMilliseconds) / 1000 + ahead)
            await watch.look()
            #expect(Array(node.complaints.dropFirst(before)) == levels, "\(ahead)")
            #expect(await node.reason(watch) == (isReady ? nil : "clock"), "\(ahead)")
        }
        watch.end()
        try await node.context.database.close()
    }

    @Test("A node whose clock differs by the limit is not ready, and by a millisecond less it is")
    func limit() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let location = DatabaseLocation.sqlite(path: directory + "/assent.sqlite")
        let clock = ManualClock()
        let served = clock.epochMilliseconds
        let database = TimedDatabase(base: try await location.open(clock: clock), served: served)
        let context = EngineContext(
            database: database, clock: clock, random: SystemRandom(),
            masterKey: try MasterKey(Secret(bytes: SystemRandom().bytes(MasterKey.byteCount))), node: "a",
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let hold = try #require(try await location.hold(node: "a"))
        let watch = NodeWatch(context, location, hold, clockLimit: .seconds(30))
        for (ahead, isReady) in [
            (29_999, true), (30_000, false), (0, true), (-29_999, true), (-30_000, false),
        ] as [(Int64, Bool)] {
            clock.advance(by: Double(served + ahead - clock.epochMilliseconds) / 1000)
            await watch.look()
            #expect((watch.reason == nil) == isReady, "\(ahead) ms")
        }
        watch.end()
        try await database.close()
    }

    @Test("Changes that a fail-over has lost are in the audit log, once, when the node uses the server all the same")
    func loss() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var configuration = try await Self.database()
        let file = directory + "/database-history"
        configuration.node = .init(id: "a", memory: NodeMemoryFile(path: file))
        let first = try await Node(configuration)
        let row = try await first.context.database.run(.read("SELECT token FROM history")).first
        let token = try #require(try row?.text("token"))
        // What a node finds after its primary was replaced by a standby that lacks its latest mark.
        _ = try await first.context.database.run(SQLStatement("UPDATE history SET timeline = '00000000'"))
        try await first.context.database.close()
        try Data(#"{"generation":1,"token":"\#(token)","mark":99}"#.utf8).write(to: URL(filePath: file))
        let second = try await Node(configuration)
        #expect(second.context.database.notices.lossyGeneration == 2)
        let watch = second.watch(try #require(try await second.location.hold(node: "a")))
        for _ in 0..<2 { try await watch.recordLoss() }
        let records = try await AuditLog(second.context).newest(5)
        #expect(records.map(\.event) == [.databaseLoss])
        #expect(records.first?.detail["generation"]?.integer == 2)
        watch.end()
        try await second.context.database.close()
    }

    @Test("A start with the node id of another server is refused, until that one has ended")
    func copiedID() async throws {
        let configuration = try await Self.database()
        let location = DatabaseLocation.postgresql(configuration)
        let directory = DataDirectory(unchecked: "/data")
        let first = try await NodeWatch.hold("a", location, in: directory)
        let error = await #expect(throws: ConfigurationError.self) {
            try await NodeWatch.hold("a", location, in: directory)
        }
        #expect(error?.file == "/data/node" && error?.message.contains("has this node id") == true)
        try await NodeWatch.hold("b", location, in: directory).release()
        first.release()
        try await Self.untilFree(configuration)
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
            try await ServerFixture(kept: directory, node: node, configuring: { $0.postgreSQL?.holdLimit = 100 })
        }
        #expect(error?.message.contains("has this node id") == true)
        await first.stop()
        await (try ServerFixture(kept: directory, node: node)).stop()
    }

    @Test("A copied data directory whose id was removed is another node, and its database is not taken for a copy")
    func removedID() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let node = FixtureNode(database: try await Self.database(), keyFile: directory + "/key")
        let first = try await ServerFixture(
            kept: directory, node: node, configuring: { $0.postgreSQL?.watchInterval = 20 })
        let memory = directory + "/data/database-history"
        while try String(contentsOfFile: memory, encoding: .utf8).contains(#""mark":0"#) { await Task.yield() }
        await first.stop()
        try FileManager.default.removeItem(atPath: directory + "/data/node")
        await (try ServerFixture(kept: directory, node: node)).stop()
    }

    @Test("An id whose connection was lost is taken again; when another server was faster, the node is not ready")
    func lostConnection() async throws {
        let configuration = try await Self.database()
        let node = try await Node(configuration)
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
            try await Self.untilFree(configuration)
        }
        try await end(hold)
        await watch.look()
        #expect(watch.reason == nil && node.complaints.isEmpty)
        let second = try await node.location.hold(node: "a")
        #expect(second == nil)
        watch.end()
        try await Self.untilFree(configuration)
        let other = try #require(try await node.location.hold(node: "a"))
        await watch.look()
        #expect(await node.reason(watch) == "nodeIDTaken")
        #expect(node.complaints == [.error])
        other.release()
        try await Self.untilFree(configuration)
        await watch.look()
        #expect(watch.reason == nil)
        watch.end()
        try await node.context.database.close()
    }
}

/// A database whose server's clock stands still.
private struct TimedDatabase: SQLDatabase {
    let base: any SQLDatabase
    /// What that clock shows, in milliseconds since 1970.
    let served: Int64

    func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await base.run(statement) }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] { try await base.run(statements) }

    func checkHealth() async throws { try await base.checkHealth() }

    func time() async throws -> Int64? { served }

    func close() async throws { try await base.close() }
}
#endif
