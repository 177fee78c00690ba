import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentServer

@Suite("The data directory")
struct DataDirectoryTests {
    private func temporary() throws -> String {
        let path = NSTemporaryDirectory() + "assent-data-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        return path
    }

    private func permissions(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test("It is made for the server alone, and so is the master key, which then stays the same")
    func made() throws {
        let parent = try temporary()
        defer { try? FileManager.default.removeItem(atPath: parent) }
        let directory = try DataDirectory(parent + "/a/b")
        #expect(try permissions(directory.path) == 0o700)
        let key = try directory.masterKey(keyFile: nil, random: SystemRandom())
        #expect(try permissions(directory.file("master.key")) == 0o600)
        let sealed = try key.seal(Secret("x"), for: .serverKey, context: "c")
        let again = try directory.masterKey(keyFile: nil, random: SystemRandom())
        #expect(try again.open(sealed, for: .serverKey, context: "c").reveal() == "x")
    }

    @Test("A directory that another user makes at the same moment is not taken for the server's own")
    func overtaken() throws {
        let parent = try temporary()
        defer { try? FileManager.default.removeItem(atPath: parent) }
        let error = #expect(throws: ConfigurationError.self) {
            try DataDirectory(parent + "/data") { path in
                try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
                chmod(path, 0o777)
            }
        }
        #expect(error?.message.contains("other users can write here") == true)
    }

