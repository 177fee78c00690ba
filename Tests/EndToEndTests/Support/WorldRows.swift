import AssentCore
import AssentEngine
import AssentStore

@testable import AssentDemo
@testable import AssentServer

/// The database of a world, which a test opens beside the server.
extension DemoWorld {
    func rows(_ sql: SQL) async throws -> [SQLRow] { try await onDatabase { try await $0.run(.read(sql)) } }

    /// Forgets how often was tried what the server limits: these programs try it more often in a minute than people do.
    func forgetAttempts() async throws {
        try await AttemptCounter(server.context).purge(before: .max)
    }

    private func onDatabase<Result>(_ work: (any SQLDatabase) async throws -> Result) async throws -> Result {
        let file = configuration.dataDirectory + "/assent.sqlite"
        let location = configuration.postgreSQL.map(DatabaseLocation.postgresql) ?? .sqlite(path: file)
        let database = try await location.open(clock: SystemClock())
        let result = try await work(database)
        try await database.close()
        return result
    }
}
