import AssentCore
package import AssentStore
import Foundation
import TestSupport

/// Where a test keeps its data: in a SQLite file or, if the variable `ASSENT_TEST_DATABASE` is `postgresql`, in a
/// PostgreSQL database that is made for the file's path.
package enum TestDatabase {
    /// Whether tests run on PostgreSQL.
    package static let isPostgreSQL = ProcessInfo.processInfo.environment["ASSENT_TEST_DATABASE"] == "postgresql"

    #if os(Linux)
    private static let databases = Task { try await ReusedDatabases() }
    #endif

    /// A SQLite file with the store's schema and no rows: to make its tables takes ten times as long as to copy it.
    private static let template = Task { try await emptyFile() }

    private static let made = Locked<[String: PostgreSQLConfiguration]>([:])

    /// The database for a path; the same for the same path.
    ///
    /// It has the store's schema and no rows, or nothing at all if it `isEmpty`. A PostgreSQL database can be given to
    /// another test once the path's directory has gone.
    package static func location(_ path: String, isEmpty: Bool = false) async throws -> DatabaseLocation {
        #if os(Linux)
        guard isPostgreSQL else {
            if !isEmpty { try await copyTemplate(to: path) }
            return .sqlite(path: path)
        }
        if let configuration = made.withLock({ $0[path] }) { return .postgresql(configuration) }
        let databases = try await databases.value
        var configuration =
            try await isEmpty
            ? offPool { try databases.server.makeDatabase() } : offPool { try databases.take(path) }
        // Many tests share the server.
        configuration.connections = 4
        configuration.bePatient(seconds: Patience.seconds)
        made.withLock { [configuration] in $0[path] = configuration }
        return .postgresql(configuration)
        #else
        if !isEmpty { try await copyTemplate(to: path) }
        return .sqlite(path: path)
        #endif
    }

    /// A SQLite file at a path, with the store's schema and no rows, whatever database the tests have.
    package static func sqlite(_ path: String) async throws -> DatabaseLocation {
        try await copyTemplate(to: path)
        return .sqlite(path: path)
    }

    private static func copyTemplate(to path: String) async throws {
        guard !FileManager.default.fileExists(atPath: path) else { return }
        try await template.value.write(to: URL(filePath: path), options: .withoutOverwriting)
    }

    private static func emptyFile() async throws -> Data {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-template-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = directory.appending(path: "assent.sqlite")
        try await DatabaseLocation.sqlite(path: file.path).open(clock: SystemClock()).close()
        return try Data(contentsOf: file)
    }
}
