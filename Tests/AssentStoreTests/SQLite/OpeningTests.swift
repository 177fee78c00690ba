import AssentCore
import Foundation
import Testing

@testable import AssentStore

@Suite("Opening a SQLite database")
struct OpeningTests {
    let directory = try? TemporaryDirectory()

    private func place() throws -> TemporaryDirectory { try #require(directory) }

    @Test("Every commit is synced to the disk")
    func synchronousIsFull() async throws {
        let database = try await SQLiteDatabase.sample(in: try place())
        #expect(try await database.synchronousLevel() == 2)
        _ = try await database.run(insertNote("a"))
        #expect(try await database.synchronousLevel() == 2)
    }

    @Test("Opening again applies no step twice and keeps what is there")
    func migratesOnce() async throws {
        let path = try place().databasePath
        for round in 1...3 {
            let database = try await SQLiteDatabase(path: path, migrations: Migration.all, clock: SystemClock())
            #expect(try await database.count("schema_steps") == Int64(Migration.all.count))
            _ = try await database.run(
                SQLStatement(
                    "INSERT INTO attempts (counter, window_start, count) VALUES ('a', ?1, 1)", [SQLValue(round)]))
            #expect(try await database.count("attempts") == Int64(round))
            try database.close()
        }
    }

    @Test("An older schema is brought up to date, step by step")
    func migratesFurther() async throws {
        let path = try place().databasePath
        let old = try await SQLiteDatabase(path: path, migrations: [.sample], clock: SystemClock())
        _ = try await old.run(insertNote("kept"))
        try old.close()
        let more = Migration("more", ["ALTER TABLE notes ADD COLUMN title TEXT"])
        let new = try await SQLiteDatabase(path: path, migrations: [.sample, more], clock: SystemClock())
        let rows = try await new.run(.read("SELECT id, title FROM notes"))
        #expect(rows == [SQLRow(["id": "kept", "title": .null])])
    }

    @Test("A schema that a newer version made is refused and left alone")
    func refusesNewerSchema() async throws {
        let path = try place().databasePath
        let more = Migration("more", ["CREATE TABLE later (id TEXT)"])
        try await SQLiteDatabase(path: path, migrations: [.sample, more], clock: SystemClock()).close()
        await #expect(throws: StoreError(.newerSchema, "")) {
            try await SQLiteDatabase(path: path, migrations: [.sample], clock: SystemClock())
        }
        let again = try await SQLiteDatabase(path: path, migrations: [.sample, more], clock: SystemClock())
        #expect(try await again.count("schema_steps") == 2)
    }

    @Test("A step that fails leaves the schema as it was")
    func failedStepChangesNothing() async throws {
        let path = try place().databasePath
        try await SQLiteDatabase(path: path, migrations: [.sample], clock: SystemClock()).close()
        let broken = Migration("broken", ["CREATE TABLE half (id TEXT)", "CREATE TABLE half (id TEXT)"])
        await #expect(throws: StoreError.self) {
            try await SQLiteDatabase(path: path, migrations: [.sample, broken], clock: SystemClock())
        }
        let database = try await SQLiteDatabase(path: path, migrations: [.sample], clock: SystemClock())
        let tables = try await database.run(.read("SELECT name FROM sqlite_master WHERE name = 'half'"))
        #expect(tables.isEmpty)
        #expect(try await database.count("schema_steps") == 1)
    }

    @Test("Instances that open one empty file at the same moment share one schema")
    func parallelOpening() async throws {
        let path = try place().databasePath
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    let database = try await SQLiteDatabase(path: path, clock: SystemClock())
                    #expect(try await database.count("schema_steps") == Int64(Migration.all.count))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("A file that is no database is reported as such and not overwritten")
    func refusesOtherFiles() async throws {
        let path = try place().databasePath
        let content = Data(String(repeating: "This is somebody's letter. ", count: 400).utf8)
        try content.write(to: URL(filePath: path))
        await #expect(throws: StoreError(.corrupt, "")) {
            try await SQLiteDatabase(path: path, clock: SystemClock())
        }
        #expect(try Data(contentsOf: URL(filePath: path)) == content)
    }

    @Test("A directory where the file is wanted, and a directory that is missing, are reported as unavailable")
    func refusesDirectories() async throws {
        let place = try place()
        try FileManager.default.createDirectory(atPath: place.databasePath, withIntermediateDirectories: false)
        for path in [place.databasePath, place.url.appending(path: "missing/test.sqlite").path] {
            await #expect(throws: StoreError(.unavailable, "")) {
                try await SQLiteDatabase(path: path, clock: SystemClock())
            }
        }
    }
}
