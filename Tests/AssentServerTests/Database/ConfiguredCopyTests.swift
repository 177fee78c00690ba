#if PostgreSQL && os(Linux)
import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import AssentTesting
import Foundation
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite("assent database copy")
struct ConfiguredCopyTests {
    @Test(
        "Sessions, tokens and an approved payment go on on PostgreSQL, and back in a file; the log is the same",
        .enabled(if: !TestDatabase.isPostgreSQL, "it says itself which database each server has"))
    func story() async throws {
        let world = try CopyWorld()
        let section = try await CopyWorld.postgreSQL()
        let edits = [
            CopyWorld.edits(data: "data"), CopyWorld.edits(data: "node", database: section),
            CopyWorld.edits(data: "back"),
        ]
        let first = try await ServerFixture(kept: world.directory, editing: edits[0])
        let session = try await first.signIn()
        let tokens = try await first.tokens(session: session)
        let key = try ProofKey()
        let bound = try await first.boundSession(to: key)
        let id = try #require(try await evaluate(first, session).advised)
        #expect(try await first.approve(id, session: session).json["tokenId"]?.string == session)
        let log = try await first.audit(id)
        #expect(log.count >= 2)
        await first.stop()
        let configurations = try edits.enumerated().map { try world.configuration("\($0).yaml", $1) }
        let report = try await ConfiguredCopy(from: configurations[0], to: configurations[1]).run()
        #expect(report.tables.allSatisfy { $0.rows > 0 || !["users", "audit", "server_keys"].contains($0.table) })

        let second = try await ServerFixture(kept: world.directory, editing: edits[1])
        #expect(second.endpoints.accounts.isEmpty)
        #expect(try await Self.summary(second.audit(id)) == Self.summary(log))
        #expect(try await evaluate(second, session, id).isGranted)
        #expect(try await second.refresh(tokens.refresh).status == 200)
        #expect(try await SessionDoor.consents.send(second, bound, []).status == 401, "it still belongs to its key")
        let proof = try await second.proof("GET", second.json("consents"), session: bound, by: key)
        #expect(try await SessionDoor.consents.send(second, bound, [proof]).status == 200)
        await second.stop()

        let back = try await ConfiguredCopy(from: configurations[1], to: configurations[2]).run()
        #expect(back.tables.map(\.table) == report.tables.map(\.table))
        let third = try await ServerFixture(kept: world.directory, editing: edits[2])
        let whole = try await Self.summary(third.audit(id))
        #expect(whole.count > log.count && Set(Self.summary(log)).isSubset(of: whole))
        #expect(try await !evaluate(third, session, id).isGranted)
        await third.stop()
    }

    /// What no copy has written.
    private static let another = SQLStatement(
        "INSERT INTO attempts (counter, window_start, count) VALUES ('another', 1, 2)")

    private func evaluate(
        _ fixture: ServerFixture, _ session: String, _ id: String? = nil
    ) async throws -> (advised: String?, isGranted: Bool) {
        let environment = id.map { #","environment":{"TxId":["\#($0)"]}"# } ?? ""
        let resource = "https://bank.example:443/withdraw?amount=100.00"
        let reply = try await fixture.send(
            "POST", fixture.json("policies?_action=evaluate"),
            [("Content-Type", "application/json")] + ServerFixture.session(session),
            text: #"{"resources":["\#(resource)"],"application":"rest"\#(environment)}"#)
        let decision = reply.json.array?.first
        return (
            decision?["advices"]?["TransactionConditionAdvice"]?.strings?.first, decision?["actions"]?["GET"] == true
        )
    }

    private static func summary(_ log: [AuditRecord]) -> [String] {
        log.map { "\($0.event) \($0.outcome) \($0.node ?? "") \($0.at?.timeIntervalSince1970 ?? 0)" }
    }

    @Test("From PostgreSQL to PostgreSQL, twice while the target is the copy, and not once it holds something else")
    func across() async throws {
        let world = try CopyWorld()
        let (source, target) = (try await world.postgreSQL(), try await world.postgreSQL())
        try await world.fill(source)
        _ = try await ConfiguredCopy(from: source, to: target).run()
        #expect(try await world.count(target) == 1)
        #expect(try await ConfiguredCopy(from: source, to: target).run().isResumed)
        #expect(try await world.count(target) == 1)
        try await world.open(target) { _ = try await $0.run(Self.another) }
        await #expect(throws: DatabaseCopyError(.targetNotEmpty, "")) {
            try await ConfiguredCopy(from: source, to: target).run()
        }
    }

    @Test("The same database by another name of its server is refused, and is not taken for its own copy")
    func same() async throws {
        let world = try CopyWorld()
        let source = try await world.postgreSQL()
        try await world.fill(source)
        var alias = try #require(source.postgreSQL)
        let host = try #require(alias.hosts.first)
        alias.hosts = [.init(host.name + "/", port: host.port)]
        let target = try await world.postgreSQL(alias)
        #expect(target.postgreSQL?.hosts != source.postgreSQL?.hosts)
        let error = await #expect(throws: ConfigurationError.self) {
            try await ConfiguredCopy(from: source, to: target).run()
        }
        #expect(error?.message.contains("the same database") == true, "\(error?.message ?? "")")
        #expect(try await world.count(source) == 1)
    }

