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
    /// - Throws: ``ConfigurationError`` when there is no database, or none of a server, when the file cannot be made or
    ///   written, or when it could not be restored. There is no file then.
    package static func run(
        _ configuration: ServerConfiguration, to path: String, written: () throws -> Void = {}
    ) async throws -> Int {
        guard DatabaseAccess.mayExist(configuration) else {
            throw ConfigurationError(
                file: DatabaseAccess.path(configuration), line: nil, "there is no database to back up")
        }
        let key = try DatabaseAccess.masterKey(configuration)
        let location = try Self.location(configuration)
        if configuration.postgreSQL != nil {
            try await location.explaining { try await Self.refuseOthers(location, configuration, key) }
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
                try Self.refuse(key, unlessItOpens: rows, configuration)
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

    private static func location(_ configuration: ServerConfiguration) throws -> DatabaseLocation {
        if let postgreSQL = configuration.postgreSQL { return try DatabaseLocation(postgreSQL) }
        let directory = DataDirectory(unchecked: configuration.dataDirectory)
        return try DatabaseLocation(configuration, in: directory, node: "")
    }

    /// Refuses a database server's database that is not one of this server. A dump of it can be read as any other: it
    /// would be taken for a backup, and the good ones be removed for it. Of a SQLite file the copy itself tells.
    private static func refuseOthers(
        _ location: DatabaseLocation, _ configuration: ServerConfiguration, _ key: MasterKey
    ) async throws {
        let found = try await location.examine(reading: [MasterKeyCheck.reading])
        switch found.schema {
        case .missing, .foreign:
            throw ConfigurationError(
                file: location.name, line: nil,
                "there is nothing of a server in this database, and so nothing to back up: look whether the file names "
                    + "the right database and role, and whether a restore has failed")
        case .current, .older, .newer: try refuse(key, unlessItOpens: found.rows, configuration)
        }
    }

    /// Refuses a key that is not the one which the database was made with, where `rows` say so.
    private static func refuse(
        _ key: MasterKey, unlessItOpens rows: [[SQLRow]], _ configuration: ServerConfiguration
    ) throws {
        guard let row = rows.first?.first, !MasterKeyCheck.opens(row, with: key) else { return }
        throw ConfigurationError(
            file: DatabaseAccess.keyPath(configuration), line: nil,
            "this is not the master key of the database: a backup is of no use without that key")
    }

    /// What SQLite says when it copies is about the new file as often as about the database.
    static func unwritten(_ error: StoreError, _ path: String, of database: String) -> ConfigurationError {
        ConfigurationError(
            file: path, line: nil,
            "no backup of \(database) could be made here. \(error.explanation). Look at the room on this disk, and at "
                + "the database")
    }
}
