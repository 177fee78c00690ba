import AssentCore
import Foundation
import Logging

@testable import AssentCLI

/// The demo's world, for tests: the bank, the server, the gateway, on free ports, with a clock that the test moves.
enum World {
    /// The package's own directory.
    static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    static var sources: DemoWorld.Sources {
        // The bank is built beside the tests.
        let products = Bundle.main.executableURL?.deletingLastPathComponent() ?? package
        return DemoWorld.Sources(
            configurationFile: package.appendingPathComponent("Examples/bank/assent.yaml").path,
            bankExecutable: products.appendingPathComponent("AssentExampleBank").path)
    }

    /// Runs `body` in a world of its own, and ends it whatever happens.
    static func run(
        logger: Logger, watching: (any HTTPTransport) -> any HTTPTransport = { $0 },
        _ body: (Story) async throws -> Void
    ) async throws {
        let clock = DemoClock()
        let world = try await DemoWorld.start(sources: sources, clock: clock, logger: logger)
        do {
            let narration = Narration(console: Console(silent: true))
            try await body(
                Story(world: world, clock: clock, narration: narration, logger: logger, watching: watching))
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
