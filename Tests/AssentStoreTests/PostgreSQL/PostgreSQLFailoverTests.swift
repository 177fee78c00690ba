#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import InMemoryLogging
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

/// Two nodes with data directories of their own on a pair of servers, under load, and what becomes of what they spend.
@Suite("PostgreSQL: two nodes, a synchronous standby, and what can become of it", .serialized)
struct PostgreSQLFailoverTests {
    let pair: PostgreSQLPair
    private let log = InMemoryLogHandler()
    private let directory = FileManager.default.temporaryDirectory.appending(path: "nodes-\(UUID().uuidString)")
    /// How many are spent in each of the five troubles that two nodes go through.
    private static let share = 200

    init() async throws {
        pair = try await PostgreSQLPair.reused()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    private func configuration(_ name: String, hosts: [Int] = [0, 1]) -> PostgreSQLConfiguration {
        var configuration = pair.configuration
        configuration.hosts = hosts.map { configuration.hosts[$0] }
        configuration.requiresStandby = true
        configuration.outcomeLimit = 4_000
        configuration.node = .init(
            id: name, memory: NodeMemoryFile(path: directory.appending(path: "\(name).json").path))
        return configuration
    }

    private func node(_ name: String, change: (inout PostgreSQLConfiguration) -> Void = { _ in }) async throws
        -> any SQLDatabase
    {
        var configuration = configuration(name)
        change(&configuration)
        return try await DatabaseLocation.postgresql(configuration).open(
            schema: SQLDatabaseContract.schema, clock: SystemClock(), logger: Logger(label: "test") { _ in log })
    }

    private func ledger(change: (inout PostgreSQLConfiguration) -> Void = { _ in }) async throws -> (
        SpendingLedger, [any SQLDatabase]
    ) {
        try await pair.replicate()
        let nodes = [try await opened("a", change: change), try await opened("b", change: change)]
        return (SpendingLedger(nodes), nodes)
    }

    /// A node, once its first commits are confirmed in the short time that they have: a busy machine may need more.
    private func opened(
        _ name: String, change: (inout PostgreSQLConfiguration) -> Void
    ) async throws -> any SQLDatabase {
        try await Patience.retry("a node opens its database") {
            try await node(name, change: change)
        } unless: { error in
            guard let error = error as? StoreError else { return true }
            return ![.unavailable, .outcomeUnknown].contains(error.code)
        }
    }

    /// For a test in which no standby is silent.
    private static func wait(_ configuration: inout PostgreSQLConfiguration) {
        configuration.bePatient(seconds: Patience.seconds)
    }

    /// For a test that waits until a commit waits for the standby: a mark is a commit, too, and could be that one,
    /// before the test's own has begun.
    private static func markNothing(_ configuration: inout PostgreSQLConfiguration) {
        configuration.watchInterval = 3_600_000
    }

    @Test("A standby that is silent for a while: what could not be confirmed is unknown, and nothing is lost")
    func paused() async throws {
        let (ledger, nodes) = try await ledger()
        try await ledger.spend(least: Self.share) {
            await ledger.untilItGrows(by: 20)
            pair.link.stall()
            try await pair.untilSomebodyWaits()
            try await untilRefused(nodes)
            // What a crash may take waits for no standby.
            for (index, node) in nodes.enumerated() {
                let insert = SQLStatement.unlogged(
                    "INSERT INTO spent_proofs (id, expires_at) VALUES (\("silent-\(index)"), 1) RETURNING id")
                #expect(try await node.run(insert).count == 1)
            }
            pair.link.resume()
            await ledger.untilItGrows(by: 20)
        }
        try await ledger.check()
        try await end(nodes)
    }

    @Test("A standby that is stopped and started again: the same")
    func stopped() async throws {
        let (ledger, nodes) = try await ledger()
        try await ledger.spend(least: Self.share) {
            await ledger.untilItGrows(by: 20)
            try await pair.standby.offPool { try $0.stop("immediate") }
            try await untilRefused(nodes)
            try await pair.standby.offPool { try $0.start() }
            await ledger.untilItGrows(by: 20)
        }
        try await ledger.check()
        try await end(nodes)
    }

    @Test("A standby that is slow: everything is granted, late")
    func slow() async throws {
        let (ledger, nodes) = try await ledger { $0.commitLimit = 60_000 }
        try await ledger.spend(least: Self.share) {
            await ledger.untilItGrows(by: 20)
            pair.link.delay(milliseconds: 30)
            await ledger.untilItGrows(by: 20)
            pair.link.resume()
        }
        #expect(ledger.unknown == 0)
        try await ledger.check()
        try await end(nodes)
    }

    @Test("A standby that was silent is promoted: what it never had was not granted, and can be spent once")
    func promotedAfterSilence() async throws {
        let (ledger, nodes) = try await ledger { $0.requiresStandby = false }
        try await ledger.spend(least: Self.share) {
            await ledger.untilItGrows(by: 20)
            pair.link.stall()
            try await pair.untilSomebodyWaits()
            try await untilRefused(nodes)
            pair.link.cutAll(refusing: true)
            try await stopReplicatingAfterPromotion()
            await ledger.untilItGrows(by: 20)
        }
        try await ledger.check()
        try await close(nodes)
    }

    @Test("The old primary comes back as one: no node uses it, though it is first in the list, and it is said")
    func oldPrimaryReturns() async throws {
        let (spending, nodes) = try await ledger { $0.requiresStandby = false }
        try await spending.spend(least: Self.share) {
            await spending.untilItGrows(by: 20)
            try await stopReplicatingAfterPromotion()
            await spending.untilItGrows(by: 20)
            try await pair.primary.offPool { try $0.start() }
            try await pair.name("")
            while !log.entries.contains(where: { "\($0.message)".contains("lacks what another one has") }) {
                await Task.yield()
            }
            await spending.untilItGrows(by: 50)
        }
        try await spending.check()
        let rows = try await pair.primary.offPool { [database = pair.configuration.database] in
            try $0.sql("SELECT count(*) FROM history", in: database)
        }
        #expect(rows == "1")
        // A node that is started anew and reaches the old one alone remembers the new one.
        await #expect(throws: StoreError(.unavailable, "")) {
            try await node("a") { configuration in
                configuration.requiresStandby = false
                configuration.hosts = [configuration.hosts[0]]
            }
        }
        // One that has no memory, and reaches both, chooses the one that has everything.
        let fresh = try await opened("e") {
            $0.requiresStandby = false
            $0.commitLimit = 60_000
        }
        #expect(try await fresh.count("history") == 2)
        try await close(nodes + [fresh])
    }

