#if PostgreSQL && os(Linux)
import Logging
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: the connections that a node opens at its first start")
struct PostgreSQLFirstStartTests {
    @Test("Two at a time begin one generation: the one that waited looks again before it judges")
    func parallel() async throws {
        let place = try await PostgreSQLPlace()
        try await place.open().close()
        // The tables are there, and no node has used the database yet.
        try await place.sql("DELETE FROM history; DELETE FROM history_marks")
        let keeper = PostgreSQLKeeper(place.configuration, logger: Logger(label: "test"))
        defer { keeper.end() }
        let host = try #require(place.configuration.hosts.first)
        let blocker = try PostgreSQLOpening(configuration: place.configuration).open(host, bell: PostgreSQLBell())
        // Everybody can read the history, and nobody can add to it.
        _ = try blocker.exchange([.begin, PostgreSQLCommand("LOCK TABLE history IN SHARE MODE", isKept: false)])
        async let first: Void = offPool { _ = try keeper.opening.open(bell: PostgreSQLBell()) }
        async let second: Void = offPool { _ = try keeper.opening.open(bell: PostgreSQLBell()) }
        // One of them adds a generation; the other has seen that there is none, and waits for the first.
        let state = """
            SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'),
                count(*) FILTER (WHERE state = 'idle' AND query LIKE '%FROM history_marks%')
            FROM pg_stat_activity WHERE datname = current_database()
            """
        while try await place.sql(state) != "1|1" { await Task.yield() }
        _ = try blocker.exchange([.rollback])
        try await first
        try await second
        #expect(try await place.sql("SELECT count(*) FROM history") == "1")
    }
}
#endif