    @Test("A lock that was let go of is free, though a child that was forked meanwhile has its descriptor")
    func inherited() throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        let lock = try DataDirectoryLock(directory)
        let path = URL(fileURLWithPath: directory.file("serve.lock")).resolvingSymlinksInPath().path
        let ours = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap(Int32.init)
            .first { (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path }
        // As after a fork: another descriptor of what is open.
        let inherited = dup(try #require(ours))
        defer { close(inherited) }
        lock.release()
        try DataDirectoryLock(directory).release()
    }

    @Test("A database whose key is gone is not given a new one")
    func keyGone() throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        try Data("x".utf8).write(to: URL(fileURLWithPath: directory.database))
        let error = #expect(throws: ConfigurationError.self) {
            try directory.masterKey(keyFile: nil, random: SystemRandom())
        }
        #expect(error?.message.contains("restore it") == true)
        #expect(!FileManager.default.fileExists(atPath: directory.file("master.key")))
    }

    @Test("A key whose database is gone is not given a new one; a first start that was broken off goes on")
    func databaseGone() throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        try PrivateFile.create(directory.database, [])
        _ = try directory.masterKey(keyFile: nil, random: SystemRandom())
        _ = try directory.masterKey(keyFile: nil, random: SystemRandom())
        try FileManager.default.removeItem(atPath: directory.database)
        let error = #expect(throws: ConfigurationError.self) {
            try directory.masterKey(keyFile: nil, random: SystemRandom())
        }
        #expect(error?.message.contains("the database of the master key beside it is missing") == true)
        #expect(!FileManager.default.fileExists(atPath: directory.database))
        _ = try directory.masterKey(keyFile: directory.file("master.key"), random: SystemRandom())
    }

    @Test("An emptied database beside its key is refused like a missing one; the file of a first start is not emptied")
    func databaseEmptied() throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        _ = try directory.masterKey(keyFile: nil, random: SystemRandom())
        #expect(throws: Never.self) { try directory.masterKey(keyFile: nil, random: SystemRandom()) }
        directory.endFirstStart()
        let error = #expect(throws: ConfigurationError.self) {
            try directory.masterKey(keyFile: nil, random: SystemRandom())
        }
        #expect(error?.file == directory.database && error?.message.contains("is empty: restore it") == true)
        _ = try directory.masterKey(keyFile: directory.file("master.key"), random: SystemRandom())
    }

    @Test("A first start that was killed when it had made a file and not written it goes on; an emptied key is refused")
    func unwritten() throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        for name in ["first-start", "assent.sqlite", "master.key", "node"] {
            try PrivateFile.create(directory.file(name), [])
        }
        #expect(try directory.existingKey(keyFile: nil) == nil)
        #expect(try DataDirectory.existingNode(directory.path) == nil)
        let key = try directory.masterKey(keyFile: nil, random: SystemRandom())
        let sealed = try key.seal(Secret("x"), for: .serverKey, context: "c")
        let again = try directory.masterKey(keyFile: nil, random: SystemRandom())
        #expect(try again.open(sealed, for: .serverKey, context: "c").reveal() == "x")
        let node = try directory.node(random: SystemRandom())
        #expect(node.utf8.count == 36)
        #expect(try directory.node(random: SystemRandom()) == node)
        #expect(try permissions(directory.file("master.key")) == 0o600)
        directory.endFirstStart()
        #expect(truncate(directory.file("master.key"), 0) == 0)
        for content in ["", "x"] {
            try Data(content.utf8).write(to: URL(fileURLWithPath: directory.database))
            #expect(throws: ConfigurationError.self) {
                try directory.masterKey(keyFile: nil, random: SystemRandom())
            }
            let size = try FileManager.default.attributesOfItem(atPath: directory.file("master.key"))[.size] as? Int
            #expect(size == 0)
        }
    }

    @Test("A directory that gets another id keeps what it has seen, but no mark of which it does not know whose it is")
    func anotherID() throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        func remember(_ text: String = #"{"generation":2,"token":"b","mark":5}"#) throws {
            try Data(text.utf8).write(to: URL(fileURLWithPath: directory.memory.path))
        }
        func remembered() throws -> JSONValue {
            try JSONValue.parse(String(contentsOfFile: directory.memory.path, encoding: .utf8))
        }
        _ = try directory.node(random: SystemRandom())
        #expect(!FileManager.default.fileExists(atPath: directory.memory.path))
        try remember()
        let first = try directory.node(random: SystemRandom())
        #expect(try remembered()["mark"]?.integer == 5)
        try FileManager.default.removeItem(atPath: directory.file("node"))
        let second = try directory.node(random: SystemRandom())
        #expect(second != first)
        let kept = try remembered()
        #expect(kept["mark"]?.integer == 0 && kept["generation"]?.integer == 2 && kept["token"] == "b")
        try remember(#"{"generation":2,"token":"b","mark":5,"node":"m"}"#)
        let owned = try remembered()
        try FileManager.default.removeItem(atPath: directory.file("node"))
        _ = try directory.node(random: SystemRandom())
        #expect(try remembered() == owned)
        // What nobody can read is not thrown away.
        try FileManager.default.removeItem(atPath: directory.file("node"))
        try Data("x".utf8).write(to: URL(fileURLWithPath: directory.memory.path))
        let error = #expect(throws: ConfigurationError.self) { try directory.node(random: SystemRandom()) }
        #expect(error?.message.contains("assent database adopt") == true)
        #expect(!FileManager.default.fileExists(atPath: directory.file("node")))
    }

    @Test("One server at a time has a data directory; when it ends, another may have it")
    func lock() throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        let first = try DataDirectoryLock(directory)
        let error = #expect(throws: ConfigurationError.self) { try DataDirectoryLock(directory) }
        #expect(error?.message.contains("another server (process \(getpid())) uses this data directory") == true)
        first.release()
        let second = try DataDirectoryLock(directory)
        second.release()
        second.release()
        #expect(throws: Never.self) { try DataDirectoryLock(directory).release() }
    }

    @Test("A read-only file system is not told as another owner, nor a missing lock as another server")
    func reasons() {
        #expect(DataDirectory.obstacle(EROFS).contains("read-only"))
        #expect(DataDirectory.obstacle(EACCES).contains("chown"))
        let taken = DataDirectoryLock.refusal(EWOULDBLOCK, holder: " (process 7)")
        #expect(taken.hasPrefix("another server (process 7) uses this data directory"))
        let missing = DataDirectoryLock.refusal(ENOLCK, holder: "")
        #expect(missing.contains("cannot be locked") && !missing.contains("another server"))
    }

    @Test("A key file that others can read, a directory, a short key and a missing named file are refused")
    func badKeys() throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        let file = directory.file("own.key")
        let missing = #expect(throws: ConfigurationError.self) {
            try directory.masterKey(keyFile: file, random: SystemRandom())
        }
        // Where there are data, another key is of no use to them.
        #expect(missing?.message.contains("put the key of the database there") == true)
        #expect(missing?.message.contains("(umask 077; head -c 32 /dev/urandom | base64 > \(file))") == true)
        let key = Data(SystemRandom().bytes(32)).base64EncodedString()
        try Data(key.utf8).write(to: URL(fileURLWithPath: file))
        chmod(file, 0o644)
        #expect(throws: ConfigurationError.self) { try directory.masterKey(keyFile: file, random: SystemRandom()) }
        chmod(file, 0o600)
        #expect(throws: Never.self) { try directory.masterKey(keyFile: file, random: SystemRandom()) }
        try FileManager.default.createSymbolicLink(
            atPath: directory.file("link.key"), withDestinationPath: file)
        // Mounted credentials are links; what stands in the data directory is not.
        #expect(throws: Never.self) {
            try directory.masterKey(keyFile: directory.file("link.key"), random: SystemRandom())
        }
        try FileManager.default.createSymbolicLink(
            atPath: directory.file("master.key"), withDestinationPath: file)
        #expect(throws: ConfigurationError.self) { try directory.masterKey(keyFile: nil, random: SystemRandom()) }
        try Data("c2hvcnQ=".utf8).write(to: URL(fileURLWithPath: file))
        chmod(file, 0o600)
        #expect(throws: ConfigurationError.self) { try directory.masterKey(keyFile: file, random: SystemRandom()) }
        #expect(throws: ConfigurationError.self) {
            try directory.masterKey(keyFile: directory.path, random: SystemRandom())
        }
    }

    @Test("A file where the directory should be, and a directory that others can write to, are refused")
    func badDirectories() throws {
        let parent = try temporary()
        defer { try? FileManager.default.removeItem(atPath: parent) }
        try Data().write(to: URL(fileURLWithPath: parent + "/file"))
        #expect(throws: ConfigurationError.self) { try DataDirectory(parent + "/file") }
        try FileManager.default.createDirectory(atPath: parent + "/open", withIntermediateDirectories: false)
        chmod(parent + "/open", 0o777)
        #expect(throws: ConfigurationError.self) { try DataDirectory(parent + "/open") }
    }

    @Test(
        "The database and its log are made for the server alone, whatever the umask and whoever may list the directory")
    func databaseMode() async throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        chmod(directory.path, 0o755)
        try directory.keepDatabasePrivate()
        let database = try await directory.databaseLocation.open(clock: SystemClock())
        _ = try await database.run(
            SQLStatement("INSERT INTO attempts (counter, window_start, count) VALUES ('a', 1, 1)"))
        let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(files.sorted() == ["assent.sqlite", "assent.sqlite-shm", "assent.sqlite-wal"])
        for file in files { #expect(try permissions(directory.file(file)) == 0o600, "\(file)") }
        try await database.close()
        try directory.keepDatabasePrivate()
    }

    @Test("A database that others could read is refused; where the directory kept them out, it is closed to them")
    func openDatabase() throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        let log = directory.database + "-wal"
        for path in [directory.database, log] { try PrivateFile.create(path, []) }
        for path in [directory.database, log] {
            chmod(directory.path, 0o711)
            chmod(path, 0o640)
            let error = #expect(throws: ConfigurationError.self) { try directory.keepDatabasePrivate() }
            #expect(error?.file == path && error?.message.contains("chmod 600") == true)
            #expect(try permissions(path) == 0o640)
            chmod(directory.path, 0o700)
            try directory.keepDatabasePrivate()
            #expect(try permissions(path) == 0o600)
        }
    }

    @Test("A generated certificate is kept until it is about to expire")
    func certificate() throws {
        let directory = try DataDirectory(try temporary())
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        let now = Date(timeIntervalSince1970: 1_767_225_600)
        let first = try ServerCredentials.generated(in: directory, now: now)
        #expect(first.pins.count == 2 && Set(first.pins).count == 2)
        #expect(try ServerCredentials.generated(in: directory, now: now.addingTimeInterval(86_400)).pins == first.pins)
        let renewed = try ServerCredentials.generated(in: directory, now: now.addingTimeInterval(29.5 * 86_400))
        #expect(Set(renewed.pins).isDisjoint(with: first.pins))
        #expect(try permissions(directory.file("server.key")) == 0o600)
    }
}
