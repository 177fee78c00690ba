#if PostgreSQL && os(Linux)
import AssentCore
import AssentEngine
import AssentStore
import Foundation
import Logging
import StoreTesting

@testable import AssentServer
import TestSupport

/// Configurations with databases of both kinds and one master key, in a directory that is gone after the test.
final class CopyWorld: Sendable {
    let directory: String

    init() throws {
        directory = try ServerFixture.makeDirectory()
        try makeKey("key")
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    func path(_ name: String) -> String { directory + "/" + name }

    /// Another master key.
    func makeKey(_ name: String) throws {
        let key = Data(SystemRandom().bytes(MasterKey.byteCount)).base64EncodedString()
        try PrivateFile.create(path(name), Array(key.utf8))
    }

    /// What a test adds to the text of a file: a data directory, and a database of its own if there is one.
    static func edits(data: String, key: String = "key", database: String = "") -> @Sendable (String) -> String {
        {
            $0.replacing("dataDirectory: data", with: "dataDirectory: \(data)")
                + "\nmasterKeyFile: \(key)\n\(database)\n"
        }
    }

    /// The section of a new PostgreSQL database, or of the one with a configuration.
    static func postgreSQL(_ known: PostgreSQLConfiguration? = nil) async throws -> String {
        let server = try await PostgreSQLServer.shared()
        let made =
            if let known { known } else { try await offPool { try server.makeDatabase() } }
        return """
            database: {postgresql: {hosts: [\(made.hosts[0].name)], database: \(made.database), user: assent, \
            connections: 4}}
            """
    }

    /// The configuration that such edits make, also as a file. Nothing that it waits for comes too late on a busy
    /// machine, and connections that a test has ended are waited for as long as the server needs to notice it; the file
    /// says nothing of that.
    func configuration(_ name: String, _ edit: (String) -> String) throws -> ServerConfiguration {
        let text = edit(FixtureConfiguration.yaml(upstream: 9080, refusing: 9081))
        try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
        var configuration = try ServerConfiguration.load(file: path(name))
        configuration.bePatient(seconds: 600)
        configuration.postgreSQL?.endingLimit = Patience.seconds * 1_000
        return configuration
    }

    func sqlite(_ data: String = "data", key: String = "key") throws -> ServerConfiguration {
        try configuration("\(data).yaml", Self.edits(data: data, key: key))
    }

    func postgreSQL(_ known: PostgreSQLConfiguration? = nil, key: String = "key") async throws -> ServerConfiguration {
        let database = try await Self.postgreSQL(known)
        return try configuration(
            "postgresql-\(SystemRandom().uuid()).yaml", Self.edits(data: "node", key: key, database: database))
    }

    /// A database that a server has used.
    func fill(_ configuration: ServerConfiguration, schema: Schema = .current) async throws {
        try await open(configuration, schema: schema) { database in
            let key = try DatabaseAccess.masterKey(configuration)
            let context = EngineContext(
                database: database, clock: SystemClock(), random: SystemRandom(), masterKey: key,
                logger: Logger(label: "test"))
            if schema.steps.count == Schema.current.steps.count {
                _ = try await MasterKeyCheck(context).isRight()
            }
            _ = try await database.run(
                SQLStatement("INSERT INTO attempts (counter, window_start, count) VALUES ('a', 1, 2)"))
        }
    }

    /// Opens a configuration's database and closes it.
    func open<Result>(
        _ configuration: ServerConfiguration, schema: Schema = .current,
        _ body: (any SQLDatabase) async throws -> Result
    ) async throws -> Result {
        let location = try Self.location(configuration)
        let database = try await location.open(schema: schema, clock: SystemClock())
        let result = try await body(database)
        try await database.close()
        return result
    }

    static func location(_ configuration: ServerConfiguration) throws -> DatabaseLocation {
        if let postgreSQL = configuration.postgreSQL { return .postgresql(postgreSQL) }
        return try DataDirectory(configuration.dataDirectory).databaseLocation
    }

    /// Waits until the server has noticed that nobody uses a database any more: the command waits for a second only.
    static func waitUntilUnused(_ configuration: ServerConfiguration) async throws {
        guard let database = configuration.postgreSQL?.database else { return }
        try await PostgreSQLServer.shared().waitUntilUnused(database)
    }

    /// Puts the mark of an unfinished copy into a database.
    func mark(_ configuration: ServerConfiguration) async throws {
        try await open(configuration) {
            _ = try await $0.run(
                SQLStatement(
                    "INSERT INTO server_state (name, value) VALUES ('unfinished-copy', \([UInt8](repeating: 1, count: 48)))"
                ))
        }
    }

    /// How many rows the table has that ``fill(_:schema:)`` has filled.
    func count(_ configuration: ServerConfiguration) async throws -> Int64 {
        try await open(configuration) { try await SQLDatabaseContract.count("attempts", in: $0) }
    }
}
#endif
