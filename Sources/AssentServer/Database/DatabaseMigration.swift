import AssentConfiguration
package import AssentCore
import AssentStore

/// `assent database migrate`: brings the schema of a configured database up to date without a server.
package enum DatabaseMigration {
    /// What was done.
    package enum Outcome: Sendable, Hashable {
        /// There is no file yet; the first start makes it.
        case missing
        /// It was up to date already.
        case current(step: Int)
        /// It was at one step, 0 for an empty database, and is at another.
        case migrated(from: Int, to: Int)
    }

    /// Brings it up to date. All missing steps are one transaction.
    ///
    /// - Throws: ``ConfigurationError`` when a server uses the file, when a newer version or another program has used
    ///   the database, when it was made with another master key, or when it cannot be used.
    package static func run(
        _ configuration: ServerConfiguration, clock: any WallClock = SystemClock()
    ) async throws -> Outcome {
        guard DatabaseAccess.mayExist(configuration) else { return .missing }
        let access = try DatabaseAccess(configuration)
        defer { access.release() }
        return try await access.location.explaining {
            let before = try await access.location.examine(clock: clock).schema
            let (from, to) = (step(before), Schema.current.steps.count)
            switch before {
            case .current(let step): return .current(step: step)
            // Tables without a master key beside them are what no server starts on.
            case .missing where configuration.postgreSQL == nil: return .missing
            case .newer, .foreign: throw StoreError(.newerSchema, before.description)
            case .missing, .older: break
            }
            try await access.location.open(
                withKeyAt: DatabaseAccess.keyPath(configuration), { try DatabaseAccess.masterKey(configuration) },
                clock: clock
            ).close()
            return .migrated(from: from, to: to)
        }
    }

    private static func step(_ state: SchemaState) -> Int {
        if case .older(let step, _) = state { step } else { 0 }
    }
}
