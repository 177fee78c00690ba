#if PostgreSQL && os(Linux)
import AssentConfiguration
import AssentStore
import Logging
import StoreTesting
import Testing

@testable import AssentServer

@Suite(
    "A start with another master key than the database's",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct OtherMasterKeyTests {
    @Test("It is refused with the key's file and what to do, on both databases; with the right key the server starts")
    func otherKey() async throws {
        let world = try CopyWorld()
        try world.makeKey("other")
        let onServer = try await world.postgreSQL()
        let pairs = [
            (try world.sqlite(), try world.sqlite(key: "other")),
            (onServer, try await world.postgreSQL(onServer.postgreSQL, key: "other")),
        ]
        for (right, wrong) in pairs {
            try await world.fill(right)
            let error = await #expect(throws: ConfigurationError.self) {
                try await IdentityServer(configuration: wrong, logger: Logger(label: "test"))
            }
            #expect(error?.file == wrong.masterKeyFile && error?.file.hasSuffix("/other") == true)
            #expect(error?.message.contains("this is not the master key of the database") == true)
            #expect(error?.message.contains("restore the key that it was made with") == true)
            try await IdentityServer(configuration: right, logger: Logger(label: "test")).database.close()
        }
    }
}
#endif
