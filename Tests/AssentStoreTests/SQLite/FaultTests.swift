import AssentCore
import StoreTesting
import Testing

@testable import AssentStore

@Suite("SQLite: faults of the disk")
struct SQLiteFaultTests {
    let directory: TemporaryDirectory
    let database: any SQLDatabase

    init() async throws {
        directory = try TemporaryDirectory()
        database = try await directory.open()
    }

    @Test("A full disk is unavailable, changes nothing, and passes")
    func fullDisk() async throws {
        _ = try await database.run(insertNote("a"))
        let pages = try await database.run(.read("PRAGMA page_count")).first?.integer("page_count") ?? 0
        try await database.limitSize(pages: Int(pages))
        let big = [UInt8](repeating: 7, count: 100_000)
        await #expect(throws: StoreError(.unavailable, "")) {
            try await database.run([insertNote("b"), insertNote("c", body: big)])
        }
        #expect(try await database.count("notes") == 1)
        try await database.limitSize(pages: 100_000)
        _ = try await database.run([insertNote("b"), insertNote("c", body: big)])
        #expect(try await database.count("notes") == 3)
    }

    @Test("A read-only database is unavailable for writers, serves readers, and can be written again later")
    func readOnly() async throws {
        _ = try await database.run(insertNote("a"))
        for _ in 0..<2 {
            try await database.setReadOnly(true)
            await #expect(throws: StoreError(.unavailable, "")) { try await database.run(insertNote("b")) }
            #expect(try await database.count("notes") == 1)
            try await database.setReadOnly(false)
        }
        _ = try await database.run(insertNote("b"))
        #expect(try await database.count("notes") == 2)
    }
}
