#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

/// A node on a promoted standby, while the old primary is back and first in the list.
@Suite("PostgreSQL: what programs beside the nodes do when the old primary is first in the list", .serialized)
struct PostgreSQLOldPrimaryTests {
    /// The servers, on which one row was written before the fail-over and one after it, and a node.
    private struct Bench {
        /// Those that a test has given back, by whether the old primary is a standby.
        private static let idle = Locked<[Bool: PostgreSQLPair]>([:])

        let pair: PostgreSQLPair
        let node: any SQLDatabase
        private let isStandby: Bool

        init(isStandby: Bool) async throws {
            self.isStandby = isStandby
            if let idle = Self.idle.withLock({ $0.removeValue(forKey: isStandby) }) {
                pair = idle
            } else {
                pair = try await Self.promoted(isStandby: isStandby)
            }
            var configuration = pair.configuration
            configuration.bePatient(seconds: Patience.seconds)
            // So that the node has no connection to the server that others have first in their lists.
            configuration.hosts.removeFirst()
            node = try await DatabaseLocation.postgresql(configuration).open(
                schema: SQLDatabaseContract.schema, clock: SystemClock())
        }

        private static func promoted(isStandby: Bool) async throws -> PostgreSQLPair {
            let pair = try await PostgreSQLPair()
            // No commit waits for a standby, and a slow disk is waited for.
            var configuration = pair.configuration
            configuration.commitLimit = 60_000
            let node = try await DatabaseLocation.postgresql(configuration).open(
                schema: SQLDatabaseContract.schema, clock: SystemClock())
            _ = try await node.run(insertNote("before"))
            try await pair.waitUntil("replay_lsn = pg_current_wal_lsn()")
            try await pair.failOver()
            try await PostgreSQLTroubleTests.untilItWrites(node)
            _ = try await node.run(insertNote("after"))
            try await node.close()
            try await pair.primary.offPool { server in
                if isStandby { try server.write("", "standby.signal") }
                try server.start()
            }
            return pair
        }

        /// A database of the pair, with one of the servers first.
        func location(first: Int = 0) -> DatabaseLocation {
            var configuration = pair.configuration
            if first == 1 { configuration.hosts.reverse() }
            return .postgresql(configuration)
        }

        /// Lets another test have the servers, which run and hold what they held, when nobody is connected any more. A
        /// test that fails before this has them for itself.
        func giveBack() async throws {
            while try await location().connectionsOfServers() > 0 { await Task.yield() }
            Self.idle.withLock { $0[isStandby] = pair }
        }
    }

    @Test(
        "Connections of nodes are counted at all servers, so that nothing runs beside them", arguments: [false, true])
    func connections(isStandby: Bool) async throws {
        let bench = try await Bench(isStandby: isStandby)
        let pair = bench.pair
        #expect(try await bench.location().connectionsOfServers() > 0)
        try await bench.node.close()
        // A server's processes end a moment after their connections.
        try await Patience.wait(until: "no server has a connection of a node") {
            try await bench.location().connectionsOfServers() == 0
        }
        try await pair.primary.offPool { try $0.stop() }
        try await pair.standby.offPool { try $0.stop() }
        await #expect(throws: StoreError(.unavailable, "")) { try await bench.location().connectionsOfServers() }
        try await pair.standby.offPool { try $0.start() }
        try await pair.primary.offPool { try $0.start() }
        try await bench.giveBack()
    }

    @Test("A backup is one of the server that has everything", arguments: [false, true])
    func backup(isStandby: Bool) async throws {
        let bench = try await Bench(isStandby: isStandby)
        let file = FileManager.default.temporaryDirectory.appending(path: "dump-\(UUID().uuidString)")
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try await bench.location().backUp(to: file.path)
        let words = ["pg_restore", "--data-only", "--table=notes", "--file=-", file.path]
        let finished = try await offPool {
            try FinishedProcess.run("/usr/bin/env", words, environment: ["PATH": "/usr/bin:/bin"])
        }
        #expect(finished.text.contains("before") && finished.text.contains("after"), "\(finished.complaints)")
        try await bench.node.close()
        try await bench.giveBack()
    }

    @Test("A node's id is held where the other nodes ask for theirs, in whatever order they name the servers")
    func hold() async throws {
        let bench = try await Bench(isStandby: false)
        let hold = try #require(try await bench.location().hold(node: "n"))
        #expect(try await bench.location(first: 1).hold(node: "n") == nil)
        hold.release()
        try await bench.node.close()
        try await bench.giveBack()
    }

    @Test("Where two servers went different ways, none is copied, and no id is given")
    func conflict() async throws {
        let bench = try await Bench(isStandby: false)
        try await bench.node.close()
        func change(_ statement: String) async throws {
            try await bench.pair.primary.offPool { [database = bench.pair.configuration.database] in
                try $0.sql(statement, in: database)
            }
        }
        // A node at the old one alone had begun a generation there.
        try await change("INSERT INTO history VALUES (2, 'another', 'another', '00000001', 0, 0)")
        await #expect(throws: StoreError(.unavailable, "")) { try await bench.location().hold(node: "n") }
        await #expect(throws: StoreError(.unavailable, "")) { try await bench.location().backUp(to: "/dev/null") }
        let found = try await bench.location().examine().findings
        #expect(found.contains { $0.isProblem && $0.text.contains("Several servers accept writes") })
        try await change("DELETE FROM history WHERE number = 2")
        try await bench.giveBack()
    }
}
#endif
