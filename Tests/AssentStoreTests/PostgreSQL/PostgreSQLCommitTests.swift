#if PostgreSQL && os(Linux)
import AssentCore
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: round trips, and a connection that is lost under COMMIT")
struct PostgreSQLCommitTests {
    let place: PostgreSQLPlace
    let proxy: PostgreSQLProxy
    private let spend = SQLStatement(
        "UPDATE notes SET count = count + 1 WHERE id = 'a' RETURNING count", expecting: .exactly(1))

    init() async throws {
        place = try await PostgreSQLPlace()
        proxy = try PostgreSQLProxy(place.configuration)
    }

    private func note(_ id: String, isRecord: Bool) -> SQLStatement {
        isRecord ? .record(insertNote(id).sql) : insertNote(id)
    }

    private func open(connections: Int = 1, outcomeLimit: Int? = nil, idleLimit: Int = 2_000) async throws
        -> any SQLDatabase
    {
        var configuration = proxy.configuration
        configuration.connections = connections
        if let outcomeLimit { configuration.outcomeLimit = outcomeLimit }
        configuration.idleLimit = idleLimit
        // Its mark is a commit, too, and would be the one that is cut.
        configuration.watchInterval = 3_600_000
        let database = try await DatabaseLocation.postgresql(configuration).open(
            schema: SQLDatabaseContract.schema, clock: SystemClock())
        _ = try await database.run(insertNote("a"))
        return database
    }

