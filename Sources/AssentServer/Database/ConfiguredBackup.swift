import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import Foundation

/// `assent database backup`: writes the database of a configuration into a file, also while servers use it.
package enum ConfiguredBackup {
    /// Writes a new file, which only this user can read, and reads it once.
    ///
    /// - Parameters:
    ///   - configuration: the server's file.
    ///   - path: where the file is made. There must be none.
    ///   - written: is called when all is written, and nothing of it was read yet.
    /// - Returns: how many bytes it has.
    /// - Throws: ``ConfigurationError`` when there is no database, when the file cannot be made or written, or when it
    ///   could not be restored. There is no file then.
    package static func run(
        _ configuration: ServerConfiguration, to path: String, written: () throws -> Void = {}
    ) async throws -> Int {
        guard DatabaseAccess.mayExist(configuration) else {
            throw ConfigurationError(
                file: DatabaseAccess.path(configuration), line: nil, "there is no database to back up")
        }
        let key = try DatabaseAccess.masterKey(configuration)
        let location =
            if let postgreSQL = configuration.postgreSQL {
                try DatabaseLocation(postgreSQL)
            } else {
                try DatabaseLocation(
                    configuration, in: DataDirectory(unchecked: configuration.dataDirectory), node: "")
            }
        // What writes it opens it by its name.
        try PrivateFile.checkPlace(path)
        // Until it was read the file is an empty one, which nobody can restore: a command that is killed must not leave
        // a part of a backup under the name of a whole one.
        try PrivateFile.create(path, [])
        let part = path + ".part"
        do {
            try PrivateFile.create(part, [])
        } catch {
            unlink(path)
            throw error
        }
        do {
            try await location.explaining {
                do {
                    try await location.backUp(to: part)
                } catch let error as StoreError where error.code == .unavailable && configuration.postgreSQL == nil {
                    throw Self.unwritten(error, path, of: location.name)
                }
                try written()
                let rows: [[SQLRow]]
                do {
                    rows = try await location.checkBackup(at: part, reading: [MasterKeyCheck.reading])
                } catch let error as StoreError where error.code == .corrupt {
                    throw ConfigurationError(
                        file: path, line: nil,
                        "the new file cannot be read as a backup, and was removed. \(error.explanation). Look at this "
                            + "disk, and make another")
                }
                if let row = rows.first?.first, !MasterKeyCheck.opens(row, with: key) {
                    throw ConfigurationError(
                        file: DatabaseAccess.keyPath(configuration), line: nil,
                        "this is not the master key of the database: a backup is of no use without that key")
                }
            }
            let size = try PrivateFile.settle(part)
            try PrivateFile.rename(part, to: path)
            return size
        } catch {
            unlink(part)
            unlink(path)
            throw error
        }
    }

    /// What SQLite says when it copies is about the new file as often as about the database.
    static func unwritten(_ error: StoreError, _ path: String, of database: String) -> ConfigurationError {
        ConfigurationError(
            file: path, line: nil,
            "no backup of \(database) could be made here. \(error.explanation). Look at the room on this disk, and at "
                + "the database")
    }
}
