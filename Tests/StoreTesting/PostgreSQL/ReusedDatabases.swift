#if os(Linux)
import AssentCore
import AssentStore
import Foundation
import TestSupport

/// The databases of one PostgreSQL server, each for one test after the other: to empty one takes a tenth of the time
/// that it takes to make one, and thousands of tests have one.
final class ReusedDatabases: Sendable {
    let server: PostgreSQLServer

    private struct Taken {
        let directory: String
        let configuration: PostgreSQLConfiguration
    }

    private let taken = Locked<[Taken]>([])
    private let template: String
    private let shape: String

    init() async throws {
        // What such tests look at is not a crash of the server, and hundreds of them write.
        let settings = [
            "fsync = off", "full_page_writes = off", "wal_level = minimal", "max_wal_senders = 0", "autovacuum = off",
            "max_wal_size = 4GB", "checkpoint_timeout = 1h",
        ]
        server = try await PostgreSQLServer.start(settings: settings)
        var configuration = try await offPool { [server] in try server.makeDatabase() }
        // Where many tests begin at once, a server's usual seconds are not enough, and all tests of this process fail.
        configuration.bePatient(seconds: Patience.seconds)
        try await DatabaseLocation.postgresql(configuration).open(clock: SystemClock()).close()
        let name = configuration.database
        template = name
        shape = try await offPool { [server] in try server.sql("SELECT \(Self.shape)", in: name) }
        // One that is in use is not emptied, and after five seconds not copied either.
        try await server.waitUntilUnused(name)
        try await offPool { [self] in try empty(name) }
        try await server.waitUntilUnused(name)
    }

    /// A database with the store's tables and no rows, until the directory of the path goes. It blocks.
    func take(_ path: String) throws -> PostgreSQLConfiguration {
        var isDirectory: ObjCBool = false
        let isThere = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
        let directory = isThere && isDirectory.boolValue ? path : (path as NSString).deletingLastPathComponent
        let configuration = try reused() ?? server.makeDatabase(options: "TEMPLATE \(template)")
        // Of a path that has no directory, nobody could say when it is not used any more.
        if FileManager.default.fileExists(atPath: directory), directory != NSTemporaryDirectory() {
            taken.withLock { $0.append(Taken(directory: directory, configuration: configuration)) }
        }
        return configuration
    }

    /// One whose test has ended, has left no connection and has not changed the schema.
    private func reused() -> PostgreSQLConfiguration? {
        guard let ended = nextEnded() else { return nil }
        do {
            try empty(ended.configuration.database)
            return ended.configuration
        } catch {
            return nil
        }
    }

    private func nextEnded() -> Taken? {
        taken.withLock { all in
            all.firstIndex { !FileManager.default.fileExists(atPath: $0.directory) }.map { all.remove(at: $0) }
        }
    }

    private func empty(_ database: String) throws {
        try server.sql(
            """
            SET session_replication_role = replica;
            DO $$
            DECLARE name regclass;
            BEGIN
                IF EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid())
                    OR (SELECT \(Self.shape)) <> '\(shape)'
                THEN
                    RAISE 'in use, or of another shape';
                END IF;
                FOR name IN SELECT oid FROM pg_class
                    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'schema_steps'
                LOOP
                    IF pg_relation_size(name) > 65536 THEN
                        EXECUTE format('TRUNCATE %s CASCADE', name);
                    ELSIF pg_relation_size(name) > 0 THEN
                        EXECUTE format('DELETE FROM %s', name);
                    END IF;
                END LOOP;
            END
            $$
            """, in: database)
    }

    /// Steps of the schema, functions, triggers and constraints; names, kinds and columns of all tables and indexes.
    private static let shape = """
        (SELECT count(*) FROM schema_steps) || ' '
            || (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace) || ' '
            || (SELECT count(*) FROM pg_trigger) || ' ' || (SELECT count(*) FROM pg_constraint) || ' '
            || md5(string_agg(
                concat_ws(' ', c.relname, c.relkind, c.relpersistence, a.attname, a.atttypid, a.attnotnull),
                ',' ORDER BY c.relname, a.attnum))
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = 'public'::regnamespace
        """
}
#endif
