import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import Logging

/// A node's directory and database, opened and checked for a start: the directory is this process's alone, the node id
/// is held, the schema is up to date, and the master key is the one that the data was made with.
struct OpenedStore {
    let directory: DataDirectory
    let lock: DataDirectoryLock
    let location: DatabaseLocation
    let database: any SQLDatabase
    let context: EngineContext
    let watch: NodeWatch

    /// Opens what a configuration names.
    ///
    /// Throws ``/AssentConfiguration/ConfigurationError`` with what to do.
    init(_ configuration: ServerConfiguration, clock: any WallClock, random: any RandomSource, logger: Logger)
        async throws
    {
        directory = try DataDirectory(configuration.dataDirectory)
        lock = try DataDirectoryLock(directory)
        let isNew = configuration.postgreSQL == nil && !DatabaseAccess.mayExist(configuration)
        let masterKey = try directory.masterKey(keyFile: configuration.masterKeyFile, random: random)
        let node = try directory.node(random: random)
        location = try DatabaseLocation(configuration, in: directory, node: node)
        let hold = try await NodeWatch.hold(node, location, in: directory)
        let keyPath = directory.keyPath(configuration.masterKeyFile)
        database = try await Self.database(
            at: location, key: masterKey, from: keyPath, clock: clock, logger: logger)
        context = EngineContext(
            database: database, clock: clock, random: random, masterKey: masterKey,
            node: node, isDatabaseTimed: configuration.isDatabaseTimed, logger: logger)
        watch = NodeWatch(
            context, location, hold, clockLimit: configuration.clockDifferenceSeconds.map { .seconds($0) })
        await watch.look()
        let check = MasterKeyCheck(context)
        guard try await location.explaining({ try await check.isRight() }) else {
            throw location.anotherKey(at: keyPath)
        }
        directory.endFirstStart()
        if isNew {
            // Nothing in an empty directory tells a first start from a disk that is missing.
            logger.notice(
                "a new database was made: if there was one before, stop the server, and mount its data directory",
                metadata: ["file": "\(directory.database)"])
        }
        let audit = AuditLog(context)
        try await location.explaining { try await audit.resume() }
        try await location.explaining {
            try await SenderProofs.begin(context, isDatabaseTimed: configuration.isDatabaseTimed)
        }
    }

    private static func database(
        at location: DatabaseLocation, key: MasterKey, from path: String, clock: any WallClock, logger: Logger
    ) async throws -> any SQLDatabase {
        let database = try await location.explaining {
            try await location.open(withKeyAt: path, { key }, clock: clock, logger: logger)
        }
        guard try await !location.explaining({ try await UnfinishedCopy.isThere(in: database) }) else {
            throw ConfigurationError(
                file: location.name, line: nil,
                "a copy to this database was begun and has not ended: run the same 'assent database copy' again, "
                    + "or name an empty database")
        }
        return database
    }
}
