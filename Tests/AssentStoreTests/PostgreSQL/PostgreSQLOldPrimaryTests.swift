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
    private let pair: PostgreSQLPair
    private let node: any SQLDatabase

    init() async throws {
        pair = try await PostgreSQLPair()
        node = try await DatabaseLocation.postgresql(pair.configuration).open(
            schema: SQLDatabaseContract.schema, clock: SystemClock())
        _ = try await node.run(insertNote("before"))
        try await pair.waitUntil("replay_lsn = pg_current_wal_lsn()")
        try await pair.failOver()
        try await PostgreSQLTroubleTests.untilItWrites(node)
        _ = try await node.run(insertNote("after"))
    }

    private func startOldPrimary(isStandby: Bool) async throws {
        try await pair.primary.offPool { server in
            if isStandby { try server.write("", "standby.signal") }
            try server.start()
        }
    }

    /// A database of the pair, with one of the servers first.
    private func location(first: Int = 0) -> DatabaseLocation {
        var configuration = pair.configuration
        if first == 1 { configuration.hosts.reverse() }
        return .postgresql(configuration)
    }

    @Test(
        "Connections of nodes are counted at all servers, so that nothing runs beside them", arguments: [false, true])
    func connections(isStandby: Bool) async throws {
        try await startOldPrimary(isStandby: isStandby)
        #expect(try await location().connectionsOfServers() > 0)
        try await node.close()
        #expect(try await location().connectionsOfServers() == 0)
        try await pair.primary.offPool { try $0.stop() }
        try await pair.standby.offPool { try $0.stop() }
        await #expect(throws: StoreError(.unavailable, "")) { try await location().connectionsOfServers() }
    }

    @Test("A backup is one of the server that has everything", arguments: [false, true])
    func backup(isStandby: Bool) async throws {
        try await startOldPrimary(isStandby: isStandby)
        let file = FileManager.default.temporaryDirectory.appending(path: "dump-\(UUID().uuidString)")
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try await location().backUp(to: file.path)
        let words = ["pg_restore", "--data-only", "--table=notes", "--file=-", file.path]
        let finished = try await offPool {
            try FinishedProcess.run("/usr/bin/env", words, environment: ["PATH": "/usr/bin:/bin"])
        }
        #expect(finished.text.contains("before") && finished.text.contains("after"), "\(finished.complaints)")
        try await node.close()
    }

    @Test("A node's id is held where the other nodes ask for theirs, in whatever order they name the servers")
    func hold() async throws {
        try await startOldPrimary(isStandby: false)
        let hold = try #require(try await location().hold(node: "n"))
        #expect(try await location(first: 1).hold(node: "n") == nil)
        hold.release()
        try await node.close()
    }

    @Test("Where two servers went different ways, none is copied, and no id is given")
    func conflict() async throws {
        try await node.close()
        try await startOldPrimary(isStandby: false)
        // A node at the old one alone had begun a generation there.
        try await pair.primary.offPool { [database = pair.configuration.database] in
            try $0.sql("INSERT INTO history VALUES (2, 'another', 'another', '00000001', 0, 0)", in: database)
        }
        await #expect(throws: StoreError(.unavailable, "")) { try await location().hold(node: "n") }
        await #expect(throws: StoreError(.unavailable, "")) { try await location().backUp(to: "/dev/null") }
        let found = try await location().examine().findings
        #expect(found.contains { $0.isProblem && $0.text.contains("Several servers accept writes") })
    }
}
#endif