    @Test("Another master key on either side, or none, is refused before anything is there")
    func keys() async throws {
        let world = try CopyWorld()
        let source = try world.sqlite()
        try await world.fill(source)
        try world.makeKey("other")
        let wrong = [
            (source, try world.sqlite("target", key: "other")),
            (try world.sqlite(key: "other"), try world.sqlite("target")),
            (try world.sqlite(key: "other"), try world.sqlite("target", key: "other")),
            (source, try world.sqlite("target", key: "none")),
            (try world.sqlite(key: "none"), try world.sqlite("target")),
        ]
        for (source, target) in wrong {
            let error = await #expect(throws: ConfigurationError.self) {
                try await ConfiguredCopy(from: source, to: target).run()
            }
            #expect(error?.message.contains("master key") == true, "\(error?.message ?? "")")
            #expect(!FileManager.default.fileExists(atPath: world.path("target")))
        }
    }

    @Test("A server that uses either side keeps the copy from beginning")
    func running() async throws {
        let world = try CopyWorld()
        let (file, server) = (try world.sqlite(), try await world.postgreSQL())
        try await world.fill(file)
        try await world.fill(server)
        let free = try world.sqlite("free")
        let lock = try DataDirectoryLock(DataDirectory(file.dataDirectory))
        for (source, target) in [(file, free), (server, file)] {
            let error = await #expect(throws: ConfigurationError.self) {
                try await ConfiguredCopy(from: source, to: target).run()
            }
            #expect(error?.message.contains("another server") == true)
        }
        lock.release()
        // Other tests wait until connections have ended: this one stays.
        var used = server
        used.postgreSQL?.endingLimit = 100
        try await world.open(server) { [used] database in
            try await database.checkHealth()
            let error = await #expect(throws: DatabaseCopyError(.sourceInUse, "")) {
                try await ConfiguredCopy(from: used, to: free).run()
            }
            #expect(error?.suggestion?.contains("Stop all servers") == true)
        }
        _ = try await ConfiguredCopy(from: server, to: free).run()
        #expect(try await world.count(free) == 1)
    }

    @Test("No server starts on an unfinished copy, and doctor says why")
    func unfinished() async throws {
        let world = try CopyWorld()
        for configuration in [try world.sqlite(), try await world.postgreSQL()] {
            try await world.fill(configuration)
            #expect(await !Self.problems(configuration).contains { $0.contains("copy") })
            try await world.mark(configuration)
            let error = await #expect(throws: ConfigurationError.self) {
                try await IdentityServer(configuration: configuration, logger: Logger(label: "test"))
            }
            #expect(error?.message.contains("run the same 'assent database copy' again") == true)
            let problems = await Self.problems(configuration)
            #expect(problems.contains { $0.contains("a copy to this database was begun and has not ended") })
            let target = try world.sqlite("target")
            await #expect(throws: DatabaseCopyError(.sourceUnfinished, "")) {
                try await ConfiguredCopy(from: configuration, to: target).run()
            }
        }
    }

    private static func problems(_ configuration: ServerConfiguration) async -> [String] {
        await ServerExamination.findings(file: configuration.file).filter { $0.verdict == .problem }.map(\.text)
    }

    @Test("A source without data, without a database or with another schema is refused, and stays as it is")
    func sources() async throws {
        let world = try CopyWorld()
        let target = try world.sqlite("target")
        func refusal(_ source: ServerConfiguration) async -> DatabaseCopyError? {
            await #expect(throws: DatabaseCopyError.self) {
                try await ConfiguredCopy(from: source, to: target).run()
            }
        }
        let missing = try world.sqlite("missing")
        #expect(await refusal(missing)?.code == .noSource)
        #expect(!FileManager.default.fileExists(atPath: missing.dataDirectory))
        for (number, unused) in [try world.sqlite("unused"), try await world.postgreSQL()].enumerated() {
            #expect(await refusal(unused)?.code == (number == 0 ? .noSource : .schemaDiffers))
            try await world.open(unused) { _ in }
            #expect(await refusal(unused)?.code == .noSource)
        }
        let older = Schema(Schema.current.steps.dropLast())
        let newer = Schema(Schema.current.steps + [Migration("more", ["CREATE TABLE more (id TEXT PRIMARY KEY)"])])
        for (number, schema) in [older, newer].enumerated() {
            for source in [try world.sqlite("other\(number)"), try await world.postgreSQL()] {
                try await world.fill(source, schema: schema)
                let before = try await CopyWorld.location(source).examine().schema
                let error = await refusal(source)
                #expect(error?.code == .schemaDiffers && error?.suggestion?.contains("migrate") == true)
                #expect(try await CopyWorld.location(source).examine().schema == before)
            }
        }
        #expect(!FileManager.default.fileExists(atPath: target.dataDirectory))
    }

    @Test("A target with another schema or another program's tables is refused")
    func targets() async throws {
        let world = try CopyWorld()
        let source = try world.sqlite()
        try await world.fill(source)
        func refusal(_ target: ServerConfiguration) async -> DatabaseCopyError.Code? {
            await #expect(throws: DatabaseCopyError.self) {
                try await ConfiguredCopy(from: source, to: target).run()
            }?.code
        }
        let more = Migration("more", ["CREATE TABLE more (id TEXT PRIMARY KEY)"])
        let foreign = Schema([Migration("x", more.statements + ["DROP TABLE schema_steps"])])
        let schemas: [(Schema, DatabaseCopyError.Code)] = [
            (Schema(Schema.current.steps.dropLast()), .schemaDiffers),
            (Schema(Schema.current.steps + [more]), .schemaDiffers), (foreign, .targetNotEmpty),
        ]
        for (number, (schema, code)) in schemas.enumerated() {
            for target in [try world.sqlite("target\(number)"), try await world.postgreSQL()] {
                try await world.open(target, schema: schema) { _ in }
                #expect(await refusal(target) == code)
            }
        }
    }

    @Test("A database is not copied onto itself, whatever it is called")
    func itself() async throws {
        let world = try CopyWorld()
        let file = try world.sqlite()
        try await world.fill(file)
        let link = world.path("link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file.dataDirectory)
        let server = try await world.postgreSQL()
        for (source, target) in [
            (file, file), (file, try world.sqlite("link")), (server, server),
            (server, try await world.postgreSQL(server.postgreSQL)),
        ] {
            let error = await #expect(throws: ConfigurationError.self) {
                try await ConfiguredCopy(from: source, to: target).run()
            }
            #expect(error?.message.contains("the same database") == true)
        }
    }

    @Test("A target that cannot be written breaks the copy off; the same command goes on")
    func brokenOff() async throws {
        let world = try CopyWorld()
        let (source, target) = (try world.sqlite(), try await world.postgreSQL())
        try await world.fill(source)
        _ = try await world.open(target) { database in
            try await database.run(
                [
                    SQLStatement(
                        """
                        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                        'BEGIN RAISE EXCEPTION ''no'' USING ERRCODE = ''53100''; END'
                        """), SQLStatement("CREATE TRIGGER r BEFORE INSERT ON attempts EXECUTE FUNCTION refuse()"),
                ])
        }
        let error = await #expect(throws: DatabaseCopyError(.brokenOff, "")) {
            try await ConfiguredCopy(from: source, to: target).run()
        }
        #expect(error?.suggestion?.contains("goes on where it stopped") == true)
        _ = try await world.open(target) { try await $0.run([SQLStatement("DROP TRIGGER r ON attempts")]) }
        let problems = await Self.problems(target)
        #expect(problems.contains { $0.contains("has not ended") })
        #expect(try await ConfiguredCopy(from: source, to: target).run().isResumed)
        #expect(try await world.count(target) == 1)
    }

    @Test("Killed in the middle of a table, the command goes on; at a terminal it draws a bar and removes it")
    func killed() async throws {
        let world = try CopyWorld()
        let (source, target) = (try world.sqlite(), try await world.postgreSQL())
        try await world.fill(source)
        _ = try await world.open(source) { database in
            try await database.run(
                SQLStatement(
                    """
                    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 30000)
                    INSERT INTO audit (id, at, event, outcome, detail, position)
                    SELECT 'row ' || n, n, 'e', 'o', '{}', n FROM numbers
                    """))
        }
        // However late it is killed, it has come no further than that row.
        _ = try await world.open(target) { database in
            try await database.run(
                [
                    SQLStatement(
                        """
                        CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS
                        'BEGIN
                            IF NEW.id = ''row 20000'' THEN PERFORM pg_sleep_for(''1 minute''); END IF;
                            RETURN NEW;
                        END'
                        """),
                    SQLStatement("CREATE TRIGGER stall BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION stall()"),
                ])
        }
        try await CopyWorld.waitUntilUnused(target)
        let program = try WatchedProcess.product("assent")
        let words = ["database", "copy", "--config", source.file, "--to", target.file]
        let process = try WatchedProcess.start([program] + words)
        #expect(await process.nextLine() == "Copying   attempts  1 row")
        await process.stop()
        #expect(await Self.problems(target).contains { $0.contains("has not ended") })
        // The server does not notice it while it sleeps.
        let name = try #require(target.postgreSQL?.database)
        try await PostgreSQLServer.shared().offPool {
            _ = try $0.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'")
        }
        try await CopyWorld.waitUntilUnused(target)
        _ = try await world.open(target) { try await $0.run([SQLStatement("DROP TRIGGER stall ON audit")]) }
        try await CopyWorld.waitUntilUnused(target)
        let terminal = try PseudoTerminal()
        let again = try SpawnedProcess(program, words, environment: ["PATH": "/usr/bin:/bin"], at: terminal)
        #expect(await again.ended() == 0)
        try await terminal.wait(for: "the same on both sides")
        #expect(terminal.text.contains("[##########] 100 %  30000 of 30000\r\u{1B}[K"), "\(terminal.text)")
        let count = try await world.open(target) { try await SQLDatabaseContract.count("audit", in: $0) }
        #expect(count == 30_000)
    }

    @Test("The command tells each table, as lines or as JSON, and what is wrong with a status and a code")
    func command() async throws {
        let world = try CopyWorld()
        let (source, target) = (try world.sqlite(), try await world.postgreSQL())
        func run(_ words: [String]) async throws -> FinishedProcess {
            try await CopyWorld.waitUntilUnused(target)
            let program = try WatchedProcess.product("assent")
            return try await offPool { try FinishedProcess.run(program, ["database"] + words) }
        }
        let copy = ["copy", "--config", source.file, "--to", target.file]
        var done = try await run(copy + ["--json"])
        #expect(done.status == 1)
        #expect(try JSONValue.parse(Array(done.text.utf8))["error"]?.string == "noSource")
        done = try await run(["migrate", "--config", source.file])
        #expect(done.status == 0 && done.text.contains("There is no database yet"))
        try await world.fill(source)
        done = try await run(["migrate", "--config", source.file, "--json"])
        let step = Int64(Schema.current.steps.count)
        #expect(
            try JSONValue.parse(Array(done.text.utf8)) == [
                "changed": false, "from": .integer(step), "to": .integer(step),
            ])
        done = try await run(copy)
        #expect(done.status == 0, "\(done.complaints)")
        #expect(
            done.text.contains("Copying   attempts  1 row\n") && done.text.contains("Comparing attempts  1 row\n"))
        #expect(done.text.contains("the same on both sides") && done.complaints.isEmpty)
        done = try await run(copy + ["--json"])
        #expect(done.status == 0, "\(done.complaints)")
        #expect(try JSONValue.parse(Array(done.text.utf8))["resumed"] == true)
        try await world.open(target) { _ = try await $0.run(Self.another) }
        done = try await run(copy)
        #expect(done.status == 1 && done.complaints.contains("[targetNotEmpty]"))
        let free = try world.sqlite("free")
        done = try await run(["copy", "--config", target.file, "--to", free.file, "--json"])
        let json = try JSONValue.parse(Array(done.text.utf8))
        let tables = try #require(json["tables"]?.array)
        #expect(json["resumed"] == false)
        #expect(try tables.count == Schema.current.tables().count)
        #expect(tables.allSatisfy { $0["sha256"]?.string?.count == 64 && $0["rows"] != nil })
        done = try await run(["copy", "--config", world.path("none.yaml"), "--to", free.file])
        #expect(done.status == 78)
        done = try await run(["copy", "--config", free.file])
        #expect(done.status == 64)
    }
}
#endif
