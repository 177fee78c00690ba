#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: what a look says about servers, standbys and roles", .serialized)
struct PostgreSQLServersExaminationTests {
    private func findings(_ configuration: PostgreSQLConfiguration) async throws -> [DatabaseFinding] {
        try await DatabaseLocation.postgresql(configuration).examine(schema: SQLDatabaseContract.schema).findings
    }

    private func open(_ configuration: PostgreSQLConfiguration) async throws -> any SQLDatabase {
        try await DatabaseLocation.postgresql(configuration).open(
            schema: SQLDatabaseContract.schema, clock: SystemClock())
    }

    @Test("A standby that is silent: no node starts, and it is said that nothing is confirmed and how many wait")
    func silent() async throws {
        let pair = try await PostgreSQLPair()
        var configuration = pair.configuration
        configuration.requiresStandby = true
        // Where the standby answers it may take its time.
        var patient = configuration
        patient.bePatient(seconds: Patience.seconds)
        patient.requiresStandby = false
        try await open(patient).close()
        patient.requiresStandby = true
        try await pair.replicate()
        // A look has a limit of its own, which a busy machine may need more than once.
        try await Patience.wait(until: "no problem is found") { [patient] in
            try await findings(patient).allSatisfy { !$0.isProblem }
        }
        pair.link.stall()
        let refused = await #expect(throws: StoreError(.unavailable, "")) { try await open(configuration) }
        #expect(refused?.obstacle == .standbySilent)
        // Those that were given up wait on.
        var found: [DatabaseFinding] = []
        while !found.contains(where: { $0.isProblem && $0.text.contains("have waited for a standby") }) {
            found = try await findings(configuration)
        }
        #expect(found.contains { $0.isProblem && $0.text.contains("did not confirm a commit") })
        pair.link.resume()
        try await pair.waitUntil("sync_state = 'sync'")
        try await open(patient).close()
    }

    @Test("The servers are named with timeline and generation, one that is behind is a problem, and so is a memory")
    func behind() async throws {
        let pair = try await PostgreSQLPair()
        // No commit waits for a standby, and a slow disk is waited for.
        var unhurried = pair.configuration
        unhurried.commitLimit = 60_000
        let node = try await open(unhurried)
        try await pair.failOver()
        try await PostgreSQLTroubleTests.untilItWrites(node)
        var found = try await findings(pair.configuration)
        #expect(found.contains { !$0.isProblem && $0.text.contains("accepts writes: timeline 00000002, generation 2") })
        try await pair.primary.offPool { try $0.start() }
        found = try await findings(pair.configuration)
        let old = PostgreSQLOpening.name(pair.configuration.hosts[0])
        #expect(found.contains { $0.isProblem && $0.text.hasPrefix("\(old) accepts writes and lacks what") })
        // What a node remembers, and which of it the server lacks.
        let file = NodeMemoryFile(
            path: FileManager.default.temporaryDirectory.appending(path: "memory-\(UUID().uuidString)").path)
        var configuration = pair.configuration
        configuration.node = .init(id: "n", memory: file)
        let row = try await node.run(.read("SELECT token FROM history WHERE number = 1")).first
        let token = try #require(try row?.text("token"))
        for (memory, requiresStandby, isProblem, isNote) in [
            (NodeMemory(generation: 1, token: token, mark: 0), false, false, false),
            (NodeMemory(generation: 1, token: token, mark: 99), false, false, true),
            (NodeMemory(generation: 1, token: token, mark: 99), true, true, false),
            (NodeMemory(generation: 1, token: "another", mark: 0), false, true, false),
        ] {
            try file.write(memory)
            configuration.requiresStandby = requiresStandby
            let lacks = try await findings(configuration).filter { $0.text.hasPrefix("The database lacks") }
            #expect(lacks.contains(where: \.isProblem) == isProblem, "\(memory)")
            #expect(lacks.contains(where: \.isNote) == isNote, "\(memory)")
        }
        try Data("nothing".utf8).write(to: URL(filePath: file.path))
        #expect(try await findings(configuration).contains { $0.isProblem && $0.text.contains(file.path) })
        _ = try file.remove()
        try await node.close()
    }

