#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: connections that end and servers that stop")
struct PostgreSQLTroubleTests {
    @Test("Connections that an administrator ends between statements: every answer is true")
    func terminated() async throws {
        let place = try await PostgreSQLPlace()
        let ledger = PostgreSQLLedger(try await place.open())
        try await ledger.write {
            for _ in 0..<25 {
                await ledger.untilItGrows()
                try await place.sql(
                    """
                    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()
                    """)
            }
        }
        try await ledger.check()
        #expect(ledger.done >= 25)
    }

    @Test("A server whose process is killed, that crashes, and that is restarted: every answer is true")
    func restarted() async throws {
        let server = try await offPool { try PostgreSQLServer() }
        let place = try await PostgreSQLPlace(server)
        let database = try await place.open()
        let ledger = PostgreSQLLedger(database)
        try await ledger.write { [place] in
            await ledger.untilItGrows()
            let processes = try await place.sql(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
            let victim = try #require(processes.split(separator: "\n").first.flatMap { Int32($0) })
            kill(victim, SIGKILL)
            try await Self.untilItAnswers(database)
            for mode in ["immediate", "fast"] {
                try await offPool {
                    try server.stop(mode)
                    try server.start()
                }
                try await Self.untilItAnswers(database)
                await ledger.untilItGrows()
            }
        }
        try await ledger.check()
        #expect(ledger.done >= 3)
    }

    @Test("While the server is away calls are refused at once; when it is back, they succeed without a restart")
    func away() async throws {
        let place = try await PostgreSQLPlace()
        // Who waited would wait for ever.
        let proxy = try PostgreSQLProxy(place.configuration)
        let database = try await DatabaseLocation.postgresql(proxy.configuration).open(
            schema: SQLDatabaseContract.schema, clock: SystemClock())
        proxy.cutAll(refusing: true)
        for _ in 0..<50 {
            await #expect(throws: StoreError(.unavailable, "")) { try await database.run(insertNote("a")) }
            await #expect(throws: StoreError(.unavailable, "")) { try await database.checkHealth() }
        }
        proxy.accept()
        try await Self.untilItAnswers(database)
        _ = try await database.run(insertNote("a"))
        #expect(try await database.count("notes") == 1)
        try await database.close()
    }

    @Test("A hundred want a connection and two are allowed: each waits, is served or refused, and later all are served")
    func crowded() async throws {
        var place = try await PostgreSQLPlace()
        let unhurried = try await place.open()
        _ = try await unhurried.run(insertNote("a"))
        try await unhurried.close()
        place.configuration.connections = 2
        place.configuration.waitingCalls = 30
        place.configuration.waitLimit = 2_000
        place.configuration.lockLimit = 1_000
        let hurried = place
        // Two seconds can be too few for this as well.
        let database = try await Patience.retry("a database is opened in a short time") {
            try await hurried.open()
        } unless: {
            ($0 as? StoreError)?.code != .unavailable
        }
        let holder = try Holder(place)
        try await holder.hold("UPDATE notes SET count = 0 WHERE id = 'a'")
        let (served, refused) = await Self.touch(database, times: 100)
        #expect(served == 0)
        // Two at a time wait for the lock until their time has passed.
        #expect(refused == 100)
        try await holder.release()
        // On a machine that stands still, even two seconds can be too few for one.
        for _ in 0..<30 {
            try await Patience.retry("a call is served when the lock is free") {
                try await Self.touch(database)
            } unless: {
                ($0 as? StoreError)?.code != .unavailable
            }
        }
        // With the holder's. A server that is busy takes a while to end those that were given up.
        let connections =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'assent'"
        try await Patience.wait(until: "two connections and the holder's are left") {
            try await place.sql(connections) == "3"
        }
        try await database.close()
        await #expect(throws: StoreError(.unavailable, "")) { try await database.run(insertNote("b")) }
        // Where calls may wait for long, as many at once are all served.
        place.configuration.waitLimit = Patience.seconds * 1000
        // Each waits for the row that the one before it has locked, and a busy machine may take its time to commit.
        place.configuration.lockLimit = Patience.seconds * 1000
        let patient = try await place.open()
        #expect(await Self.touch(patient, times: 30).served == 30)
    }

    @Test("A hundred want a connection and the server allows five: all are served by those")
    func fewSlots() async throws {
        let place = try await PostgreSQLPlace()
        try await place.sql("ALTER DATABASE \(place.configuration.database) CONNECTION LIMIT 5")
        let database = try await place.open()
        _ = try await database.run(insertNote("a"))
        let (served, _) = await Self.touch(database, times: 100)
        #expect(served == 100)
    }

    @Test("A cancelled task frees its connection while it waits for a lock, and changes nothing")
    func cancelled() async throws {
        var place = try await PostgreSQLPlace()
        place.configuration.connections = 1
        let database = try await place.open()
        _ = try await database.run(insertNote("a"))
        let holder = try Holder(place)
        try await holder.hold("UPDATE notes SET count = 0 WHERE id = 'a'")
        let touch = SQLStatement("UPDATE notes SET count = 1 WHERE id = 'a'", expecting: .exactly(1))
        let task = Task { try await database.run([insertNote("b"), touch]) }
        try await holder.untilSomebodyWaits()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        // The one connection serves others although the lock is still held.
        #expect(try await database.count("notes") == 1)
        try await holder.release()
    }

    @Test("Who closes the database waits for the calls in progress, until it is abandoned", arguments: [true, false])
    func abandoned(isClosedFirst: Bool) async throws {
        var place = try await PostgreSQLPlace()
        (place.configuration.lockLimit, place.configuration.statementLimit) = (600_000, 600_000)
        let database = try await place.open()
        _ = try await database.run(insertNote("a"))
        let holder = try Holder(place)
        try await holder.hold("UPDATE notes SET count = 0 WHERE id = 'a'")
        let isAnswered = Locked(false)
        let task = Task {
            defer { isAnswered.withLock { $0 = true } }
            _ = try await database.run(SQLStatement("UPDATE notes SET count = 1 WHERE id = 'a'"))
        }
        try await holder.untilSomebodyWaits()
        if isClosedFirst {
            async let closing: Void = database.close()
            database.abandon()
            try await closing
        } else {
            database.abandon()
            try await database.close()
        }
        #expect(!isAnswered.withLock { $0 })
        await #expect(throws: StoreError(.unavailable, "")) { try await database.run(insertNote("b")) }
        try await holder.release()
        try await task.value
    }

    @Test("A lock that is held for too long is unavailable, and the connection serves the next")
    func locked() async throws {
        var place = try await PostgreSQLPlace()
        place.configuration.connections = 1
        place.configuration.lockLimit = 50
        let database = try await place.open()
        _ = try await database.run(insertNote("a"))
        let holder = try Holder(place)
        try await holder.hold("UPDATE notes SET count = 0 WHERE id = 'a'")
        let error = await #expect(throws: StoreError(.unavailable, "")) {
            try await database.run([insertNote("b"), SQLStatement("UPDATE notes SET count = 1 WHERE id = 'a'")])
        }
        #expect(error?.detail.contains("held a lock") == true)
        #expect(try await database.count("notes") == 1)
        try await holder.release()
    }

