#if os(Linux)
import AssentCore
package import AssentStore
package import Foundation
import TestSupport

/// A PostgreSQL server of the tests' own, in a temporary directory, reached over a Unix socket in it.
///
/// It ends, and its directory goes, with the last reference and at the latest with the test process, however that ends:
/// a small program beside it waits for that.
package final class PostgreSQLServer: Sendable {
    /// Why there is no server.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// How the directories of all servers begin. The path of a socket in one has at most 107 bytes.
    package static let place: String = {
        let temporary = FileManager.default.temporaryDirectory.path
        return (temporary.utf8.count <= 40 ? temporary : "/tmp") + "/assent-pg-"
    }()

    /// Where its data and its socket are.
    package let directory: URL

    /// The port of its socket and, if it listens there, of TCP.
    package let port: Int

    /// Its major version.
    package let version: Int

    private let programs: URL
    /// What keeps its TCP port for it while it is stopped.
    private let reserved: ReservedPort?
    private let tablespace: Int?
    private let guardian: SpawnedProcess
    private let lastDatabase = Locked(0)

    private static let started = Task { try await start() }

    /// The one that all tests of this process share. Each test makes a database of its own in it.
    package static func shared() async throws -> PostgreSQLServer { try await started.value }

    /// Starts a server on a thread on which that holds nobody up.
    package static func start(settings: [String] = []) async throws -> PostgreSQLServer {
        try await TestSupport.offPool { try PostgreSQLServer(settings: settings) }
    }

    /// Starts a server. It blocks for a second.
    ///
    /// - Parameters:
    ///   - settings: lines for its `postgresql.conf`.
    ///   - access: its `pg_hba.conf`; by default everybody who reaches the socket may be anybody.
    ///   - listens: whether it listens on a free port of 127.0.0.1, too.
    ///   - files: what is put beside its data, by name.
    ///   - tablespace: how many MiB the tablespace `small` has, a file system of its own that only the server sees;
    ///     only where ``canMount``.
    /// - Throws: ``Failure``, or what the file system says.
    package convenience init(
        settings: [String] = [], access: String = "local all all trust\nlocal replication all trust\n",
        listens: Bool = false, files: [String: String] = [:], tablespace: Int? = nil
    ) throws {
        try self.init(reserved: listens ? ReservedPort() : nil, tablespace: tablespace)
        try run(
            "initdb",
            ["-D", data, "-N", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--auth=trust", "--wal-segsize=1"])
        for (name, content) in files { try write(content, name) }
        try write(access, "pg_hba.conf")
        let lines =
            [
                "listen_addresses = '\(listens ? "127.0.0.1" : "")'", "port = \(port)",
                "unix_socket_directories = '\(directory.path)'", "lc_messages = 'C'", "max_connections = 200",
            ] + settings
        try write(lines.map { $0 + "\n" }.joined(), "postgresql.auto.conf")
        try start()
        try sql("CREATE ROLE assent LOGIN PASSWORD 'a long password'")
        if tablespace != nil {
            try sql("CREATE TABLESPACE small LOCATION '\(small)'")
            try sql("GRANT CREATE ON TABLESPACE small TO assent")
        }
    }

    /// Starts a standby that streams from a server, or from the proxy before it. It blocks for a second.
    ///
    /// - Parameters:
    ///   - primary: the server.
    ///   - link: the proxy.
    ///   - name: its name and that of its slot, for `synchronous_standby_names`.
    /// - Throws: ``Failure``, or what the file system says.
    package convenience init(
        standbyOf primary: PostgreSQLServer, through link: PostgreSQLConfiguration.Host? = nil,
        name: String = "standby"
    ) throws {
        try self.init(tablespace: nil)
        let place = link ?? .init(primary.directory.path, port: primary.port)
        let connection = "host=\(place.name) port=\(place.port) user=postgres application_name=\(name)"
        let slot = ["-C", "-S", name, "-R"]
        try run("pg_basebackup", ["-d", connection, "-D", data, "-c", "fast", "-X", "stream"] + slot)
        try append("unix_socket_directories = '\(directory.path)'\n", "postgresql.auto.conf")
        try start()
    }

    /// Starts a copy of a server's disk by itself: it can be written to as well. It blocks for a second.
    package convenience init(copyOf primary: PostgreSQLServer) throws {
        try self.init(tablespace: nil)
        let connection = "host=\(primary.directory.path) port=\(primary.port) user=postgres"
        try run("pg_basebackup", ["-d", connection, "-D", data, "-c", "fast", "-X", "stream"])
        try append(
            "unix_socket_directories = '\(directory.path)'\nsynchronous_standby_names = ''\n", "postgresql.auto.conf")
        try start()
    }

    private init(reserved: ReservedPort? = nil, tablespace: Int?) throws {
        let places = try FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql").compactMap { Int($0) }
        guard let version = places.max() else { throw Failure(description: "PostgreSQL is not installed") }
        self.version = version
        self.reserved = reserved
        port = reserved?.port ?? 5432
        self.tablespace = tablespace
        programs = URL(filePath: "/usr/lib/postgresql/\(version)/bin")
        directory = URL(filePath: Self.place + UUID().uuidString.prefix(8))
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        let stop = Self.asServer([
            programs.appending(path: "pg_ctl").path, "-D", directory.appending(path: "data").path,
        ])
        // Its standard input ends with this process.
        guardian = try SpawnedProcess(
            "/bin/sh", ["-c", "cat >/dev/null; cd /; \"$@\" -m immediate stop; rm -rf \"$0\"", directory.path] + stop,
            input: .pipe, errors: .nothing)
        _ = try FinishedProcess.run("/bin/chown", ["\(Self.account ?? "\(getuid())")", directory.path])
    }

    deinit { try? guardian.input?.close(); _ = guardian.wait() }

    /// Runs what blocks on a thread on which that holds nobody up.
    @discardableResult
    package func offPool<Result: Sendable>(_ body: @escaping @Sendable (PostgreSQLServer) throws -> Result) async throws
        -> Result
    {
        try await TestSupport.offPool { try body(self) }
    }

    /// The directory of its data.
    package var data: String { directory.appending(path: "data").path }

    // MARK: - Running

    /// Starts it after ``stop(_:)``.
    package func start() throws {
        let words = [
            "-D", data, "-l", directory.appending(path: "log").path, "-w", "-t", "\(Patience.seconds)", "start",
        ]
        guard let tablespace else {
            try run("pg_ctl", words)
            return
        }
        try FileManager.default.createDirectory(atPath: small, withIntermediateDirectories: true)
        let owner = Self.account.flatMap { getpwnam($0) }?.pointee.pw_uid ?? getuid()
        // What is mounted there goes with the server's last process.
        let mount = "mount -t tmpfs -o size=\(tablespace)m,mode=700,uid=\(owner) tmpfs \"$0\" && exec \"$@\""
        try run("pg_ctl", words, within: ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", mount, small])
    }

    /// Gives the tablespace `small` another size, in MiB, while the server runs.
    package func resizeTablespace(_ size: Int) throws {
        let process = try String(contentsOfFile: data + "/postmaster.pid", encoding: .utf8).prefix { $0 != "\n" }
        let mount = ["--mount", "/bin/mount", "-o", "remount,size=\(size)m", small]
        let finished = try FinishedProcess.run("/usr/bin/nsenter", ["--target", String(process)] + mount)
        guard finished.status == 0 else { throw Failure(description: finished.complaints) }
    }

    private var small: String { directory.appending(path: "small").path }

    /// Whether a server can have a tablespace of its own.
    package static let canMount: Bool = {
        let words = ["--mount", "/bin/sh", "-c", "mount -t tmpfs tmpfs /mnt"]
        return getuid() == 0 && (try? FinishedProcess.run("/usr/bin/unshare", words))?.status == 0
    }()

    /// Stops it: `fast` ends all connections, `immediate` is what a crash does.
    package func stop(_ mode: String = "fast") throws {
        try run("pg_ctl", ["-D", data, "-m", mode, "-w", "-t", "\(Patience.seconds)", "stop"])
    }

    /// What it has logged.
    package var log: String {
        (try? String(contentsOf: directory.appending(path: "log"), encoding: .utf8)) ?? ""
    }

    /// Lets the superuser run statements, and returns the rows with `|` between the columns.
    @discardableResult
    package func sql(_ text: String, in database: String = "postgres") throws -> String {
        let arguments = ["-h", directory.path, "-p", "\(port)", "-U", "postgres", "-d", database]
        return try run("psql", arguments + ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", text])
    }

    /// Waits until it has ended what served the connections to a database: it does that a moment after they were
    /// closed.
    package func waitUntilUnused(_ database: String) async throws {
        let connections = "FROM pg_stat_activity WHERE datname = '\(database)' AND backend_type = 'client backend'"
        try await Patience.wait(until: "no connection to the database \(database) is left") {
            try await offPool { try $0.sql("SELECT count(*) \(connections)") } == "0"
        }
    }

    /// Makes a database that belongs to the role `assent`. Its language orders letters as dictionaries do.
    package func makeDatabase(options: String? = nil) throws -> PostgreSQLConfiguration {
        let name = lastDatabase.withLock { last in
            last += 1
            return "test\(last)"
        }
        let language = version >= 15 ? "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de'" : ""
        try sql("CREATE DATABASE \(name) OWNER assent \(options ?? language)")
        return configuration(name)
    }

    /// How a database of this server is reached over its socket.
    package func configuration(_ database: String) -> PostgreSQLConfiguration {
        PostgreSQLConfiguration(
            hosts: [.init(directory.path, port: port)], database: database, user: "assent")
    }

    // MARK: - Parts

    /// `initdb` and the server refuse to run as root.
    private static let account: String? = getuid() == 0 ? (getpwnam("postgres") == nil ? "nobody" : "postgres") : nil

    private static func asServer(_ words: [String]) -> [String] {
        guard let account, let entry = getpwnam(account) else { return words }
        let ids = ["--reuid=\(entry.pointee.pw_uid)", "--regid=\(entry.pointee.pw_gid)", "--clear-groups"]
        return ["/usr/bin/setpriv"] + ids + words
    }

    @discardableResult
    private func run(_ program: String, _ arguments: [String], within prefix: [String] = []) throws -> String {
        let words = prefix + Self.asServer([programs.appending(path: program).path] + arguments)
        let finished = try FinishedProcess.run(
            words[0], Array(words.dropFirst()), environment: ["PATH": "/usr/bin:/bin"], directory: directory.path)
        guard finished.status == 0 else {
            throw Failure(description: "\(program): \(finished.complaints) \(finished.text) \(log)")
        }
        return finished.text.trimmingCharacters(in: .newlines)
    }

    /// Writes a file of its data directory.
    package func write(_ content: String, _ name: String) throws {
        let path = "\(data)/\(name)"
        try? FileManager.default.removeItem(atPath: path)
        try Data(content.utf8).write(to: URL(filePath: path))
        _ = chmod(path, 0o600)
        if let account = Self.account { _ = try FinishedProcess.run("/bin/chown", [account, path]) }
    }

    private func append(_ content: String, _ name: String) throws {
        try write(try String(contentsOfFile: "\(data)/\(name)", encoding: .utf8) + content, name)
    }
}
#endif
