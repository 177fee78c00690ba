import AssentCore
import Foundation
import StoreTesting

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

    var location: DatabaseLocation { .sqlite(path: databasePath) }

    /// A database with the two tables of the contract.
    func open() async throws -> any SQLDatabase {
        try await location.open(schema: SQLDatabaseContract.schema, clock: SystemClock())
    }
}

extension SQLDatabase {
    func count(_ table: String) async throws -> Int64 { try await SQLDatabaseContract.count(table, in: self) }
}

func insertNote(_ id: String, owner: String? = nil, body: [UInt8] = []) -> SQLStatement {
    SQLDatabaseContract.insert(id, owner: owner, body: body)
}