    @Test("Transactions that lock two rows in opposite orders all succeed: PostgreSQL ends one, and it is run again")
    func deadlocks() async throws {
        let place = try await PostgreSQLPlace()
        try await place.sql("ALTER DATABASE \(place.configuration.database) SET deadlock_timeout = '10ms'")
        let database = try await place.open()
        _ = try await database.run([insertNote("a"), insertNote("b"), insertNote("c")])
        let holder = try Holder(place)
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        // Two at a time: of many, one could be ended as often as a transaction is begun.
        for _ in 0..<5 {
            // Each has its first row when it waits for this one, and wants the other's row afterwards.
            try await holder.hold("UPDATE notes SET count = 0 WHERE id = 'c'")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for order in [["a", "c", "b"], ["b", "c", "a"]] {
                    group.addTask {
                        _ = try await database.run(
                            order.map { SQLStatement("UPDATE notes SET count = count + 1 WHERE id = \($0)") })
                    }
                }
                try await Patience.wait(until: "both have a row and wait") {
                    try await place.sql(waiting) == "2"
                }
                try await holder.release()
                try await group.waitForAll()
            }
        }
        let counts = try await database.run(.read("SELECT count FROM notes")).map { try $0.integer("count") }
        #expect(counts == [10, 10, 10])
    }

    @Test("A table that another node has changed does not disturb statements that are prepared already")
    func stalePlans() async throws {
        var place = try await PostgreSQLPlace()
        place.configuration.connections = 1
        let database = try await place.open()
        _ = try await database.run(insertNote("a"))
        for column in ["x", "y"] {
            _ = try await database.run(.read("SELECT * FROM notes"))
            _ = try await database.run([SQLStatement("UPDATE notes SET count = count + 1 RETURNING *")])
            let type = column == "x" ? "ADD COLUMN x TEXT" : "ALTER COLUMN count TYPE numeric"
            try await place.sql("ALTER TABLE notes \(type)")
            let rows = try await database.run(.read("SELECT * FROM notes"))
            #expect(try rows.first?.integer("count") == (column == "x" ? 1 : 2))
            if column == "x" { _ = try await database.run([SQLStatement("UPDATE notes SET level = 1 RETURNING *")]) }
            // Somebody has thrown the prepared statements away.
            _ = try await database.run([SQLStatement("DEALLOCATE ALL")])
            #expect(try await database.count("notes") == 1)
        }
    }

    @Test("A column that another node has renamed has its new name, also in what a prepared statement returns")
    func renamedColumn() async throws {
        var place = try await PostgreSQLPlace()
        place.configuration.connections = 1
        let database = try await place.open()
        _ = try await database.run(insertNote("a"))
        for column in ["level", "height"] {
            for _ in 0..<3 {
                let row = try #require(try await database.run(.read("SELECT * FROM notes")).first)
                #expect(row.names.contains(column))
            }
            if column == "level" { try await place.sql("ALTER TABLE notes RENAME COLUMN level TO height") }
        }
    }

    @Test("Prepared statements that are thrown away within a transaction: it is run again, and the next ones succeed")
    func forgottenWithin() async throws {
        var place = try await PostgreSQLPlace()
        place.configuration.connections = 1
        let database = try await place.open()
        _ = try await database.run(insertNote("a"))
        let forget = SQLStatement("DEALLOCATE ALL")
        _ = try await database.run([.record(insertNote("b").sql), forget])
        #expect(try await database.count("notes") == 2)
        // The first one lets ROLLBACK be prepared, and in the second it is gone.
        let nothing = SQLStatement("DELETE FROM notes WHERE id = 'missing'", expecting: .exactly(1))
        for statements in [[nothing], [forget, nothing]] {
            await #expect(throws: StoreError(.unexpectedCount, "")) { try await database.run(statements) }
        }
        _ = try await database.run(insertNote("c"))
        #expect(try await database.count("notes") == 3)
    }

    // MARK: - Parts

    static func untilItAnswers(_ database: any SQLDatabase) async throws {
        while (try? await database.checkHealth()) == nil { try await SystemClock().sleep(until: .now + 0.01) }
    }

    /// Returns when something can be written again.
    static func untilItWrites(_ database: any SQLDatabase) async throws {
        let nothing = SQLStatement("DELETE FROM notes WHERE id = 'nobody''s'")
        while (try? await database.run(nothing)) == nil { try await SystemClock().sleep(until: .now + 0.01) }
    }

    private static func touch(_ database: any SQLDatabase) async throws {
        _ = try await database.run(SQLStatement("UPDATE notes SET count = count + 1 WHERE id = 'a'"))
    }

    private static func touch(_ database: any SQLDatabase, times: Int) async -> (served: Int, refused: Int) {
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<times {
                group.addTask {
                    do {
                        try await Self.touch(database)
                        return true
                    } catch {
                        #expect((error as? StoreError)?.code == .unavailable)
                        return false
                    }
                }
            }
            return await group.reduce(into: (0, 0)) { if $1 { $0.0 += 1 } else { $0.1 += 1 } }
        }
    }
}

/// A transaction of somebody else that stays open.
struct Holder {
    private let place: PostgreSQLPlace
    private let bell: PostgreSQLBell
    private let session: PostgreSQLSession

    init(_ place: PostgreSQLPlace) throws {
        self.place = place
        bell = try PostgreSQLBell()
        session = try PostgreSQLOpening(configuration: place.configuration).open(bell: bell)
    }

    func hold(_ text: String) async throws {
        _ = try session.exchange([.begin, PostgreSQLCommand(text)])
    }

    func release() async throws { _ = try session.exchange([.rollback]) }

    func untilSomebodyWaits() async throws {
        while try await place.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
            == "0"
        { await Task.yield() }
    }
}
#endif
