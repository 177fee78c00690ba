import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

/// A server's file with its data directory, key and database, as an operator has them, and the commands of
/// `docs/operating.md` that back the database up and restore it.
///
/// On PostgreSQL it has a server of its own: the commands make and drop the database `assent`.
final class OperatedDatabase: Sendable {
    /// The parts of the page.
    enum Part: String {
        case backup = "**Back up**"
        case restoreFile = "**Restore** a SQLite file"
        case restoreServer = "**Restore** a PostgreSQL database"
    }

    let key = Secret(bytes: SystemRandom().bytes(MasterKey.byteCount))
    let location: DatabaseLocation
    /// Begins with the machine's time, by which `assent` goes, and stands still.
    let clock = ManualClock(Date())

    private let path = NSTemporaryDirectory() + "/assent-restore-" + SystemRandom().uuid()
    private let environment: [String: String]
    /// The last command fences.
    private let restoring: [String]
    #if os(Linux)
    private let server: PostgreSQLServer?
    #endif

    init() async throws {
        let entries: String?
        #if os(Linux)
        server = TestDatabase.isPostgreSQL ? try await PostgreSQLServer.start(settings: ["fsync = off"]) : nil
        if let server {
            try await server.offPool {
                try $0.sql("CREATE DATABASE assent OWNER assent ENCODING 'UTF8' TEMPLATE template0")
            }
            let host = server.directory.path
            var configuration = server.configuration("assent")
            configuration.bePatient(seconds: Patience.seconds)
            location = .postgresql(configuration)
            environment = ["PGHOST": host, "PGPORT": "\(server.port)", "PGUSER": "postgres"]
            entries = """
                masterKeyFile: data/master.key
                database: {postgresql: {hosts: [\(host)], database: assent, user: assent}}
                """
        } else {
            location = .sqlite(path: path + "/data/assent.sqlite")
            environment = [:]
            entries = nil
        }
        #else
        location = .sqlite(path: path + "/data/assent.sqlite")
        environment = [:]
        entries = nil
        #endif
        restoring = try Self.commands(TestDatabase.isPostgreSQL ? .restoreServer : .restoreFile)
        try #require(restoring.last == "assent restore-fence --config assent.yaml")
        try makeFiles(adding: entries)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private func makeFiles(adding entries: String?) throws {
        let files = FileManager.default
        for directory in [path, path + "/data", path + "/backup"] {
            try files.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        let encoded = key.withUnsafeBytes { Data($0).base64EncodedData() }
        // The database as the server makes it, too.
        for (name, content) in [("master.key", encoded), ("assent.sqlite", Data())] {
            _ = files.createFile(
                atPath: path + "/data/" + name, contents: content, attributes: [.posixPermissions: 0o600])
        }
        let example = try String(
            contentsOf: OperatingPage.package.appending(path: "Examples/bank/assent.yaml"), encoding: .utf8)
        let text = example.replacing("dataDirectory: .assent", with: "dataDirectory: data")
        try "\(text)\n\(entries ?? "")\n".write(toFile: path + "/assent.yaml", atomically: false, encoding: .utf8)
    }

    /// The commands of one block of the page.
    private static func commands(_ part: Part) throws -> [String] {
        let parts = try OperatingPage.section("## Backup and restore").components(separatedBy: "```")
        let blocks = stride(from: 1, to: parts.count, by: 2).filter { index in
            let words = parts[index - 1].components(separatedBy: "\n\n").last { !$0.isEmpty }
            return words?.contains(part.rawValue) ?? false
        }
        try #require(blocks.count == 1, "\(part.rawValue): \(blocks.count) blocks")
        return parts[blocks[0]].split(separator: "\n").filter { $0.hasPrefix("$ ") }.map { String($0.dropFirst(2)) }
    }

    /// Waits until the server has noticed that nobody uses the database any more: the commands that need it so wait for
    /// a second or five, which a busy server exceeds.
    func waitUntilUnused() async throws {
        #if os(Linux)
        try await server?.waitUntilUnused("assent")
        #endif
    }

    /// Backs up, while the database is in use.
    func backUp() async throws { _ = try await run(Self.commands(.backup)) }

    /// Runs the commands that restore the backup, without the last one, which fences. Nobody may use the database.
    func restore() async throws { _ = try await run(restoring.dropLast()) }

    /// Runs the command that fences. Nobody may use the database.
    ///
    /// - Returns: how much has ended of each kind, without those of which there was nothing.
    func fence(_ options: [String]) async throws -> [FencedKind: Int64] {
        let said = try await run([(restoring.suffix(1) + options + ["--json"]).joined(separator: " ")])
        let object = try JSONValue.parse(said)
        let counts = FencedKind.allCases.map { ($0, object[$0.rawValue]?.integer ?? -1) }
        return Dictionary(uniqueKeysWithValues: counts).filter { $0.value != 0 }
    }

    /// Moves the clock to more than two minutes after all that the commands have seen.
    func passTwoMinutes() { clock.advance(by: max(0, Date().timeIntervalSince(clock.now)) + 121) }

    private func run(_ commands: some Sequence<String>) async throws -> String {
        let programs = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let text = commands.joined(separator: "\n").replacing("/backup/", with: path + "/backup/")
        let variables = ["PATH": "\(programs.path):/usr/bin:/bin", "HOME": path]
        let (path, environment) = (path, environment.merging(variables) { $1 })
        let done = try await offPool {
            try FinishedProcess.run("/bin/sh", ["-euc", text], environment: environment, directory: path)
        }
        try #require(done.status == 0, "\(text)\n\(done.text)\(done.complaints)")
        return done.text
    }
}

/// The page for operators.
enum OperatingPage {
    /// The package's own directory.
    static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// What follows a heading, up to the next that is not lower than it.
    static func section(_ heading: String) throws -> String {
        let page = try String(contentsOf: package.appending(path: "docs/operating.md"), encoding: .utf8)
        let parts = page.components(separatedBy: "\n\(heading)\n")
        try #require(parts.count == 2, "\(heading): \(parts.count - 1) headings")
        let ends = ["\n## "] + (heading.hasPrefix("### ") ? ["\n### "] : [])
        return ends.reduce(parts[1]) { $0.components(separatedBy: $1)[0] }
    }
}
