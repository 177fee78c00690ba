import AssentConfiguration
package import AssentCore
package import AssentEngine
import AssentStore
import Logging

/// Makes the database of a restored backup safe to start on: `assent restore-fence`.
package enum RestoreFence {
    /// Brings the schema up to date, and ends what was open when the backup was made.
    ///
    /// - Throws: ``ConfigurationError`` when a server uses the file, or the database or the master key is missing or
    ///   another one.
    package static func run(
        _ configuration: ServerConfiguration, clock: any WallClock = SystemClock(),
        random: any RandomSource = SystemRandom()
    ) async throws -> SigningFence.Outcome {
        guard DatabaseAccess.mayExist(configuration) else {
            throw ConfigurationError(
                file: DatabaseAccess.path(configuration), line: nil, "there is no database: restore the backup first")
        }
        let masterKey = try DatabaseAccess.masterKey(configuration)
        let access = try DatabaseAccess(configuration)
        defer { access.release() }
        return try await access.location.explaining {
            let database = try await access.location.open(clock: clock)
            let context = EngineContext(
                database: database, clock: clock, random: random, masterKey: masterKey,
                logger: Logger(label: "assent.server"))
            guard try await MasterKeyCheck(context).isRight() else {
                throw ConfigurationError(
                    file: DatabaseAccess.keyPath(configuration), line: nil,
                    "this is not the master key of the database: restore the key that it was made with")
            }
            try await AuditLog(context).resume()
            let outcome = try await SigningFence.run(context)
            try await database.close()
            return outcome
        }
    }
}
