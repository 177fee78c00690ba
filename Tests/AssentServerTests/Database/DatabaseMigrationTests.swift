#if PostgreSQL && os(Linux)
import AssentConfiguration
import AssentCore
import AssentStore
import Foundation
import StoreTesting
import Testing

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
