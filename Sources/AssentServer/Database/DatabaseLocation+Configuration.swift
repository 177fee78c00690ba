import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import Logging

extension DatabaseLocation {
    /// Where a server's data is. What keeps others from it is checked.
    ///
    /// - Parameters:
    ///   - configuration: the server's configuration.
    ///   - directory: its data directory.
    ///   - node: the node that uses it.
    /// - Throws: ``ConfigurationError`` when others can read what they must not.
    init(_ configuration: ServerConfiguration, in directory: DataDirectory, node: String) throws {
        if var postgreSQL = configuration.postgreSQL {
            postgreSQL.node = .init(id: node, memory: directory.memory)
            try self.init(postgreSQL)
        } else {
            try directory.keepDatabasePrivate()
            self = directory.databaseLocation
        }
    }

    /// A PostgreSQL database, whose password file only this user can read.
    ///
    /// - Throws: ``ConfigurationError`` when others can read it, or it is missing.
    init(_ configuration: PostgreSQLConfiguration) throws {
        if let file = configuration.passwordFile { _ = try PrivateFile.read(file, limit: 4096, isNamed: true) }
        self = .postgresql(configuration)
    }

    /// Opens the database and brings its schema up to date, unless it was made with another master key. Then nothing is
    /// changed: the version of the server before would refuse the new schema, and this one the key.
    ///
    /// - Parameters:
    ///   - path: where the key is.
    ///   - key: reads it, where a schema is older and so the key is wanted.
    ///   - clock: the time that is recorded beside each step of the schema.
    ///   - logger: gets what an operator has to know about the servers of the database.
    /// - Returns: the open database.
    /// - Throws: ``ConfigurationError`` for another key, ``StoreError``, and what `key` throws.
    func open(
        withKeyAt path: String, _ key: () throws -> MasterKey, clock: any WallClock,
        logger: Logger = Logger(label: "assent.store") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> any SQLDatabase {
        try await open(
            clock: clock, logger: logger,
            admitting: { database in
                guard let row = try await database.run(MasterKeyCheck.reading).first else { return }
                let found = try key()
                if !MasterKeyCheck.opens(row, with: found) { throw anotherKey(at: path) }
            })
    }

    /// What is said of a master key that is not the database's.
    func anotherKey(at path: String) -> ConfigurationError {
        ConfigurationError(
            file: path, line: nil,
            "this is not the master key of the database \(name): restore the key that it was made with")
    }

    /// How the operator knows it: the file's path, or the database's name.
    var name: String {
        switch self {
        case .sqlite(let path): path
        case .postgresql(let configuration): configuration.database
        }
    }

    /// Runs `body`; an error of the store becomes one that says which database cannot be used.
    func explaining<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as StoreError {
            switch self {
            case .sqlite(let path):
                throw ConfigurationError(
                    file: path, line: nil,
                    "the database cannot be used. \(error.explanation) \(Self.advice(error.code))")
            case .postgresql(let configuration):
                throw ConfigurationError(
                    file: configuration.database, line: nil,
                    "the PostgreSQL database cannot be used. \(error.explanation)")
            }
        }
    }

    /// What to do about a file that cannot be used.
    private static func advice(_ code: StoreError.Code) -> String {
        switch code {
        case .newerSchema: "Start the version of the server that wrote it, or a newer one"
        case .corrupt: "Restore it from a backup: the content of the file is damaged"
        default: "Look at who owns the file, at its mode, and at the disk"
        }
    }
}
