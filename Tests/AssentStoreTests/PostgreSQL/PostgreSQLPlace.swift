#if PostgreSQL && os(Linux)
import AssentCore
import StoreTesting

@testable import AssentStore
import TestSupport

/// A database of one test, on the server that all tests share.
struct PostgreSQLPlace: Sendable {
    let server: PostgreSQLServer
    var configuration: PostgreSQLConfiguration

    init(_ server: PostgreSQLServer? = nil) async throws {
        let server = if let server { server } else { try await PostgreSQLServer.shared() }
        self.server = server
        configuration = try await offPool { try server.makeDatabase() }
        configuration.bePatient(seconds: Patience.seconds)
    }

    var location: DatabaseLocation { .postgresql(configuration) }

    /// A database with the tables of the contract.
    func open() async throws -> any SQLDatabase {
        try await location.open(schema: SQLDatabaseContract.schema, clock: SystemClock())
    }

    /// Lets the superuser run statements in the database.
    @discardableResult
    func sql(_ text: String) async throws -> String {
        try await offPool { [server, configuration] in
            try server.sql(text, in: configuration.database)
        }
    }
}
#endif
