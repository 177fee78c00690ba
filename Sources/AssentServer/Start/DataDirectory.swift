import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import Foundation

/// Where the server keeps what must outlive it: the database, the master key, generated certificates.
struct DataDirectory: Sendable {
    let path: String

    /// A directory that was checked, or is only looked at.
    init(unchecked path: String) { self.path = path }

    /// Opens a directory and makes it when it is missing (by `making`), for the server's user alone.
    init(_ path: String, making: (String) throws -> Void = DataDirectory.make) throws {
        let isMissing = !FileManager.default.fileExists(atPath: path)
        try Self.check(path)
        self.path = path
        guard isMissing else { return }
        try making(path)
        // Where others may make directories, too, one of them can have been faster: it would then be theirs.
        try Self.check(path)
    }

    /// Makes a directory, for this user alone. One that is there by then stays as it is.
    static func make(_ path: String) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw ConfigurationError(
                file: path, line: nil, "dataDirectory cannot be made: \(error.localizedDescription)")
        }
    }

    /// Finds out, without a change, whether a directory can be used or made.
    ///
    /// - Throws: ``ConfigurationError`` with what to do.
    static func check(_ path: String) throws {
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
            return try checkMaking(path)
        }
        guard isDirectory.boolValue else {
            throw ConfigurationError(file: path, line: nil, "dataDirectory names a file, not a directory")
        }
        guard access(path, R_OK | W_OK | X_OK) == 0 else {
            throw ConfigurationError(file: path, line: nil, Self.obstacle(errno))
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & 0o022 == 0 else {
            throw ConfigurationError(file: path, line: nil, "other users can write here: run 'chmod 700 \(path)'")
        }
    }

    /// Why nothing can be written there, as the system says it (`errno`), and what to do.
    static func obstacle(_ number: Int32) -> String {
        number == EROFS
            ? "it is on a file system that is mounted read-only: mount it for writing, or look why the system did that"
            : "the user who runs this may not write here: run it as the owner, or use 'chown'"
    }

    /// The nearest directory that is there must let this user make the others.
    private static func checkMaking(_ path: String) throws {
        func fail(_ reason: String) -> ConfigurationError {
            ConfigurationError(file: path, line: nil, "dataDirectory cannot be made: \(reason)")
        }
        var above = URL(fileURLWithPath: path)
        var isDirectory: ObjCBool = false
        while !FileManager.default.fileExists(atPath: above.path, isDirectory: &isDirectory), above.path != "/" {
            guard above.lastPathComponent.utf8.count <= Int(NAME_MAX) else {
                throw fail("a name in it has more than \(NAME_MAX) bytes")
            }
            var link = stat()
            guard lstat(above.path, &link) != 0 else { throw fail("\(above.path) is a link that leads nowhere") }
            above.deleteLastPathComponent()
        }
        guard isDirectory.boolValue else { throw fail("\(above.path) is a file") }
        guard access(above.path, W_OK | X_OK) == 0 else {
            throw fail(
                errno == EROFS
                    ? "\(above.path) is on a file system that is mounted read-only"
                    : "this user may not write in \(above.path)")
        }
        // There even root makes no files.
        guard !["/proc", "/sys"].contains(where: { above.path == $0 || above.path.hasPrefix($0 + "/") }) else {
            throw fail("\(above.path) belongs to the system")
        }
    }

    /// The path of a file in it.
    func file(_ name: String) -> String { path + "/" + name }

    /// The database's path.
    var database: String { file("assent.sqlite") }

    /// Where the store opens the database.
    var databaseLocation: DatabaseLocation { .sqlite(path: database) }

    /// What this node remembers of a PostgreSQL database.
    var memory: NodeMemoryFile { NodeMemoryFile(path: file("database-history")) }

    /// Makes the database's file for this user alone before SQLite would make it for whom the umask says; what SQLite
    /// puts beside it gets the same mode. One that others could read is refused or, where the directory kept them out,
    /// closed.
    func keepDatabasePrivate() throws {
        guard FileManager.default.fileExists(atPath: database) else { return try PrivateFile.create(database, []) }
        try checkDatabasePrivate()
        for path in openFiles {
            guard chmod(path, 0o600) == 0 else {
                throw ConfigurationError(file: path, line: nil, "run 'chmod 600 \(path)' as its owner")
            }
        }
    }

    /// Finds out whether others could read the database.
    ///
    /// - Throws: ``ConfigurationError`` unless the directory kept them out.
    func checkDatabasePrivate() throws {
        guard let path = openFiles.first else { return }
        var directory = stat()
        guard stat(self.path, &directory) == 0, directory.st_mode & 0o077 == 0 else {
            throw ConfigurationError(
                file: path, line: nil,
                "can be read by other users: run 'chmod 600 \(path)', and think who has seen it")
        }
    }

    /// The files of the database whose mode lets others read them.
    private var openFiles: [String] {
        [database, database + "-wal", database + "-shm"].filter { path in
            var file = stat()
            return stat(path, &file) == 0 && file.st_mode & S_IFMT == S_IFREG && file.st_mode & 0o077 != 0
        }
    }

    /// What tells this server from others on the same database. It is made once, and belongs to the directory.
    func node(random: any RandomSource) throws -> String {
        let path = file("node")
        removeIfEmpty(path)
        if !FileManager.default.fileExists(atPath: path) {
            // First: a start that is broken off in between does both again.
            try forgetMark()
            try PrivateFile.create(path, Array(random.uuid().utf8))
        }
        let text = String(decoding: try PrivateFile.read(path, limit: 64), as: UTF8.self)
        guard text.utf8.count == 36 else {
            throw ConfigurationError(file: path, line: nil, "is no longer what the server has written: remove it")
        }
        return text
    }

    private func forgetMark() throws {
        do {
            try memory.forgetMark()
        } catch {
            throw ConfigurationError(file: memory.path, line: nil, error.detail)
        }
    }

    /// The node of a directory that a server has used, for commands; `nil` if there is no such directory.
    static func existingNode(_ path: String) throws -> PostgreSQLConfiguration.Node? {
        guard FileManager.default.fileExists(atPath: path + "/node"), !isEmpty(path + "/node") else { return nil }
        let directory = try DataDirectory(path)
        return .init(id: try directory.node(random: SystemRandom()), memory: directory.memory)
    }

    /// Where the master key is: the operator's file, or one of this directory.
    func keyPath(_ keyFile: String?) -> String { keyFile ?? file("master.key") }

    /// The file that is there from before the key is made until the database has something in it: a start that is
    /// broken off in between goes on.
    private var firstStart: String { file("first-start") }

    /// The master key: from `keyFile`, or from a file of this directory that is made together with the database.
    ///
    /// - Throws: ``ConfigurationError``, see ``existingKey(keyFile:)``.
    func masterKey(keyFile: String?, random: any RandomSource) throws -> MasterKey {
        if let key = try existingKey(keyFile: keyFile) { return key }
        if !FileManager.default.fileExists(atPath: firstStart) { try PrivateFile.create(firstStart, []) }
        try keepDatabasePrivate()
        removeIfEmpty(keyPath(nil))
        let key = Data(random.bytes(MasterKey.byteCount)).base64EncodedString() + "\n"
        try PrivateFile.create(keyPath(nil), Array(key.utf8))
        return try Self.masterKey(at: keyPath(nil), isNamed: false)
    }

    /// The master key that is there; `nil` for a first start, which makes one. Changes nothing.
    ///
    /// A database without its key is never given a new one: everything sealed in it would be lost without a word. Nor
    /// does a key of this directory get a new database: the old one is missing, or was emptied.
    ///
    /// - Throws: ``ConfigurationError`` for a key without its database, or the other way round; and for a file that is
    ///   not a key, or that others can read.
    func existingKey(keyFile: String?) throws -> MasterKey? {
        let path = keyPath(keyFile)
        let size = try? FileManager.default.attributesOfItem(atPath: database)[.size] as? Int
        guard FileManager.default.fileExists(atPath: path), keyFile != nil || !isKeyUnwritten else {
            guard keyFile == nil else {
                throw ConfigurationError(
                    file: path, line: nil,
                    "the master key is missing: put the key of the database there, with mode 0600. Only for a new "
                        + "database make one: (umask 077; head -c 32 /dev/urandom | base64 > \(path))")
            }
            // An empty file is a first start that was broken off.
            guard size ?? 0 == 0 else {
                throw ConfigurationError(
                    file: path, line: nil, "the master key of this database is missing: restore it beside \(database)")
            }
            return nil
        }
        if keyFile == nil, size ?? 0 == 0, size == nil || !FileManager.default.fileExists(atPath: firstStart) {
            throw ConfigurationError(
                file: database, line: nil,
                "the database of the master key beside it is \(size == nil ? "missing" : "empty"): restore it, or remove "
                    + "\(path) to begin with an empty one")
        }
        return try Self.masterKey(at: path, isNamed: keyFile != nil)
    }

    /// Whether the first start was broken off when it had made the file of the master key, and had not written it. An
    /// empty key of a later time was lost, and is not one.
    private var isKeyUnwritten: Bool {
        Self.isEmpty(keyPath(nil)) && FileManager.default.fileExists(atPath: firstStart)
    }

    /// Whether a start has made one of the server's own files, and was broken off before it has written it.
    private static func isEmpty(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
    }

    private func removeIfEmpty(_ path: String) {
        if Self.isEmpty(path) { unlink(path) }
    }

    /// The database has something in it: from now on an empty one was lost.
    func endFirstStart() { unlink(firstStart) }

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