    @Test("A primary that crashes while commits wait, and comes back without the standby, is not believed until it is")
    func crashedInTheWait() async throws {
        let (_, nodes) = try await ledger(change: Self.markNothing)
        pair.link.stall()
        let lost = Task { try await nodes[0].run([insertNote("x"), .record(insertNote("r").sql)]) }
        try await pair.untilSomebodyWaits()
        try await pair.primary.offPool {
            try $0.stop("immediate")
            try $0.start()
        }
        await #expect(throws: StoreError(.outcomeUnknown, "")) { try await lost.value }
        // Its recovery shows what no standby has.
        #expect(try await notes() == 2)
        await #expect(throws: StoreError(.unavailable, "")) { try await nodes[1].run(.read("SELECT id FROM notes")) }
        pair.link.resume()
        try await PostgreSQLTroubleTests.untilItAnswers(nodes[1])
        #expect(try await nodes[1].count("notes") == 2)
        try await end(nodes)
    }

    @Test("A process of the server that crashes makes it show what waits: nothing is read until the standby is back")
    func crashedProcess() async throws {
        let (_, nodes) = try await ledger(change: Self.markNothing)
        pair.link.stall()
        let lost = Task { try await nodes[0].run([insertNote("x"), .record(insertNote("r").sql)]) }
        try await pair.untilSomebodyWaits()
        let victim = try await pair.primary.offPool {
            try $0.sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' LIMIT 1")
        }
        kill(try #require(Int32(victim)), SIGKILL)
        await #expect(throws: StoreError(.outcomeUnknown, "")) { try await lost.value }
        while (try? await notes()) == nil { await Task.yield() }
        #expect(try await notes() == 2)
        for node in nodes {
            await #expect(throws: StoreError(.unavailable, "")) { try await node.run(.read("SELECT id FROM notes")) }
        }
        pair.link.resume()
        for node in nodes {
            try await PostgreSQLTroubleTests.untilItAnswers(node)
            #expect(try await node.count("notes") == 2)
        }
        try await end(nodes)
    }

    @Test("A wait for the standby that an administrator cancels or ends is not taken for a commit")
    func interrupted() async throws {
        let (_, nodes) = try await ledger {
            // It still waits when it is interrupted, however late that is.
            $0.commitLimit = 60_000
            Self.markNothing(&$0)
        }
        for (number, function) in ["pg_cancel_backend", "pg_terminate_backend"].enumerated() {
            pair.link.stall()
            let lost = Task {
                try await nodes[0].run([insertNote("x-\(number)"), .record(insertNote("r-\(number)").sql)])
            }
            try await pair.untilSomebodyWaits()
            try await pair.primary.offPool {
                try $0.sql("SELECT \(function)(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            }
            await #expect(throws: StoreError(.outcomeUnknown, "")) { try await lost.value }
            // The primary shows it, a moment after the connection has ended, and no standby has it.
            while try await notes() != 2 * number + 2 { await Task.yield() }
            await #expect(throws: StoreError(.unavailable, "")) {
                try await nodes[0].run(.read("SELECT id FROM notes"))
            }
            await #expect(throws: StoreError(.unavailable, "")) { try await nodes[0].checkHealth() }
            pair.link.resume()
            try await PostgreSQLTroubleTests.untilItWrites(nodes[0])
            #expect(try await nodes[0].count("notes") == Int64(2 * number + 2))
        }
        try await end(nodes)
    }

    @Test(
        "The standbys' names are emptied while a commit waits: it counts only where no standby is required",
        arguments: [true, false])
    func emptied(isRequired: Bool) async throws {
        let (_, nodes) = try await ledger { configuration in
            configuration.requiresStandby = isRequired
            configuration.commitLimit = 60_000
            Self.markNothing(&configuration)
        }
        pair.link.stall()
        let waiting = Task { try await nodes[0].run([insertNote("x"), .record(insertNote("r").sql)]) }
        try await pair.untilSomebodyWaits()
        try await pair.name("")
        if isRequired {
            await #expect(throws: StoreError(.outcomeUnknown, "")) { try await waiting.value }
            #expect(try await notes() == 2)
            await #expect(throws: StoreError(.unavailable, "")) {
                try await nodes[0].run(.read("SELECT id FROM notes"))
            }
        } else {
            _ = try await waiting.value
        }
        pair.link.resume()
        try await pair.replicate()
        try await PostgreSQLTroubleTests.untilItWrites(nodes[0])
        #expect(try await nodes[0].count("notes") == 2)
        try await end(nodes)
    }

    @Test("A node that requires a standby refuses a server that names none, from the start and later")
    func unnamed() async throws {
        await #expect(throws: StoreError(.unavailable, "")) { try await node("a") }
        try await pair.replicate()
        let database = try await node("a", change: Self.wait)
        _ = try await database.run(insertNote("x"))
        try await pair.name("")
        while (try? await database.checkHealth()) != nil { await Task.yield() }
        await #expect(throws: StoreError(.unavailable, "")) { try await database.run(insertNote("y")) }
        #expect(try await database.count("notes") == 1)
        try await pair.replicate()
        try await PostgreSQLTroubleTests.untilItWrites(database)
        try await end([database])
    }

    @Test("A server whose commits are acknowledged before the standby's disk has them is overruled")
    func weakCommits() async throws {
        try await pair.replicate()
        for value in ["off", "local", "remote_write", "on", "remote_apply"] {
            try await pair.primary.offPool {
                try $0.sql("ALTER SYSTEM SET synchronous_commit = '\(value)'")
                try $0.sql("SELECT pg_reload_conf()")
            }
            let database = try await node("a-\(value)", change: Self.wait)
            let row = try await database.run(.read("SELECT current_setting('synchronous_commit') AS value")).first
            #expect(try row?.text("value") == (value == "remote_apply" ? "remote_apply" : "on"))
            try await database.close()
        }
        try await pair.primary.offPool {
            try $0.sql("ALTER SYSTEM RESET synchronous_commit")
            try $0.sql("SELECT pg_reload_conf()")
        }
        pair.giveBack()
    }

    @Test("A copy of the server's disk that is started by itself is refused, once the node has written since")
    func copy() async throws {
        let (_, nodes) = try await ledger {
            $0.requiresStandby = false
            Self.wait(&$0)
        }
        // A base backup is a copy: promoted on a timeline of its own it would be told by that; here it is not.
        let copied = try await pair.primary.offPool { try PostgreSQLServer(copyOf: $0) }
        let file = NodeMemoryFile(path: directory.appending(path: "a.json").path)
        let before = try file.read()?.mark ?? 0
        _ = try await nodes[0].run(insertNote("later"))
        while try file.read()?.mark ?? 0 <= before { await Task.yield() }
        try await close(nodes)
        let host = PostgreSQLConfiguration.Host(copied.directory.path, port: copied.port)
        await #expect(throws: StoreError(.unavailable, "")) {
            try await node("a") { configuration in
                configuration.requiresStandby = false
                configuration.hosts = [host]
            }
        }
        pair.giveBack()
    }

