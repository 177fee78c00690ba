#if PostgreSQL && os(Linux)
import AssentConfiguration
import AssentCore
import AssentStore
import Foundation
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("assent database migrate", .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct DatabaseMigrationTests {
    private let known = Schema.current.steps.count

    @Test("An older database is brought up to date and keeps its rows; after that nothing is to do")
    func older() async throws {
        let world = try CopyWorld()
        for configuration in [try world.sqlite(), try await world.postgreSQL()] {
            try await world.fill(configuration, schema: Schema(Schema.current.steps.dropLast(3)))
            #expect(try await DatabaseMigration.run(configuration) == .migrated(from: known - 3, to: known))
            #expect(try await DatabaseMigration.run(configuration) == .current(step: known))
            #expect(try await world.count(configuration) == 1)
        }
    }

    @Test("An empty PostgreSQL database gets its tables; a file that no start has made stays away")
    func missing() async throws {
        let world = try CopyWorld()
        #expect(try await DatabaseMigration.run(world.postgreSQL()) == .migrated(from: 0, to: known))
        let file = try world.sqlite()
        #expect(try await DatabaseMigration.run(file) == .missing)
        #expect(!FileManager.default.fileExists(atPath: file.dataDirectory))
        let directory = try DataDirectory(file.dataDirectory)
        try PrivateFile.create(directory.database, [])
        #expect(try await DatabaseMigration.run(file) == .missing)
        #expect(try Data(contentsOf: URL(fileURLWithPath: directory.database)).isEmpty)
    }

    @Test("With another master key neither a start nor a command changes the schema: the version before goes on")
    func anotherKey() async throws {
        let world = try CopyWorld()
        try world.makeKey("other")
        let server = try await PostgreSQLServer.shared()
        let made = try await offPool { try server.makeDatabase() }
        let older = Schema(Schema.current.steps.dropLast())
        for (right, wrong) in [
            (try world.sqlite(), try world.sqlite(key: "other")),
            (try await world.postgreSQL(made), try await world.postgreSQL(made, key: "other")),
        ] {
            try await world.open(right, schema: older) { database in
                let context = EngineContext(
                    database: database, clock: SystemClock(), random: SystemRandom(),
                    masterKey: try DatabaseAccess.masterKey(right), logger: Logger(label: "test"))
                #expect(try await MasterKeyCheck(context).isRight())
            }
            let acts: [@Sendable () async throws -> Void] = [
                { _ = try await DatabaseMigration.run(wrong) }, { _ = try await RestoreFence.run(wrong) },
                {
                    _ = try await OpenedStore(
                        wrong, clock: SystemClock(), random: SystemRandom(), logger: Logger(label: "test"))
                },
            ]
            for act in acts {
                let error = await #expect(throws: ConfigurationError.self) { try await act() }
                #expect(error?.message.contains("not the master key") == true, "\(error?.description ?? "")")
                let found = try await CopyWorld.location(right).examine().schema
                #expect(found == .older(step: known - 1, known: known))
            }
            #expect(try await DatabaseMigration.run(right) == .migrated(from: known - 1, to: known))
        }
    }

    @Test("A newer schema, another program's tables, and a server that runs are refused, and nothing changes")
    func refused() async throws {
        let world = try CopyWorld()
        let more = Migration("more", ["CREATE TABLE more (id TEXT PRIMARY KEY)"])
        let schemas = [
            (Schema(Schema.current.steps + [more]), "use a newer assent"),
            (Schema([Migration("x", more.statements + ["DROP TABLE schema_steps"])]), "another program"),
        ]
        for (number, (schema, reason)) in schemas.enumerated() {
            for configuration in [try world.sqlite("data\(number)"), try await world.postgreSQL()] {
                try await world.open(configuration, schema: schema) { _ in }
                let before = try await CopyWorld.location(configuration).examine()
                let error = await #expect(throws: ConfigurationError.self) {
                    try await DatabaseMigration.run(configuration)
                }
                #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
                #expect(try await CopyWorld.location(configuration).examine().schema == before.schema)
            }
        }
        let file = try world.sqlite()
        try await world.fill(file, schema: Schema(Schema.current.steps.dropLast()))
        let lock = try DataDirectoryLock(DataDirectory(file.dataDirectory))
        let error = await #expect(throws: ConfigurationError.self) { try await DatabaseMigration.run(file) }
        #expect(error?.message.contains("another server") == true)
        lock.release()
    }
}
#endif
