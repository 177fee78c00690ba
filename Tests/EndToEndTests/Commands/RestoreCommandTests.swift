import AssentCore
import AssentEngine
import AssentServer
import AssentStore
import Foundation
import Logging
import StoreTesting
import TestSupport
import Testing

/// Backup and restore by the commands that `docs/operating.md` has for people.
@Suite("Backup and restore as the documentation says")
struct RestoreCommandTests {
    /// The commands of the section *Backup and restore*, block by block, each with the words before it.
    private static func blocks() throws -> [(words: String, commands: [String])] {
        let page = try String(contentsOf: World.package.appending(path: "docs/operating.md"), encoding: .utf8)
        let section = try #require(
            page.components(separatedBy: "\n## Backup and restore\n").last?
                .components(separatedBy: "\n## ").first)
        let parts = section.components(separatedBy: "```")
        return stride(from: 1, to: parts.count, by: 2).map { index in
            let words = parts[index - 1].components(separatedBy: "\n\n").last { !$0.isEmpty } ?? ""
            let commands = parts[index].split(separator: "\n").filter { $0.hasPrefix("$ ") }.map {
                String($0.dropFirst(2))
            }
            return (words, commands)
        }
    }

    private static func commands(_ words: String) throws -> [String] {
        let found = try blocks().filter { $0.words.contains(words) }
        try #require(found.count == 1, "\(words): \(found.count) blocks")
        return try #require(found.first).commands
    }

    /// A directory with a server's file, its data and its key, as an operator has it.
    private final class Place: Sendable {
        let path = NSTemporaryDirectory() + "/assent-restore-" + SystemRandom().uuid()
        let key: MasterKey

        init(_ database: String = "") throws {
            for directory in [path, path + "/data", path + "/backup"] {
                try FileManager.default.createDirectory(
                    atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            }
            let bytes = SystemRandom().bytes(MasterKey.byteCount)
            key = try MasterKey(Secret(bytes: bytes))
            _ = FileManager.default.createFile(
                atPath: path + "/data/master.key", contents: Data(Data(bytes).base64EncodedString().utf8),
                attributes: [.posixPermissions: 0o600])
            let example = try String(contentsOfFile: World.configurationFile, encoding: .utf8)
            let text = example.replacing("dataDirectory: .assent", with: "dataDirectory: data") + "\n" + database + "\n"
            try text.write(toFile: path + "/assent.yaml", atomically: false, encoding: .utf8)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        /// What a server would do with the database.
        func open(_ location: DatabaseLocation) async throws -> EngineContext {
            let context = EngineContext(
                database: try await location.open(clock: SystemClock()), clock: SystemClock(), random: SystemRandom(),
                masterKey: key, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            try #require(try await MasterKeyCheck(context).isRight())
            return context
        }

        /// Runs commands of the documentation here.
        func run(_ commands: [String], _ environment: [String: String] = [:]) async throws {
            let programs = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            let text = commands.joined(separator: "\n").replacing("/backup/", with: path + "/backup/")
            let path = path
            let done = try await offPool {
                try FinishedProcess.run(
                    "/bin/sh", ["-euc", text],
                    environment: ["PATH": "\(programs.path):/usr/bin:/bin", "HOME": path].merging(environment) { $1 },
                    directory: path)
            }
            #expect(done.status == 0, "\(text)\n\(done.text)\(done.complaints)")
        }
    }

    /// Makes a session, backs up, ends it and makes a user, restores, and looks what is there.
    private func drill(
        _ place: Place, _ location: DatabaseLocation, restore words: String, _ environment: [String: String] = [:]
    ) async throws {
        let context = try await place.open(location)
        let users = Users(context)
        let ana = try #require(try await users.create(username: "ana", realm: "/alpha", passwordHash: nil))
        let session = try await Sessions(context).begin(userID: ana.id, realm: "/alpha", limits: SessionLimits())
        try await place.run(try Self.commands("**Back up**"), environment)
        #expect(try await Sessions(context).end(id: TokenHash.of(session.token)))
        _ = try await users.create(username: "later", realm: "/alpha", passwordHash: nil)
        try await context.database.close()
        let restore = try Self.commands(words)
        #expect(restore.last == "assent restore-fence --config assent.yaml")
        // Without the last step the session would live again.
        try await place.run(restore.dropLast(), environment)
        let plain = try await place.open(location)
        #expect(try await Sessions(plain).live(token: session.token) != nil)
        #expect(try await Users(plain).find(username: "later", realm: "/alpha") == nil)
        try await plain.database.close()
        try await place.run([try #require(restore.last)], environment)
        let fenced = try await place.open(location)
        #expect(try await Sessions(fenced).live(token: session.token) == nil)
        #expect(try await Users(fenced).find(username: "ana", realm: "/alpha") != nil)
        #expect(try await AuditLog(fenced).newest(1).map(\.event) == [.databaseRestore])
        try await fenced.database.close()
    }

    @Test("A SQLite file")
    func sqlite() async throws {
        let place = try Place()
        let location = DatabaseLocation.sqlite(path: place.path + "/data/assent.sqlite")
        // As the server makes it.
        _ = FileManager.default.createFile(
            atPath: place.path + "/data/assent.sqlite", contents: Data(), attributes: [.posixPermissions: 0o600])
        try await drill(place, location, restore: "**Restore** a SQLite file")
    }

    #if os(Linux)
    @Test("A PostgreSQL database", .enabled(if: TestDatabase.isPostgreSQL))
    func postgreSQL() async throws {
        let server = try await offPool { try PostgreSQLServer(settings: ["fsync = off"]) }
        try await offPool {
            try server.sql("CREATE DATABASE assent OWNER assent ENCODING 'UTF8' TEMPLATE template0")
        }
        let host = server.directory.path
        let place = try Place(
            """
            masterKeyFile: data/master.key
            database: {postgresql: {hosts: [\(host)], database: assent, user: assent}}
            """)
        try await drill(
            place, .postgresql(server.configuration("assent")), restore: "**Restore** a PostgreSQL database",
            ["PGHOST": host, "PGPORT": "\(server.port)", "PGUSER": "postgres"])
    }
    #endif

    @Test("The page names all that the fence ends, and what users hear of it")
    func page() throws {
        let page = try String(contentsOf: World.package.appending(path: "docs/operating.md"), encoding: .utf8)
        let start = try #require(page.range(of: "### What `restore-fence` does"))
        let end = try #require(page.range(of: "\n## ", range: start.upperBound..<page.endIndex))
        let section = page[start.lowerBound..<end.lowerBound]
        let words: [FencedKind: String] = [
            .sessions: "sessions", .grants: "grants", .consents: "consents", .tokenKeys: "keys for tokens",
            .codes: "authorization codes", .refreshTokens: "refresh tokens", .transactions: "open or approved",
            .lostOutcomes: "without an outcome", .journeySteps: "steps of journeys",
            .oneTimePasswords: "one-time passwords", .bootstrapTokens: "first administrator",
            .signingTransactions: "open transactions", .signingApprovals: "has not used", .invites: "invites",
            .enrolments: "enrolments, renewals", .evaluations: "PIN entries", .slots: "PINs",
            .deviceCodes: "one-time codes of devices", .nonces: "what devices have sent",
        ]
        for kind in FencedKind.allCases {
            let text = try #require(words[kind], "\(kind)")
            #expect(section.contains(text), "\(kind): \(text)")
        }
    }
}