    @Test("Settings that make a standby useless, or late, are named, and so is too little room for all nodes")
    func settings() async throws {
        let server = try await PostgreSQLServer.start(settings: [
            "synchronous_commit = local", "wal_sender_timeout = 0", "max_connections = 30",
        ])
        let place = try await PostgreSQLPlace(server)
        try await place.open().close()
        var configuration = place.configuration
        configuration.requiresStandby = true
        var found = try await findings(configuration)
        #expect(found.contains { $0.isProblem && $0.text.contains("nothing can be written") })
        #expect(found.contains { !$0.isProblem && $0.text.contains("synchronous_commit is local") })
        #expect(!found.contains { $0.text.contains("wal_sender_timeout") || $0.text.contains("places for") })
        try await place.sql(
            "INSERT INTO history_marks SELECT 'n' || i, 1, extract(epoch FROM now()) FROM generate_series(1, 2) i")
        try await place.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try await place.sql("SELECT pg_reload_conf()")
        while try await place.sql("SHOW synchronous_standby_names") != "nobody" { await Task.yield() }
        found = try await findings(configuration)
        #expect(found.contains { $0.isNote && $0.text.contains("wal_sender_timeout is off") })
        #expect(found.contains { $0.isNote && $0.text.contains("places for 27 connections. 2 nodes with 13 each") })
    }

    @Test("A role that is a superuser is noted, and so is a server on another host that is reached without TLS")
    func dangers() async throws {
        let server = try await offPool {
            try PostgreSQLServer(
                access: "local all all trust\nhost all all 127.0.0.1/32 trust\n", listens: true)
        }
        let place = try await PostgreSQLPlace(server)
        var configuration = place.configuration
        let dangers = ["is a superuser", "anyone on the way"]
        var found = try await findings(configuration)
        for danger in dangers { #expect(!found.contains { $0.text.contains(danger) }) }
        configuration.user = "postgres"
        // This machine, by a name that does not look like it.
        configuration.hosts = [.init("2130706433", port: server.port)]
        configuration.tls = .off
        found = try await findings(configuration)
        for danger in dangers { #expect(found.contains { $0.isNote && $0.text.contains(danger) }, "\(danger)") }
    }

    @Test("A schema that every role may put functions into is noted: another's would run with Assent's rights")
    func shared() async throws {
        let place = try await PostgreSQLPlace()
        let isNoted = {
            try await findings(place.configuration).contains { $0.isNote && $0.text.contains("Every role") }
        }
        // So it is in PostgreSQL 14, where nobody has granted it.
        try await place.sql("GRANT CREATE ON SCHEMA public TO PUBLIC")
        #expect(try await isNoted())
        let database = place.configuration.database
        try await place.sql("REVOKE CONNECT ON DATABASE \(database) FROM PUBLIC")
        #expect(try await !isNoted())
        try await place.sql("GRANT CONNECT ON DATABASE \(database) TO PUBLIC")
        try await place.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        #expect(try await !isNoted())
    }

    @Test("What that note says to do leaves Assent its own way in, also to a database that it does not own")
    func ownWayIn() async throws {
        let place = try await PostgreSQLPlace()
        try await place.sql("ALTER DATABASE \(place.configuration.database) OWNER TO postgres")
        try await place.sql("GRANT CREATE ON SCHEMA public TO PUBLIC")
        let found = try await findings(place.configuration)
        let note = try #require(found.first { $0.text.contains("Every role") }).text
        let advice = try #require(note.components(separatedBy: "Keep others out: ").last)
        try await place.sql(try #require(advice.components(separatedBy: ". Where").first))
        for (role, isLetIn) in [("public", "f"), ("assent", "t")] {
            let answer = try await place.sql("SELECT has_database_privilege('\(role)', current_database(), 'CONNECT')")
            #expect(answer == isLetIn, "\(role)")
        }
        #expect(try await findings(place.configuration).allSatisfy { !$0.text.contains("Every role") })
    }
}
#endif
