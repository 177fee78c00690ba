import AssentCore
import AssentEngine
import AssentServer
import AssentStore
import Foundation
import Logging
import StoreTesting
import TestSupport

@testable import AssentCLI
@testable import AssentDemo

/// The demo's world, for tests: the bank, the server, the gateway, on free ports, with a clock that the test moves.
enum World {
    /// The package's own directory.
    static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    static var configurationFile: String { package.appendingPathComponent("Examples/bank/assent.yaml").path }

    /// The example's file, in which a password costs as little as it may: no test here is about that.
    static func example() throws -> String {
        try String(contentsOfFile: configurationFile, encoding: .utf8)
            .replacing("passwordCost: 16384", with: "passwordCost: 1024")
    }

    /// Where the bank and `assent` are built, beside the tests.
    static var programs: URL { Bundle.main.executableURL?.deletingLastPathComponent() ?? package }

    /// The demo's files; its database is where the tests have theirs (``TestDatabase``).
    static func sources() async throws -> DemoWorld.Sources {
        var sources = DemoWorld.Sources(configurationFile: configurationFile, programs: programs)
        sources.leastLimit = .seconds(Patience.seconds)
        sources.configure = { $0.bePatient(seconds: 600) }
        #if os(Linux)
        if TestDatabase.isPostgreSQL,
            case .postgresql(let database) = try await TestDatabase.location(SystemRandom().uuid())
        {
            sources.configure = {
                try World.keep(&$0, in: database)
                $0.bePatient(seconds: 600)
            }
        }
        #endif
        return sources
    }

    #if os(Linux)
    /// Lets a server keep its data in a PostgreSQL database, with a master key that further nodes may have as well.
    static func keep(_ configuration: inout ServerConfiguration, in database: PostgreSQLConfiguration) throws {
        let directory = configuration.dataDirectory
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let key = Data(SystemRandom().bytes(MasterKey.byteCount)).base64EncodedString()
        let file = directory + "/master.key"
        _ = FileManager.default.createFile(
            atPath: file, contents: Data(key.utf8), attributes: [.posixPermissions: 0o600])
        configuration.masterKeyFile = file
        configuration.postgreSQL = database
        // The clock is the test's, and the database server's is not.
        configuration.clockDifferenceSeconds = nil
    }
    #endif

    /// Runs `body` in a world of its own, whose file is the example's as `edit` leaves it, and ends it whatever
    /// happens. With `sealed` all that the story's apps send goes sealed, past that wire; what is `watching` sees the
    /// calls inside.
    static func run(
        logger: Logger, watching: (any HTTPTransport) -> any HTTPTransport = { $0 }, sealed wire: SealedWire? = nil,
        editing edit: (String) -> String = { $0 },
        configuring: @escaping @Sendable (inout ServerConfiguration) throws -> Void = { _ in },
        _ body: (Story) async throws -> Void
    ) async throws {
        let directory = NSTemporaryDirectory() + "/assent-world-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let clock = DemoClock()
        var sources = try await sources()
        let example = try example()
        sources.configurationFile = directory + "/assent.yaml"
        try edit(example).write(toFile: sources.configurationFile, atomically: false, encoding: .utf8)
        let usual = sources.configure
        sources.configure = {
            try usual(&$0)
            try configuring(&$0)
        }
        let world = try await DemoWorld.start(sources: sources, clock: clock, logger: logger)
        do {
            let narration = Narration(to: Console(silent: true))
            let keys = wire == nil ? [] : try await payloadKeys(of: world)
            let origins = try payloadOrigins(of: world)
            try await body(
                Story(
                    world: world, clock: clock, narration: narration, logger: logger,
                    watching: { network in
                        guard let wire else { return watching(network) }
                        return watching(wire.sealing(network, to: origins, with: keys, clock: clock))
                    }))
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }
}

/// Keeps every line that is logged.
struct CollectingLog: Sendable {
    let lines = Locked<[String]>([])

    var logger: Logger {
        var logger = Logger(label: "test", factory: { [lines] _ in Handler(lines: lines) })
        logger.logLevel = .trace
        return logger
    }

    private struct Handler: LogHandler {
        let lines: Locked<[String]>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let all = metadata.merging(event.metadata ?? [:]) { $1 }
            lines.withLock { $0.append("\(event.level) \(event.message) \(all)") }
        }
    }
}
