import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

/// What a page of the documentation says of the bytes of a destroyed key is looked up in the database's own files.
@Suite("The bytes of a destroyed key, and the database's own files")
struct SigningDestroyedBytesTests {
    /// Whether any of these files, or those below them, has the bytes.
    private static func isIn(_ paths: String..., bytes: [UInt8]) throws -> Bool {
        for path in paths {
            var files = [path]
            if let below = FileManager.default.enumerator(atPath: path) {
                files += below.compactMap { ($0 as? String).map { "\(path)/\($0)" } }
            }
            for file in files {
                // What is a directory, or has just gone, has no bytes.
                guard let data = FileManager.default.contents(atPath: file) else { continue }
                if data.range(of: Data(bytes)) != nil { return true }
            }
        }
        return false
    }

    /// A slot among others, whose key an administrator destroys.
    private static func destroyed(
        _ fixture: SigningStoreFixture, key: [UInt8], before: () async throws -> Void
    ) async throws {
        let container = try await fixture.withSlot(key: key)
        for _ in 0..<3 { _ = try await fixture.withSlot(key: SystemRandom().bytes(76)) }
        try await before()
        try #require(try await fixture.slots.act(.wipe, on: .signing, of: container, by: "admin"))
        let rows = try await fixture.base.database.run(
            .read("SELECT sealed_k FROM signing_slots WHERE did = \(container.did)"))
        #expect(try rows.map { try $0.optionalBlob("sealed_k") } == [nil])
    }

    @Test(
        "SQLite's file has them until a checkpoint, its log until that is cut, and neither when the server has ended",
        .disabled(if: TestDatabase.isPostgreSQL, "it looks into SQLite's file"))
    func sqlite() async throws {
        for ends in [false, true] {
            let fixture = try await SigningStoreFixture()
            let database = try #require(fixture.base.database as? SQLiteDatabase)
            let (file, log) = (fixture.base.path, fixture.base.path + "-wal")
            let key = SystemRandom().bytes(76)
            try await Self.destroyed(fixture, key: key) {
                _ = try await database.pragma("wal_checkpoint(TRUNCATE)")
                #expect(try Self.isIn(file, bytes: key))
            }
            // The page without them is in the log only.
            #expect(try Self.isIn(file, bytes: key))
            if ends {
                try database.close()
                #expect(!FileManager.default.fileExists(atPath: log))
            } else {
                _ = try await database.pragma("wal_checkpoint(TRUNCATE)")
            }
            #expect(try !Self.isIn(file, log, bytes: key))
        }
    }

    @Test(
        "SQLite's log has them until it is cut, if they were written since it was begun",
        .disabled(if: TestDatabase.isPostgreSQL, "it looks into SQLite's file"))
    func log() async throws {
        let fixture = try await SigningStoreFixture()
        let database = try #require(fixture.base.database as? SQLiteDatabase)
        let (file, log) = (fixture.base.path, fixture.base.path + "-wal")
        let key = SystemRandom().bytes(76)
        try await Self.destroyed(fixture, key: key) {}
        // What SQLite does by itself from time to time empties the log, but does not cut it.
        _ = try await database.pragma("wal_checkpoint(PASSIVE)")
        #expect(try !Self.isIn(file, bytes: key))
        #expect(try Self.isIn(log, bytes: key))
        _ = try await database.pragma("wal_checkpoint(TRUNCATE)")
        #expect(try !Self.isIn(file, log, bytes: key))
    }

    #if os(Linux)
    @Test(
        "PostgreSQL's table has them until it is written anew, and its log has them longer",
        .enabled(if: TestDatabase.isPostgreSQL))
    func postgreSQL() async throws {
        // Its own upkeep could read while the table is written anew, and what a reader may still see is kept.
        let server = try await PostgreSQLServer.start(settings: ["autovacuum = off"])
        let configuration = try await server.offPool { server in
            var configuration = try server.makeDatabase()
            configuration.bePatient(seconds: Patience.seconds)
            return configuration
        }
        let fixture = try await SigningStoreFixture(.postgresql(configuration))
        func sql(_ text: String) async throws -> String {
            try await server.offPool { try $0.sql(text, in: configuration.database) }
        }
        func table() async throws -> String {
            server.data + "/" + (try await sql("SELECT pg_relation_filepath('signing_slots')"))
        }
        let key = SystemRandom().bytes(76)
        func isStored() async throws -> (table: Bool, log: Bool) {
            _ = try await sql("CHECKPOINT")
            return (
                try Self.isIn(try await table(), bytes: key), try Self.isIn(server.data + "/pg_wal", bytes: key)
            )
        }
        try await Self.destroyed(fixture, key: key) {}
        var stored = try await isStored()
        #expect(stored.table && stored.log)
        // Its connections could have something in progress as well.
        try await fixture.base.database.close()
        _ = try await sql("VACUUM FULL signing_slots")
        stored = try await isStored()
        #expect(!stored.table && stored.log)
    }
    #endif
}
