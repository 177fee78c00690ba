import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import Foundation

/// Where the server keeps what must outlive it: the database, the master key, generated certificates.
struct DataDirectory: Sendable {
    let path: String

    /// Opens a directory and makes it when it is missing, for the server's user alone.
    init(_ path: String) throws {
        self.path = path
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) {
            guard isDirectory.boolValue else {
                throw ConfigurationError(file: path, line: nil, "dataDirectory names a file, not a directory")
            }
        } else {
            do {
                try FileManager.default.createDirectory(
                    atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            } catch {
                throw ConfigurationError(
                    file: path, line: nil, "dataDirectory cannot be made: \(error.localizedDescription)")
            }
        }
        guard access(path, R_OK | W_OK | X_OK) == 0 else {
            throw ConfigurationError(
                file: path, line: nil, "the user who runs this may not write here: run it as the owner, or use 'chown'")
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & 0o022 == 0 else {
            throw ConfigurationError(file: path, line: nil, "other users can write here: run 'chmod 700 \(path)'")
        }
    }

    /// The path of a file in it.
    func file(_ name: String) -> String { path + "/" + name }

    /// The database's path.
    var database: String { file("assent.sqlite") }

    /// Where the store opens the database.
    var databaseLocation: DatabaseLocation { .sqlite(path: database) }

    /// Makes the database's file for this user alone before SQLite would make it for whom the umask says; what SQLite
    /// puts beside it gets the same mode. One that others could read is refused or, where the directory kept them out,
    /// closed.
    func keepDatabasePrivate() throws {
        guard FileManager.default.fileExists(atPath: database) else { return try PrivateFile.create(database, []) }
        for path in [database, database + "-wal", database + "-shm"] {
            var file = stat()
            guard stat(path, &file) == 0, file.st_mode & S_IFMT == S_IFREG, file.st_mode & 0o077 != 0 else { continue }
            var directory = stat()
            guard stat(self.path, &directory) == 0, directory.st_mode & 0o077 == 0 else {
                throw ConfigurationError(
                    file: path, line: nil,
                    "can be read by other users: run 'chmod 600 \(path)', and think who has seen it")
            }
            guard chmod(path, 0o600) == 0 else {
                throw ConfigurationError(file: path, line: nil, "run 'chmod 600 \(path)' as its owner")
            }
        }
    }

    /// What tells this server from others on the same database. It is made once, and belongs to the directory.
    func node(random: any RandomSource) throws -> String {
        let path = file("node")
        if !FileManager.default.fileExists(atPath: path) { try PrivateFile.create(path, Array(random.uuid().utf8)) }
        let text = String(decoding: try PrivateFile.read(path, limit: 64), as: UTF8.self)
        guard text.utf8.count == 36 else {
            throw ConfigurationError(file: path, line: nil, "is no longer what the server has written: remove it")
        }
        return text
    }

    /// Where the master key is: the operator's file, or one of this directory.
    func keyPath(_ keyFile: String?) -> String { keyFile ?? file("master.key") }

    /// The master key: from `keyFile`, or from a file of this directory that is made together with the database.
    ///
    /// A database without its key is never given a new one: everything sealed in it would be lost without a word. Nor
    /// does a key of this directory get a new database: the old one is missing.
    func masterKey(keyFile: String?, random: any RandomSource) throws -> MasterKey {
        let path = keyPath(keyFile)
        let size = try? FileManager.default.attributesOfItem(atPath: database)[.size] as? Int
        if keyFile == nil, size == nil, FileManager.default.fileExists(atPath: path) {
            throw ConfigurationError(
                file: database, line: nil,
                "the database of the master key beside it is missing: restore it, or remove \(path) to begin with an "
                    + "empty one")
        }
        if !FileManager.default.fileExists(atPath: path) {
            guard keyFile == nil else {
                throw ConfigurationError(
                    file: path, line: nil, "the master key is missing: make one with 'head -c 32 /dev/urandom | base64'"
                )
            }
            // An empty file is a first start that was broken off.
            guard size ?? 0 == 0 else {
                throw ConfigurationError(
                    file: path, line: nil, "the master key of this database is missing: restore it beside \(database)")
            }
            // Before the key, which without a database means that this is lost.
            try keepDatabasePrivate()
            let key = Data(random.bytes(MasterKey.byteCount)).base64EncodedString() + "\n"
            try PrivateFile.create(path, Array(key.utf8))
        }
        return try Self.masterKey(at: path, isNamed: keyFile != nil)
    }

    /// The master key in a file, which the configuration names or the server has made.
    static func masterKey(at path: String, isNamed: Bool) throws -> MasterKey {
        let text = String(decoding: try PrivateFile.read(path, limit: 4096, isNamed: isNamed), as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        guard let bytes = Data(base64Encoded: text), bytes.count == MasterKey.byteCount else {
            throw ConfigurationError(
                file: path, line: nil, "a master key is the base 64 of \(MasterKey.byteCount) bytes")
        }
        return try MasterKey(Secret(bytes: bytes))
    }
}
