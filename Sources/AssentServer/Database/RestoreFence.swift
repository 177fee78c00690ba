import AssentConfiguration
package import AssentCore
package import AssentEngine
import AssentStore
import Logging

/// Makes the database of a restored backup safe to start on: `assent restore-fence`.
package enum RestoreFence {
    /// Brings the schema up to date, and ends what could be used again.
    ///
    /// - Parameters:
    ///   - configuration: the server's file.
    ///   - keepingSessions: whether sessions, grants, consents and the keys of tokens stay as the backup has them.
    ///   - clock: the time.
    ///   - random: names the records that this writes.
    /// - Returns: how much there was.
    /// - Throws: ``ConfigurationError`` when a server uses the database, the database or the master key is missing or
    ///   another one, or the clock is not the database server's.
    package static func run(
        _ configuration: ServerConfiguration, keepingSessions: Bool = false, clock: any WallClock = SystemClock(),
        random: any RandomSource = SystemRandom()
    ) async throws -> RestoredDatabase.Outcome {
        guard DatabaseAccess.mayExist(configuration) else {
            throw ConfigurationError(
                file: DatabaseAccess.path(configuration), line: nil, "there is no database: restore the backup first")
        }
        let masterKey = try DatabaseAccess.masterKey(configuration)
        // The fence writes into this node's own series: one that nobody continues would hide a lost record.
        let node = try DataDirectory.existingNode(configuration.dataDirectory)?.id
        let access = try DatabaseAccess(configuration, memory: .ignored)
        defer { access.release() }
        // To open it so lets all nodes take the database: not before everything is ended that could be used again.
        let adoption: DatabaseLocation? =
            if configuration.postgreSQL == nil {
                nil
            } else {
                try DatabaseAccess(configuration, memory: .replaced).location
            }
        return try await access.location.explaining {
            let servers = try await access.location.connectionsOfServers()
            guard servers == 0 else {
                throw ConfigurationError(
                    file: access.location.name, line: nil,
                    "servers have \(servers) connections to this database: stop all of them, then run this again")
            }
            // Before it is opened: that would make the tables, and this node would forget what it has seen elsewhere.
            try await Self.check(access.location, clock: clock)
            let keyPath = DatabaseAccess.keyPath(configuration)
            let database = try await access.location.open(withKeyAt: keyPath, { masterKey }, clock: clock)
            let outcome: RestoredDatabase.Outcome
            do {
                let context = EngineContext(
                    database: database, clock: clock, random: random, masterKey: masterKey, node: node,
                    logger: Logger(label: "assent.server"))
                guard try await MasterKeyCheck(context).isRight() else {
                    throw access.location.anotherKey(at: keyPath)
                }
                try await Self.compare(clock, with: database, at: access.location, configuration)
                try await AuditLog(context).resume()
                outcome = try await RestoredDatabase(context).fence(keepingSessions: keepingSessions)
                try await AuditLog(context).number()
            } catch {
                try? await database.close()
                throw error
            }
            try await database.close()
            try await adoption?.open(clock: clock).close()
            return outcome
        }
    }

    /// Refuses a database into which nothing was restored, and a file that is damaged, as one that was restored beside
    /// the log of the file before it: SQLite takes that log for its own.
    private static func check(_ location: DatabaseLocation, clock: any WallClock) async throws {
        let damaged = ConfigurationError(
            file: location.name, line: nil,
            "the restored database is damaged. Remove it together with \(location.name)-wal and \(location.name)-shm, "
                + "restore the backup again, then run this again. If it is damaged then, take another backup")
        do {
            let found = try await location.examine(clock: clock)
            guard found.schema != .missing else {
                throw ConfigurationError(
                    file: location.name, line: nil,
                    "there is nothing in this database: restore the backup first, then run this again")
            }
            guard found.isWhole else { throw damaged }
        } catch let error as StoreError where error.code == .corrupt {
            guard case .sqlite = location else { throw error }
            throw damaged
        }
    }

    /// The fence goes by this machine's clock, and allows for as much as that and a node's may differ from the database
    /// server's.
    private static func compare(
        _ clock: any WallClock, with database: any SQLDatabase, at location: DatabaseLocation,
        _ configuration: ServerConfiguration
    ) async throws {
        guard let limit = configuration.clockDifferenceSeconds, let lead = try await database.lead(of: clock),
            abs(lead) >= Int64(limit) * 1000
        else { return }
        throw ConfigurationError(
            file: location.name, line: nil,
            "this machine's clock and the database server's differ by \(abs(lead) / 1000) s, and what was used lately "
                + "might be left out: let both follow NTP, then run this again")
    }
}
