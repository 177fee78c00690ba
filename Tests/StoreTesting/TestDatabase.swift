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
    /// What such tests look at is not a crash of the server, and hundreds of them write.
    private static let server = Task {
        try await offPool { try PostgreSQLServer(settings: ["fsync = off"]) }
    }
    #endif

    private static let made = Locked<[String: PostgreSQLConfiguration]>([:])

    /// The database for a path; the same for the same path.
    package static func location(_ path: String) async throws -> DatabaseLocation {
        #if os(Linux)
        guard isPostgreSQL else { return .sqlite(path: path) }
        if let configuration = made.withLock({ $0[path] }) { return .postgresql(configuration) }
        let server = try await server.value
        var configuration = try await offPool { try server.makeDatabase() }
        // Many tests share the server.
        configuration.connections = 4
        made.withLock { [configuration] in $0[path] = configuration }
        return .postgresql(configuration)
        #else
        return .sqlite(path: path)
        #endif
    }
}
