#if PostgreSQL && os(Linux)
import AssentConfiguration
import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("assent restore-fence, and what nodes remember of their database")
struct RestoreFenceTests {
    @Test(
        "A node refuses a restored PostgreSQL database until the fence has run, and another node until it adopts it",
        .enabled(if: !TestDatabase.isPostgreSQL, "it says itself which database the server has"))
    func postgreSQL() async throws {
        let world = try CopyWorld()
        let server = try await PostgreSQLServer.shared()
        let known = try await offPool { try server.makeDatabase() }
        let edit = CopyWorld.edits(data: "node", database: try await CopyWorld.postgreSQL(known))
        let configuration = try world.configuration("node.yaml", edit)
        let node = try await ServerFixture(kept: world.directory, editing: edit) { $0.postgreSQL?.watchInterval = 20 }
        let session = try await node.signIn()
        _ = try await ConfiguredBackup.run(configuration, to: world.path("backup"))
        // The other node has used a generation that the backup lacks.
        var other = known
        other.bePatient(seconds: Patience.seconds)
        other.node = .init(id: "other", memory: NodeMemoryFile(path: world.path("other")))
        other.adoptsHistory = true
        try await DatabaseLocation.postgresql(other).open(clock: SystemClock()).close()
        other.adoptsHistory = false
        // The first mark that is kept from here on may be in the backup still; the second is not.
        let memory = world.path("node/database-history")
        for _ in 0..<2 {
            let before = try String(contentsOfFile: memory, encoding: .utf8)
            _ = try await node.session()
            while try String(contentsOfFile: memory, encoding: .utf8) == before { await Task.yield() }
        }
        await node.stop()
        try await restore(world.path("backup"), known, server)

        let kept = try DatabaseAccess(configuration)
        await #expect(throws: StoreError(.unavailable, "")) { try await kept.location.open(clock: SystemClock()) }
        // A fence that ends nothing lets nobody in: neither this node, nor one that follows a restored generation.
        try world.makeKey("another")
        let wrong = CopyWorld.edits(data: "node", key: "another", database: try await CopyWorld.postgreSQL(known))
        let failed = try world.configuration("another.yaml", wrong)
        await #expect(throws: ConfigurationError.self) { try await RestoreFence.run(failed) }
        await #expect(throws: StoreError(.unavailable, "")) { try await kept.location.open(clock: SystemClock()) }
        let outcome = try await RestoreFence.run(configuration)
        #expect(outcome.counts[.sessions] == 1)
        let again = try await ServerFixture(kept: world.directory, editing: edit)
        #expect(try await Sessions(again.server.context).live(token: Secret(session)) == nil)
        _ = try await again.session()
        await again.stop()

        await #expect(throws: StoreError(.unavailable, "")) {
            try await DatabaseLocation.postgresql(other).open(clock: SystemClock())
        }
        #expect(try NodeMemoryFile(path: world.path("other")).remove())
        try await DatabaseLocation.postgresql(other).open(clock: SystemClock()).close()
    }

    @Test("A database without a backup in it is refused: it gets no tables, and the node remembers the one before")
    func empty() async throws {
        let world = try CopyWorld()
        let configuration = try await world.postgreSQL()
        let node = try DataDirectory(configuration.dataDirectory)
        try PrivateFile.create(node.file("node"), Array(SystemRandom().uuid().utf8))
        let memory = Data("what the node has seen".utf8)
        try memory.write(to: URL(fileURLWithPath: node.memory.path))
        let error = await #expect(throws: ConfigurationError.self) { try await RestoreFence.run(configuration) }
        #expect(error?.message.contains("restore the backup first") == true, "\(error?.message ?? "")")
        #expect(try await CopyWorld.location(configuration).examine().schema == .missing)
        #expect(try Data(contentsOf: URL(fileURLWithPath: node.memory.path)) == memory)
    }

    @Test("A damaged file, as one that was restored beside the log of another, is refused, and nothing is written")
    func damaged() async throws {
        let world = try CopyWorld()
        let configuration = try world.sqlite()
        try await world.fill(configuration)
        let file = URL(fileURLWithPath: DatabaseAccess.path(configuration))
        var bytes = try Data(contentsOf: file)
        // The header names more free pages than there are. SQLite opens the file all the same.
        bytes.replaceSubrange(36..<40, with: [0, 0, 0, 255] as [UInt8])
        try bytes.write(to: file)
        let error = await #expect(throws: ConfigurationError.self) { try await RestoreFence.run(configuration) }
        #expect(error?.message.contains("assent.sqlite-wal") == true, "\(error?.message ?? "")")
        #expect(try Data(contentsOf: file) == bytes)
        let letter = Data(String(repeating: "letter", count: 4_000).utf8)
        try letter.write(to: file)
        let other = await #expect(throws: ConfigurationError.self) { try await RestoreFence.run(configuration) }
        #expect(other?.message.contains("assent.sqlite-wal") == true, "\(other?.message ?? "")")
        #expect(try Data(contentsOf: file) == letter)
    }

    @Test("A machine whose clock is off is refused: the fence would leave out what was used lately")
    func clock() async throws {
        let world = try CopyWorld()
        let configuration = try await world.postgreSQL()
        try await world.fill(configuration)
        let fenced: SQL = "SELECT count(*) AS n FROM audit WHERE event = 'database.restore'"
        // However long it takes until the two are compared, the machine's is ahead.
        for seconds in [-31, 31 + Double(Patience.seconds)] {
            let error = await #expect(throws: ConfigurationError.self) {
                try await RestoreFence.run(configuration, clock: ManualClock(Date() + seconds))
            }
            #expect(error?.message.contains("NTP") == true, "\(error?.message ?? "")")
        }
        let fences = try await world.open(configuration) { try await $0.run(.read(fenced)).first?.integer("n") }
        #expect(fences == 0)
        _ = try await RestoreFence.run(configuration)
    }

    @Test("The fence's own record is one of the node's, with the next number: who takes it away leaves a gap")
    func record() async throws {
        let world = try CopyWorld()
        for configuration in [try world.sqlite(), try await world.postgreSQL()] {
            try await world.fill(configuration)
            let node = SystemRandom().uuid()
            let directory = try DataDirectory(configuration.dataDirectory)
            try PrivateFile.create(directory.file("node"), Array(node.utf8))
            for _ in 0..<2 { _ = try await RestoreFence.run(configuration) }
            let records = try await world.open(configuration) {
                try await $0.run(.read("SELECT node, sequence FROM audit ORDER BY position"))
            }
            #expect(try records.map { try $0.text("node") } == [node, node])
            #expect(try records.map { try $0.optionalInteger("sequence") } == [1, 2])
        }
    }

    /// What the documentation has an operator do before the fence.
    private func restore(_ path: String, _ known: PostgreSQLConfiguration, _ server: PostgreSQLServer) async throws {
        let name = known.database
        try await offPool {
            // A node that has just stopped may have connections that the server has not noticed the end of.
            try server.sql("DROP DATABASE \(name) WITH (FORCE)")
            try server.sql("CREATE DATABASE \(name) OWNER assent ENCODING 'UTF8' TEMPLATE template0")
            let done = try FinishedProcess.run(
                "/usr/bin/pg_restore",
                [
                    "--single-transaction", "--no-owner", "--role=assent", "--host=\(server.directory.path)",
                    "--port=\(server.port)", "--username=postgres", "--dbname=\(name)", path,
                ])
            try #require(done.status == 0, "\(done.complaints)")
        }
    }
}
#endif
