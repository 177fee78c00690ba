import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import Foundation

/// The database of a configuration while its servers are stopped, for commands that work on it.
struct DatabaseAccess {
    let location: DatabaseLocation

    /// Keeps servers out of the data directory of a SQLite file. Several nodes may be on a PostgreSQL database.
    private let lock: DataDirectoryLock?

    /// Milliseconds that a statement may take here: counting the rows of a large table is one.
    private static let statementLimit = 600_000

    /// What becomes of what a node remembers of a PostgreSQL database.
    enum Memory {
        /// A database that lacks what the node has seen is refused.
        case kept
        /// The database is taken as it is, and the node remembers that: it was restored.
        case replaced
        /// It is another database than the one that the node uses.
        case ignored
    }

    /// - Throws: ``ConfigurationError`` when a server has the data directory, or when others can read what they must
    ///   not.
    init(_ configuration: ServerConfiguration, memory: Memory = .kept) throws {
        if var postgreSQL = configuration.postgreSQL {
            postgreSQL.connections = 2
            postgreSQL.statementLimit = Self.statementLimit
            if memory != .ignored { postgreSQL.node = try DataDirectory.existingNode(configuration.dataDirectory) }
            postgreSQL.adoptsHistory = memory == .replaced
            location = try DatabaseLocation(postgreSQL)
            lock = nil
        } else {
            let directory = try DataDirectory(configuration.dataDirectory)
            lock = try DataDirectoryLock(directory)
            location = try DatabaseLocation(configuration, in: directory, node: "")
        }
    }

    /// Lets servers in again.
    func release() { lock?.release() }

    /// Whether a configuration's database is there; an empty file is not one. Of a database on a server, that server
    /// tells.
    static func mayExist(_ configuration: ServerConfiguration) -> Bool {
        if configuration.postgreSQL != nil { return true }
        let size = try? FileManager.default.attributesOfItem(atPath: path(configuration))[.size] as? Int
        return size ?? 0 > 0
    }

    /// The path of the SQLite file of a configuration.
    static func path(_ configuration: ServerConfiguration) -> String {
        configuration.dataDirectory + "/assent.sqlite"
    }

    /// The master key of a configuration, which must be there.
    static func masterKey(_ configuration: ServerConfiguration) throws -> MasterKey {
        let path = keyPath(configuration)
        guard FileManager.default.fileExists(atPath: path) else {
            throw ConfigurationError(
                file: path, line: nil,
                "the master key is missing: put the key of the database there, with mode 0600")
        }
        return try DataDirectory.masterKey(at: path, isNamed: configuration.masterKeyFile != nil)
    }

    /// Where the master key of a configuration is.
    static func keyPath(_ configuration: ServerConfiguration) -> String {
        configuration.masterKeyFile ?? configuration.dataDirectory + "/master.key"
    }
}
