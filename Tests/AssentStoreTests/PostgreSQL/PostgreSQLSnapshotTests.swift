#if PostgreSQL && os(Linux)
import StoreTesting
import Testing

@testable import AssentStore

@Suite("PostgreSQL: several reads in one call")
struct PostgreSQLSnapshotTests {
    @Test("see the database at one moment, also when another transaction commits between them")
    func snapshot() async throws {
        var place = try await PostgreSQLPlace()
        let reader = try await place.open()
        // Of one connection, which keeps a lock from call to call.
        place.configuration.connections = 1
        let writer = try await place.open()
        let lock = SQLStatement.read("SELECT 1 AS held FROM pg_advisory_lock(7)")
        let count = SQLStatement.read("SELECT count(*) AS n FROM notes")
        _ = try await writer.run(lock)
        async let reads = reader.run([count, lock, count])
        let waiting = """
            SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        while try await place.sql(waiting).filter(\.isNumber) == "0" { await Task.yield() }
        _ = try await writer.run(insertNote("a"))
        _ = try await writer.run(.read("SELECT pg_advisory_unlock(7) AS done"))
        let results = try await reads
        #expect(try results.first?.first?.integer("n") == 0)
        #expect(try results.last?.first?.integer("n") == 0)
        #expect(try await reader.count("notes") == 1)
        try await reader.close()
        try await writer.close()
    }
}
#endif
