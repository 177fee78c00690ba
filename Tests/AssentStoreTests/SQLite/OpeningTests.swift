import AssentCore
import Foundation
import StoreTesting
import Testing

@testable import AssentStore

@Suite("Opening a SQLite database")
struct OpeningTests {
    let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    @Test("Every commit is synced to the disk")
    func synchronousIsFull() async throws {
        let database = try await place.open()
        #expect(try await database.synchronousLevel() == 2)
        _ = try await database.run(insertNote("a"))
        #expect(try await database.synchronousLevel() == 2)
    }

    @Test("A file that is no database is reported as such and not overwritten")
    func refusesOtherFiles() async throws {
        let content = Data(String(repeating: "This is somebody's letter. ", count: 400).utf8)
        try content.write(to: URL(filePath: place.databasePath))
        await #expect(throws: StoreError(.corrupt, "")) { try await place.location.open(clock: SystemClock()) }
        #expect(try Data(contentsOf: URL(filePath: place.databasePath)) == content)
    }

    @Test("A directory where the file is wanted, and a directory that is missing, are reported as unavailable")
    func refusesDirectories() async throws {
        try FileManager.default.createDirectory(atPath: place.databasePath, withIntermediateDirectories: false)
        for path in [place.databasePath, place.url.appending(path: "missing/test.sqlite").path] {
            await #expect(throws: StoreError(.unavailable, "")) {
                try await DatabaseLocation.sqlite(path: path).open(clock: SystemClock())
            }
        }
    }
}
