import AssentConfiguration
package import AssentCore
import AssentEngine
package import AssentStore
import Foundation

/// `assent database copy`: copies the database of one configuration to that of another.
package struct ConfiguredCopy: Sendable {
    private let source: ServerConfiguration
    private let target: ServerConfiguration
    private let clock: any WallClock
    private let random: any RandomSource

    /// A copy from one configuration to another.
    package init(
        from source: ServerConfiguration, to target: ServerConfiguration, clock: any WallClock = SystemClock(),
        random: any RandomSource = SystemRandom()
    ) {
        self.source = source
        self.target = target
        self.clock = clock
        self.random = random
    }

    /// Copies everything and compares both sides. `report` is told how far it is.
    ///
    /// - Throws: ``DatabaseCopyError``, or ``ConfigurationError`` for what is wrong in one of the files: a missing or
    ///   another master key, a server that runs, a database that cannot be used.
    package func run(report: @escaping @Sendable (CopyProgress) -> Void = { _ in }) async throws -> CopyReport {
        let keys = (source: try DatabaseAccess.masterKey(source), target: try DatabaseAccess.masterKey(target))
        try refuseSameDatabase()
        let from = try await sourceAccess()
        defer { from.release() }
        return try await with(from) { database in
            let identity = try await identity(of: database, keys)
            let to = try await targetAccess()
            defer { to.release() }
            return try await with(to) { target in
                try await refuseSameDatabase(database, target)
                let copy = try DatabaseCopy(from: database, to: target, identity: identity, random: random)
                let result = try await copy.run(report: report)
                // What the node remembers is the source.
                _ = try DataDirectory.existingNode(self.target.dataDirectory)?.memory.remove()
                return result
            }
        }
    }

    /// Opens a database, and closes it at the end.
    private func with<Result>(
        _ access: DatabaseAccess, _ body: (any SQLDatabase) async throws -> Result
    ) async throws -> Result {
        let database = try await access.location.explaining { try await access.location.open(clock: clock) }
        let result: Swift.Result<Result, any Error>
        do {
            result = .success(try await body(database))
        } catch let error as StoreError {
            result = .failure(
                DatabaseCopyError(
                    .brokenOff, "The copy was broken off: \(error.detail)",
                    "Put that right and run the same command again: it goes on where it stopped."))
        } catch {
            result = .failure(error)
        }
        try? await database.close()
        return try result.get()
    }

    private func refuseSameDatabase() throws {
        let isSame =
            switch (source.postgreSQL, target.postgreSQL) {
            case (nil, nil): Self.realPath(source) == Self.realPath(target)
            case (let from?, let to?): from.hosts == to.hosts && from.database == to.database && from.user == to.user
            default: false
            }
        guard !isSame else { throw same }
    }

    /// Refuses a target that is the source by another name of its server, or by another role. It holds the same as the
    /// source, so it would be taken for a copy that has ended.
    private func refuseSameDatabase(_ database: any SQLDatabase, _ target: any SQLDatabase) async throws {
        guard source.postgreSQL != nil, self.target.postgreSQL != nil else { return }
        let isSame = try await Self.place(of: database) == Self.place(of: target)
        guard !isSame else { throw same }
    }

    /// Which table of which present run of a PostgreSQL server the data is in.
    private static func place(of database: any SQLDatabase) async throws -> String? {
        let reading = SQLStatement.read(
            """
            SELECT CAST(CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT) AS TEXT) || ' '
                || CAST(d.oid AS TEXT) || ' ' || CAST(CAST(to_regclass('server_state') AS OID) AS TEXT) AS place
            FROM pg_database d WHERE d.datname = current_database()
            """)
        return try await database.run(reading).first?.text("place")
    }

    private var same: ConfigurationError {
        ConfigurationError(
            file: target.file, line: nil, "names the same database as \(source.file): a copy needs two")
    }

    private static func realPath(_ configuration: ServerConfiguration) -> String {
        URL(fileURLWithPath: configuration.dataDirectory).resolvingSymlinksInPath().standardizedFileURL.path
    }

    // MARK: - The source

    private func sourceAccess() async throws -> DatabaseAccess {
        guard DatabaseAccess.mayExist(source) else {
            throw DatabaseCopyError(
                .noSource, "There is no database at \(DatabaseAccess.path(source)).", "Name the file of the server.")
        }
        let access = try DatabaseAccess(source)
        try await access.location.explaining {
            let servers = try await access.location.connectionsOfServers()
            guard servers == 0 else {
                throw DatabaseCopyError(
                    .sourceInUse, "Servers have \(servers) connections to the source.",
                    "Stop all servers of that database, then copy.")
            }
            let found = try await access.location.examine(clock: clock)
            guard found.isWhole else { throw StoreError(.corrupt, "it is damaged: restore it from a backup") }
            guard case .current = found.schema else {
                throw DatabaseCopyError(
                    .schemaDiffers, "The source is not as this version needs it: \(found.schema).",
                    "Run 'assent database migrate --config \(source.file)' first, or use the version that fits.")
            }
        }
        return access
    }

    /// What tells the source from others: its value for the master key, which was made once and is copied.
    private func identity(
        of database: any SQLDatabase, _ keys: (source: MasterKey, target: MasterKey)
    ) async throws -> [UInt8] {
        guard let row = try await database.run(MasterKeyCheck.reading).first else {
            throw DatabaseCopyError(
                .noSource, "No server has used the source yet, or none of this version.",
                "If it has data, start its server once with this version and stop it.")
        }
        for (configuration, key) in [(source, keys.source), (target, keys.target)]
        where !MasterKeyCheck.opens(row, with: key) {
            throw ConfigurationError(
                file: DatabaseAccess.keyPath(configuration), line: nil,
                "this is not the master key of the source: a copy is of no use without the key that it was made with")
        }
        return try row.blob("value")
    }

    // MARK: - The target

    private func targetAccess() async throws -> DatabaseAccess {
        let access = try DatabaseAccess(target, memory: .ignored)
        try await access.location.explaining {
            let state = try await access.location.examine(clock: clock).schema
            switch state {
            case .missing, .current: break
            case .older, .newer:
                throw DatabaseCopyError(
                    .schemaDiffers, "The target has another schema than this version: \(state).",
                    "Name an empty database.")
            case .foreign:
                throw DatabaseCopyError(
                    .targetNotEmpty, "In the target, \(state).", "Name an empty database, or give its role a schema.")
            }
        }
        return access
    }
}
