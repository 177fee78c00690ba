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

@Suite("assent database backup", .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct ConfiguredBackupTests {
    /// A server's data, with so many rows, while it is open.
    private func filled(_ world: CopyWorld, _ configuration: ServerConfiguration) async throws -> any SQLDatabase {
        let access = try DatabaseAccess(configuration)
        access.release()
        let database = try await access.location.open(clock: SystemClock())
        let context = EngineContext(
            database: database, clock: SystemClock(), random: SystemRandom(),
            masterKey: try DatabaseAccess.masterKey(configuration), logger: Logger(label: "test"))
        #expect(try await MasterKeyCheck(context).isRight())
        for name in ["ana", "ben"] {
            _ = try await Users(context).create(username: name, realm: "/alpha", passwordHash: nil)
        }
        return database
    }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test("The file of a running server is whole, and its owner's alone; one that is there is not touched")
    func sqlite() async throws {
        let world = try CopyWorld()
        let configuration = try world.sqlite()
        let database = try await filled(world, configuration)
        let path = world.path("backup")
        #expect(try await ConfiguredBackup.run(configuration, to: path) > 4096)
        #expect(try mode(path) == 0o600)
        let copy = try await DatabaseLocation.sqlite(path: path).examine(reading: [.read("SELECT id FROM users")])
        #expect(copy.isWhole && copy.rows.first?.count == 2)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let again = await #expect(throws: ConfigurationError.self) {
            try await ConfiguredBackup.run(configuration, to: path)
        }
        #expect(again?.message == "cannot be made: it is there already")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)
        try await database.close()
        #expect(try await ConfiguredBackup.run(configuration, to: path + "2") > 4096)
        #expect(!FileManager.default.fileExists(atPath: DatabaseAccess.path(configuration) + "-wal"))
    }

    @Test("A dump of a PostgreSQL database can be read, and its owner's alone")
    func postgreSQL() async throws {
        let world = try CopyWorld()
        let section = try await CopyWorld.postgreSQL()
        let configuration = try world.configuration("pg.yaml", CopyWorld.edits(data: "pg", database: section))
        let database = try await filled(world, configuration)
        let path = world.path("backup")
        #expect(try await ConfiguredBackup.run(configuration, to: path) > 4096)
        #expect(try mode(path) == 0o600)
        let location = try DatabaseLocation(try #require(configuration.postgreSQL))
        #expect(try await location.checkBackup(at: path, reading: []).isEmpty)
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 4096)
        try file.close()
        await #expect(throws: StoreError(.corrupt, "")) { try await location.checkBackup(at: path, reading: []) }
        try await database.close()
    }

    @Test("A PostgreSQL database without a server's data, or of another master key, makes no backup: only a dump")
    func notOurs() async throws {
        let world = try CopyWorld()
        let server = try await PostgreSQLServer.shared()
        let known = try await offPool { try server.makeDatabase() }
        let configuration = try await world.postgreSQL(known)
        let path = world.path("backup")
        // Nothing at all, as after a restore that has failed; and another program's table.
        for statement in [nil, "CREATE TABLE letters (id TEXT)"] as [String?] {
            if let statement { _ = try await offPool { try server.sql(statement, in: known.database) } }
            let error = await #expect(throws: ConfigurationError.self) {
                try await ConfiguredBackup.run(configuration, to: path)
            }
            #expect(error?.message.contains("nothing of a server") == true, "\(error?.description ?? "")")
            #expect(error?.file == known.database)
        }
        _ = try await offPool { try server.sql("DROP TABLE letters", in: known.database) }
        try await world.fill(configuration)
        try world.makeKey("other")
        let other = try await world.postgreSQL(known, key: "other")
        let error = await #expect(throws: ConfigurationError.self) { try await ConfiguredBackup.run(other, to: path) }
        #expect(error?.message.contains("not the master key") == true, "\(error?.description ?? "")")
        for name in [path, path + ".part"] { #expect(!FileManager.default.fileExists(atPath: name)) }
        #expect(try await ConfiguredBackup.run(configuration, to: path) > 4096)
    }

    @Test("Until it was read the file is empty: a command that is killed leaves no part of a backup under its name")
    func unread() async throws {
        let world = try CopyWorld()
        let configuration = try world.sqlite()
        try await filled(world, configuration).close()
        let path = world.path("backup")
        func size(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        }
        var sizes: [Int?] = []
        let bytes = try await ConfiguredBackup.run(configuration, to: path) {
            sizes = [try size(path), try size(path + ".part")]
        }
        #expect(sizes == [0, bytes])
        #expect(try size(path) == bytes && mode(path) == 0o600)
        #expect(!FileManager.default.fileExists(atPath: path + ".part"))
        // What is there belongs to somebody.
        _ = FileManager.default.createFile(atPath: path + "2.part", contents: nil)
        await #expect(throws: ConfigurationError.self) {
            try await ConfiguredBackup.run(configuration, to: path + "2")
        }
        #expect(!FileManager.default.fileExists(atPath: path + "2"))
        #expect(FileManager.default.fileExists(atPath: path + "2.part"))
    }

    @Test("In a directory where others can put a file or a link in its place, no backup is made")
    func others() async throws {
        let world = try CopyWorld()
        let configuration = try world.sqlite()
        try await filled(world, configuration).close()
        let directory = world.path("shared")
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        for mode in [0o777, 0o775, 0o722] as [mode_t] {
            try #require(chmod(directory, mode) == 0)
            let error = await #expect(throws: ConfigurationError.self) {
                try await ConfiguredBackup.run(configuration, to: directory + "/backup")
            }
            #expect(error?.message.contains("other users own its directory or can write there") == true)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
        }
        // As /tmp is: nobody takes a file of another user away there.
        for mode in [0o1777, 0o755] as [mode_t] {
            try #require(chmod(directory, mode) == 0)
            #expect(try await ConfiguredBackup.run(configuration, to: directory + "/backup-\(mode)") > 4096)
        }
    }

    @Test("A log that another user has put beside the new file is not read for what the file has")
    func foreignLog() async throws {
        let world = try CopyWorld()
        let configuration = try world.sqlite()
        try await filled(world, configuration).close()
        let files = FileManager.default
        let (first, other, path) = (world.path("first"), world.path("other"), world.path("backup"))
        _ = try await ConfiguredBackup.run(configuration, to: first)
        try files.copyItem(atPath: first, toPath: other)
        // With this log the file would not be a database of a server.
        let database = try await DatabaseLocation.sqlite(path: other).open(clock: SystemClock())
        _ = try await database.run(SQLStatement("DROP TABLE schema_steps"))
        let log = try Data(contentsOf: URL(fileURLWithPath: other + "-wal"))
        try #require(!log.isEmpty)
        let bytes = try await ConfiguredBackup.run(configuration, to: path) {
            try log.write(to: URL(fileURLWithPath: path + ".part-wal"))
        }
        try await database.close()
        #expect(bytes > 4096)
        // SQLite makes that when it reads a log.
        #expect(!files.fileExists(atPath: path + ".part-shm"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + ".part-wal")) == log)
    }

    @Test("What is wrong with the new file is told of that, and not of the database")
    func blame() async throws {
        let world = try CopyWorld()
        let configuration = try world.sqlite()
        try await filled(world, configuration).close()
        let path = world.path("backup")
        let error = await #expect(throws: ConfigurationError.self) {
            try await ConfiguredBackup.run(configuration, to: path) {
                try Data(String(repeating: "letter", count: 2_000).utf8).write(to: URL(fileURLWithPath: path + ".part"))
            }
        }
        #expect(error?.file == path, "\(error?.description ?? "")")
        #expect(error?.message.contains("cannot be read as a backup, and was removed") == true)
        for name in [path, path + ".part"] { #expect(!FileManager.default.fileExists(atPath: name)) }
        let full = ConfiguredBackup.unwritten(StoreError(.unavailable, "SQLite 13, disk is full"), path, of: "a.sqlite")
        #expect(full.file == path && full.message.contains("a.sqlite could be made here. SQLite 13, disk is full."))
    }

    @Test("Where there is no database, another key, or no room for a file, nothing is left")
    func refusals() async throws {
        let world = try CopyWorld()
        let configuration = try world.sqlite()
        let path = world.path("backup")
        await #expect(throws: ConfigurationError.self) { try await ConfiguredBackup.run(configuration, to: path) }
        try await filled(world, configuration).close()
        await #expect(throws: ConfigurationError.self) {
            try await ConfiguredBackup.run(configuration, to: world.path("nowhere/backup"))
        }
        try world.makeKey("other")
        let other = try world.sqlite(key: "other")
        let error = await #expect(throws: ConfigurationError.self) {
            try await ConfiguredBackup.run(other, to: path)
        }
        #expect(error?.message.contains("not the master key") == true)
        for name in [path, path + ".part"] { #expect(!FileManager.default.fileExists(atPath: name)) }
    }
}
#endif
