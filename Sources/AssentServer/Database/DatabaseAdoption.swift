import AssentConfiguration
import AssentCore
import AssentStore

/// `assent database adopt`: lets this node use the database as it is now, also if it lacks what the node has seen.
package enum DatabaseAdoption {
    /// What was done.
    package enum Outcome: Sendable, Hashable {
        /// The data is in a SQLite file, which has no other servers.
        case notNeeded
        /// The node had not used a database yet.
        case nothingRemembered
        /// The next start takes the database as it is.
        case forgotten
    }

    /// Forgets which history of the database this node has used.
    ///
    /// - Throws: ``ConfigurationError`` when a server has the data directory.
    package static func run(_ configuration: ServerConfiguration) throws -> Outcome {
        guard configuration.postgreSQL != nil else { return .notNeeded }
        let directory = try DataDirectory(configuration.dataDirectory)
        let lock = try DataDirectoryLock(directory)
        defer { lock.release() }
        do {
            return try directory.memory.remove() ? .forgotten : .nothingRemembered
        } catch {
            throw ConfigurationError(file: directory.memory.path, line: nil, error.detail)
        }
    }
}
