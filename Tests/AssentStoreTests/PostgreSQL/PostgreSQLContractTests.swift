#if PostgreSQL && os(Linux)
import StoreTesting
import Testing

@testable import AssentStore

@Suite("The contract of a database, over a network")
struct PostgreSQLContractTests {
    @Test("PostgreSQL keeps it", arguments: SQLDatabaseContract.rules)
    func postgresql(_ rule: SQLDatabaseContract.Rule) async throws {
        let place = try await PostgreSQLPlace()
        try await rule.check { try await place.open() }
    }
}
#endif