    @Test("A copy from just before a node stopped is refused as well: the stop writes what tells it")
    func copyBeforeStop() async throws {
        let (_, nodes) = try await ledger {
            $0.requiresStandby = false
            $0.watchInterval = 3_600_000
            $0.stopLimit = Patience.seconds * 1_000
            Self.wait(&$0)
        }
        let copied = try await pair.primary.offPool { try PostgreSQLServer(copyOf: $0) }
        _ = try await nodes[0].run(insertNote("later"))
        try await close(nodes)
        let host = PostgreSQLConfiguration.Host(copied.directory.path, port: copied.port)
        await #expect(throws: StoreError(.unavailable, "")) {
            try await node("a") { configuration in
                configuration.requiresStandby = false
                configuration.hosts = [host]
            }
        }
        pair.giveBack()
    }

    @Test("Two servers that went different ways from one: nothing is written until one of them is gone")
    func conflict() async throws {
        try await pair.replicate()
        let second = try await pair.primary.offPool { try PostgreSQLServer(standbyOf: $0, name: "second") }
        let host = PostgreSQLConfiguration.Host(second.directory.path, port: second.port)
        let database = try await opened("a") { configuration in
            configuration.requiresStandby = false
            configuration.hosts.append(host)
            // No standby is silent, and a slow one is waited for.
            configuration.commitLimit = 60_000
        }
        _ = try await database.run(insertNote("x"))
        // Each is promoted alone, on the same new timeline.
        try await pair.failOver()
        try await pair.stopReplicating()
        try await PostgreSQLTroubleTests.untilItWrites(database)
        try await second.offPool {
            try $0.sql("SELECT pg_promote()")
        }
        while (try? await database.checkHealth()) != nil { await Task.yield() }
        await #expect(throws: StoreError(.unavailable, "")) { try await database.run(insertNote("y")) }
        try await second.offPool { try $0.stop() }
        try await PostgreSQLTroubleTests.untilItWrites(database)
        try await database.close()
    }

    @Test("A restored backup is refused until an administrator adopts it, and other nodes then follow")
    func adopted() async throws {
        let (_, nodes) = try await ledger {
            $0.requiresStandby = false
            Self.wait(&$0)
        }
        let file = NodeMemoryFile(path: directory.appending(path: "a.json").path)
        _ = try await nodes[0].run(insertNote("x"))
        while try file.read()?.mark ?? 0 < 1 { await Task.yield() }
        try await close(nodes)
        // What was written since the backup is missing.
        try await pair.primary.offPool { [database = pair.configuration.database] in
            try $0.sql("DELETE FROM history_marks", in: database)
        }
        await #expect(throws: StoreError(.unavailable, "")) { try await node("a") { $0.requiresStandby = false } }
        let restored = try await node("a") {
            $0.adoptsHistory = true
            Self.wait(&$0)
        }
        try await restored.close()
        let again = try await node("a", change: Self.wait)
        #expect(try await again.count("history") == 2)
        let other = try await node("b", change: Self.wait)
        _ = try await other.run(insertNote("y"))
        try await end([again, other])
    }

    @Test("Another history that comes to be beneath running nodes is refused, though the server is the same one")
    func replacedBeneath() async throws {
        let (_, nodes) = try await ledger { $0.hosts.removeLast() }
        let database = pair.configuration.database
        func rename(_ token: String) async throws {
            try await pair.primary.offPool {
                try $0.sql("UPDATE history SET token = \(token)", in: database)
                // As DROP DATABASE … WITH (FORCE) does.
                try $0.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(database)'")
            }
        }
        try await rename("token || ' of another'")
        for node in nodes {
            while (try? await node.checkHealth()) != nil { await Task.yield() }
            await #expect(throws: StoreError(.unavailable, "")) { try await node.run(.read("SELECT id FROM notes")) }
            await #expect(throws: StoreError(.unavailable, "")) { try await node.run(insertNote("x")) }
        }
        try await rename("replace(token, ' of another', '')")
        for node in nodes { try await PostgreSQLTroubleTests.untilItWrites(node) }
        #expect(try await nodes[0].count("notes") == 0)
        try await end(nodes)
    }

    // MARK: - Parts

    /// How many notes the primary shows to everybody.
    private func notes() async throws -> Int? {
        try await pair.primary.offPool { [database = pair.configuration.database] in
            Int(try $0.sql("SELECT count(*) FROM notes", in: database))
        }
    }

    /// The standby takes over, and waits for no other one.
    private func stopReplicatingAfterPromotion() async throws {
        try await pair.failOver()
        try await pair.stopReplicating()
    }

    /// Returns when both nodes hold writes off.
    private func untilRefused(_ nodes: [any SQLDatabase]) async throws {
        for node in nodes { while (try? await node.checkHealth()) != nil { await Task.yield() } }
    }

    private func close(_ nodes: [any SQLDatabase]) async throws {
        for node in nodes { try await node.close() }
    }

    /// Closes the nodes of a test after which both servers are what they were.
    private func end(_ nodes: [any SQLDatabase]) async throws {
        try await close(nodes)
        pair.giveBack()
    }
}
#endif
