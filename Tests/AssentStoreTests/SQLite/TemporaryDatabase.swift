import AssentCore
import Foundation

@testable import AssentStore

/// A directory that is gone with its last reference.
final class TemporaryDirectory: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "assent-store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    var databasePath: String { url.appending(path: "test.sqlite").path }
}

extension Migration {
    /// A schema of two tables for tests of the store itself.
    static let sample = Migration(
        "sample",
        [
            "CREATE TABLE owners (id TEXT PRIMARY KEY)",
            """
            CREATE TABLE notes (
                id TEXT PRIMARY KEY, owner_id TEXT REFERENCES owners (id), body BLOB, count BIGINT NOT NULL DEFAULT 0)
            """,
        ])
}

extension SQLiteDatabase {
    static func sample(in directory: TemporaryDirectory) async throws -> SQLiteDatabase {
        try await SQLiteDatabase(path: directory.databasePath, migrations: [.sample], clock: SystemClock())
    }

    func count(_ table: String) async throws -> Int64 {
        try await run(.read("SELECT count(*) AS n FROM \(table)")).first?.integer("n") ?? -1
    }
}

func insertNote(_ id: String, owner: String? = nil, body: [UInt8] = []) -> SQLStatement {
    SQLStatement(
        "INSERT INTO notes (id, owner_id, body) VALUES (?1, ?2, ?3)",
        [.text(id), SQLValue(owner), .blob(body)], expecting: .exactly(1))
}
