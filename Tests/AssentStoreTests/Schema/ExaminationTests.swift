import AssentCore
import Foundation
import StoreTesting
import Testing

@testable import AssentStore

@Suite("Looking at a SQLite database without changing it")
struct ExaminationTests {
    let place: TemporaryDirectory
    private let newer = Schema(SQLDatabaseContract.schema.steps + [Migration("more", ["CREATE TABLE more (id TEXT)"])])

    init() throws { place = try TemporaryDirectory() }

    /// The names and bytes of all files in the directory.
    private func files() throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: place.url.path)
        return try Dictionary(
            uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: place.url.appending(path: $0))) })
    }

    @Test("An older, a newer and the same schema are told apart, and every file stays as it was")
    func states() async throws {
        try await place.open().close()
        let before = try files()
        #expect(before.keys.sorted() == ["test.sqlite"])
        let schemas: [(Schema, SchemaState)] = [
            (newer, .older(step: 1, known: 2)), (Schema([]), .newer(step: 1, known: 0)),
            (SQLDatabaseContract.schema, .current(step: 1)),
        ]
        for (schema, state) in schemas {
            let found = try await place.location.examine(schema: schema)
            #expect(found == DatabaseExamination(schema: state, isWhole: true))
        }
        #expect(try files() == before)
    }

    @Test("A server that has the database open is not disturbed, and what it just wrote is seen")
    func open() async throws {
        let server = try await place.location.open(schema: Schema([]), clock: SystemClock())
        #expect(try await place.location.examine(schema: newer).schema == .older(step: 0, known: 2))
        try await SQLDatabaseContract.schema.apply(to: server, clock: SystemClock())
        #expect(try await place.location.examine(schema: newer).schema == .older(step: 1, known: 2))
        _ = try await server.run(insertNote("a"))
        #expect(try await server.count("notes") == 1)
        try await server.close()
    }

    @Test("A database whose server was killed is read with its log, and neither file changes")
    func killed() async throws {
        let server = try await place.open()
        _ = try await server.run(insertNote("a"))
        let copy = try TemporaryDirectory()
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(
                atPath: place.databasePath + suffix, toPath: copy.databasePath + suffix)
        }
        try await server.close()
        let before = try ["", "-wal"].map { try Data(contentsOf: URL(filePath: copy.databasePath + $0)) }
        #expect(try await copy.location.examine(schema: newer).schema == .older(step: 1, known: 2))
        #expect(try ["", "-wal"].map { try Data(contentsOf: URL(filePath: copy.databasePath + $0)) } == before)
        // The next start finds what was in the log.
        #expect(try await copy.open().count("notes") == 1)
    }

    @Test("A missing file and an empty one are a database that is still to be made")
    func missing() async throws {
        #expect(try await place.location.examine().schema == .missing)
        #expect(try files().isEmpty)
        try Data().write(to: URL(filePath: place.databasePath))
        #expect(try await place.location.examine().schema == .missing)
        #expect(try files() == ["test.sqlite": Data()])
    }

    @Test("Another program's tables, a damaged file, a file that is no database and a directory are told apart")
    func others() async throws {
        let other = Schema([Migration("other", ["CREATE TABLE letters (id TEXT)", "DROP TABLE schema_steps"])])
        try await place.location.open(schema: other, clock: SystemClock()).close()
        #expect(try await place.location.examine() == DatabaseExamination(schema: .foreign, isWhole: true))
        let damaged = try TemporaryDirectory()
        let database = try await damaged.open()
        _ = try await database.run((0..<500).map { insertNote("\($0)", body: Array(repeating: 7, count: 200)) })
        try await database.close()
        let file = URL(filePath: damaged.databasePath)
        var bytes = try Data(contentsOf: file)
        for index in 8192..<(bytes.count - 4096) { bytes[index] = 0x5A }
        try bytes.write(to: file)
        #expect((try? await damaged.location.examine(schema: newer).isWhole) != true)
        let letter = try TemporaryDirectory()
        try Data(String(repeating: "letter", count: 400).utf8).write(to: URL(filePath: letter.databasePath))
        await #expect(throws: StoreError(.corrupt, "")) { try await letter.location.examine() }
        await #expect(throws: StoreError(.unavailable, "")) {
            try await DatabaseLocation.sqlite(path: letter.url.path).examine()
        }
    }

    @Test("A path with characters that mean something in a URL is a path")
    func path() async throws {
        let location = DatabaseLocation.sqlite(path: place.url.appending(path: "a b?immutable=0#ü%20.sqlite").path)
        try await location.open(schema: SQLDatabaseContract.schema, clock: SystemClock()).close()
        #expect(try await location.examine(schema: newer).schema == .older(step: 1, known: 2))
    }
}