    @Test("A read is one round trip and a transaction two, with whatever it has and also at the first time")
    func roundTrips() async throws {
        // A transaction that is ended because it stands still begins anew, which costs more.
        let database = try await open(idleLimit: Patience.seconds * 1_000)
        for round in 0..<3 {
            let before = proxy.roundTrips
            _ = try await database.run(.read("SELECT count FROM notes WHERE id = \("a")"))
            #expect(proxy.roundTrips - before == 1, "round \(round)")
            _ = try await database.run([.read("SELECT id FROM notes"), .read("SELECT count(*) AS n FROM notes")])
            #expect(proxy.roundTrips - before == 2, "round \(round)")
            _ = try await database.run([spend] + (0..<20).map { insertNote("\(round)-\($0)") })
            #expect(proxy.roundTrips - before == 4, "round \(round)")
            // What fails costs one more, for taking it back.
            await #expect(throws: StoreError(.unexpectedCount, "")) {
                try await database.run(SQLStatement("DELETE FROM notes WHERE id = 'missing'", expecting: .exactly(1)))
            }
            #expect(proxy.roundTrips - before == 6, "round \(round)")
        }
    }

    @Test("What a crash may take is one round trip, waits for no disk, and lets what comes after it wait as before")
    func unlogged() async throws {
        let database = try await open()
        func setting(_ statement: (SQL) -> SQLStatement) async throws -> String? {
            try await database.run(statement("SELECT current_setting('synchronous_commit') AS value")).first?
                .text("value")
        }
        let usual = try await setting { .read($0) }
        #expect(usual != "off")
        for round in 0..<3 {
            let before = proxy.roundTrips
            #expect(try await setting { .unlogged($0) } == "off")
            #expect(proxy.roundTrips - before == 1, "round \(round)")
            #expect(try await setting { .read($0) } == usual)
            #expect(try await setting { SQLStatement($0) } == usual)
        }
    }

    @Test("Many in a row that a crash may take are one statement each, and what comes after them waits as before")
    func manyUnlogged() async throws {
        let database = try await open()
        func settings(_ statement: (SQL) -> SQLStatement) async throws -> [String?] {
            let row = try await database.run(
                statement(
                    """
                    SELECT current_setting('synchronous_commit') AS commits,
                        current_setting('default_transaction_read_only') AS reading
                    """)
            ).first
            return [try row?.text("commits"), try row?.text("reading")]
        }
        let write = SQLStatement.unlogged("UPDATE notes SET count = count + 1 WHERE id = 'a' RETURNING count")
        let usual = try await settings { .read($0) }
        #expect(usual == ["on", "on"])
        for round in 0..<3 {
            for _ in 0...PostgreSQLSession.unloggedRun { #expect(try await database.run(write).count == 1) }
            let before = proxy.roundTrips
            #expect(try await settings { .unlogged($0) } == ["off", "off"])
            #expect(proxy.roundTrips - before == 1, "round \(round)")
            // What fails changes nothing, and the next one is served.
            await #expect(throws: StoreError(.constraint, "")) {
                try await database.run(.unlogged("INSERT INTO notes (id, count) VALUES ('a', 1) RETURNING id"))
            }
            #expect(try await database.run(write).count == 1)
            switch round {
            case 0: #expect(try await settings { .read($0) } == usual)
            case 1: #expect(try await settings { SQLStatement($0) } == usual)
            default:
                await #expect(throws: StoreError(.statement, "")) { try await database.run(.read(write.sql)) }
            }
            #expect(try await settings { SQLStatement($0) } == usual)
        }
    }

    @Test(
        "Whatever is cut, the caller gets the rows and it is done once, with a record of its own and without",
        arguments: PostgreSQLProxy.Cut.allCases)
    func cut(_ cut: PostgreSQLProxy.Cut) async throws {
        for hasRecord in [true, false] {
            let database = try await open()
            let before = proxy.cuts
            for round in 1...5 {
                proxy.cutNextCommit(cut)
                let rows = try await database.run([spend, note("\(round)", isRecord: hasRecord)])
                #expect(rows == [[SQLRow(["count": SQLValue(round)])], []], "with a record: \(hasRecord)")
                #expect(proxy.cuts == before + round, "with a record: \(hasRecord)")
            }
            #expect(try await database.count("notes") == 6, "with a record: \(hasRecord)")
            _ = try await database.run(SQLStatement("DELETE FROM notes"))
            try await database.close()
        }
    }

    @Test(
        "As long as nobody can find out whether it took place, the caller is told just that, and soon",
        arguments: [true, false])
    func unknown(hasRecord: Bool) async throws {
        for cut in [PostgreSQLProxy.Cut.after, .before] {
            proxy.accept()
            // A transaction that is ended because it stands still is looked for as well, and may not be found in time.
            let database = try await open(outcomeLimit: 300, idleLimit: Patience.seconds * 1_000)
            proxy.cutNextCommit(cut, refusing: true)
            await #expect(throws: StoreError(.outcomeUnknown, "")) {
                try await database.run([spend, note("b", isRecord: hasRecord)])
            }
            proxy.accept()
            try await PostgreSQLTroubleTests.untilItAnswers(database)
            let count = try await database.run(.read("SELECT count FROM notes WHERE id = 'a'")).first?.integer("count")
            #expect(count == (cut == .after ? 1 : 0))
            _ = try await database.run(SQLStatement("DELETE FROM notes"))
        }
    }

    @Test("A server that crashes after a COMMIT was lost tells the truth, also if others got the transaction's number")
    func crash() async throws {
        let server = try await PostgreSQLServer.start()
        for cut in [PostgreSQLProxy.Cut.after, .before] {
            for hasRecord in [true, false] { try await crash(server, cut, hasRecord: hasRecord) }
        }
    }

    private func crash(_ server: PostgreSQLServer, _ cut: PostgreSQLProxy.Cut, hasRecord: Bool) async throws {
        let place = try await PostgreSQLPlace(server)
        let proxy = try PostgreSQLProxy(place.configuration)
        var configuration = proxy.configuration
        // Its mark is a commit, too, and would be the one that is cut.
        configuration.watchInterval = 3_600_000
        let database = try await DatabaseLocation.postgresql(configuration).open(
            schema: SQLDatabaseContract.schema, clock: SystemClock())
        _ = try await database.run(insertNote("a"))
        proxy.cutNextCommit(cut, refusing: true)
        let statements = [spend, note("b", isRecord: hasRecord)]
        let task = Task { try await database.run(statements) }
        while proxy.cuts == 0 { await Task.yield() }
        try await offPool {
            try server.stop("immediate")
            try server.start()
        }
        // Twenty transactions, each with a number.
        try await place.sql(
            "DO $$ BEGIN FOR i IN 1..20 LOOP UPDATE schema_steps SET name = name; COMMIT; END LOOP; END $$")
        proxy.accept()
        #expect(try await task.value == [[SQLRow(["count": 1])], []], "\(cut), with a record: \(hasRecord)")
        let count = try await database.run(.read("SELECT count FROM notes WHERE id = 'a'")).first?.integer("count")
        #expect(count == 1, "\(cut), with a record: \(hasRecord)")
        try await database.close()
    }

    @Test("What is cut is COMMIT itself, and not a BEGIN whose isolation level has the word in it")
    func onlyCommit() async throws {
        _ = try await place.open()
        try await offPool { [proxy] in
            let configuration = proxy.configuration
            let host = try #require(configuration.hosts.first)
            let session = try PostgreSQLOpening(configuration: configuration).open(host, bell: PostgreSQLBell())
            proxy.cutNextCommit(.before)
            // As a connection says it that does not have it prepared.
            _ = try session.exchange([PostgreSQLCommand(PostgreSQLCommand.begin.text, isKept: false)])
            #expect(proxy.cuts == 0)
            #expect(throws: PostgreSQLLoss.self) { try session.commit(limit: 60_000) }
            #expect(proxy.cuts == 1)
        }
    }

    @Test("What connections leave behind to be asked by is deleted a day after their end")
    func leftovers() async throws {
        let other = try await place.open()
        _ = try await other.run(insertNote("b"))
        _ = try await open()
        let rows = "SELECT count(*) FROM latest_commits WHERE at < extract(epoch FROM now()) - 86400"
        try await place.sql("UPDATE latest_commits SET at = at - 86500")
        #expect(try await place.sql(rows) != "0")
        _ = try await place.open()
        #expect(try await place.sql(rows) == "0")
    }

    @Test("A transaction with a record of its own writes nothing besides")
    func ownRecord() async throws {
        let database = try await open()
        let rows = "SELECT sum(number) FROM latest_commits"
        let before = try await place.sql(rows)
        _ = try await database.run([spend, note("b", isRecord: true)])
        #expect(try await place.sql(rows) == before)
        _ = try await database.run([spend, note("c", isRecord: false)])
        #expect(try await place.sql(rows) != before)
    }

    @Test("Nobody ends the connection of a COMMIT that was lost on its way: it may come, and wait for a standby")
    func nothingEnded() async throws {
        let database = try await open(outcomeLimit: 300, idleLimit: Patience.seconds * 1_000)
        proxy.cutNextCommit(.unseen)
        await #expect(throws: StoreError(.outcomeUnknown, "")) {
            try await database.run([spend, note("b", isRecord: true)])
        }
        let open = try await place.sql(
            """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND state = 'idle in transaction'
            """)
        #expect(open == "1")
    }

    @Test("A commit is not taken for one when another server is believed by the time that its answer comes")
    func noLongerBelieved() async throws {
        let database = try await place.open()
        try await offPool { [configuration = place.configuration] in
            let host = try #require(configuration.hosts.first)
            let session = try PostgreSQLOpening(configuration: configuration).open(host, bell: PostgreSQLBell())
            func commit(_ id: String, isCurrent: Bool) throws -> [[SQLRow]] {
                try PostgreSQLTransaction(
                    session: session, work: PostgreSQLWork([insertNote(id)]), configuration: configuration,
                    isCancelled: { false }, isCurrent: { isCurrent }
                ).run()
            }
            _ = try commit("b", isCurrent: true)
            #expect(throws: PostgreSQLTransaction.LostCommit.self) { try commit("c", isCurrent: false) }
        }
        // This server has stored both, but the second must not be reported as stored.
        #expect(try await database.run(.read("SELECT id FROM notes")).count == 2)
    }

    @Test("What a crash may take is not taken for written either when another server is believed by then")
    func unloggedNoLongerBelieved() async throws {
        _ = try await place.open()
        try await offPool { [configuration = place.configuration] in
            let host = try #require(configuration.hosts.first)
            let session = try PostgreSQLOpening(configuration: configuration).open(host, bell: PostgreSQLBell())
            func write(_ id: String, isCurrent: Bool) throws -> [[SQLRow]] {
                let insert = SQLStatement.unlogged(
                    "INSERT INTO spent_proofs (id, expires_at) VALUES (\(id), 1) RETURNING id")
                return try PostgreSQLTransaction(
                    session: session, work: PostgreSQLWork([insert]), configuration: configuration,
                    isCancelled: { false }, isCurrent: { isCurrent }
                ).run()
            }
            #expect(try write("b", isCurrent: true).joined().count == 1)
            #expect(throws: PostgreSQLLoss.self) { try write("c", isCurrent: false) }
        }
    }

    @Test("What has written nothing is answered although its COMMIT is lost")
    func nothingWritten() async throws {
        let database = try await open()
        proxy.cutNextCommit(.after, refusing: true)
        #expect(try await database.run([SQLStatement("DELETE FROM notes WHERE id = 'missing'")]) == [[]])
    }

    @Test("Commits that are cut at random under load: every answer is true", arguments: PostgreSQLProxy.Cut.allCases)
    func load(_ cut: PostgreSQLProxy.Cut) async throws {
        // The commits that confirm others are cut as well.
        let database = try await open(connections: 4)
        _ = try await database.run(SQLStatement("DELETE FROM notes"))
        let ledger = PostgreSQLLedger(database)
        try await ledger.write(writers: 6) { [proxy] in
            for round in 1...30 {
                proxy.cutNextCommit(cut)
                while proxy.cuts < round { await Task.yield() }
            }
        }
        try await ledger.check()
        #expect(proxy.cuts >= 30)
    }
}
#endif
