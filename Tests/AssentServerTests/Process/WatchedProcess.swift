import AssentCore
import Foundation
import TestSupport
import Testing

/// Why a process of a test did not do what it must.
struct ProcessFailure: Error, CustomStringConvertible {
    let description: String
}

/// A process that a test starts, watches, sends signals and ends. It ends at the latest with the tests' own process.
final class WatchedProcess: Sendable {
    private let process: SpawnedProcess
    private let watcher: SpawnedProcess
    private let status = Watched<Int32?>(nil)
    private let output = Watched<(lines: [String], isAtEnd: Bool)>(([], false))
    private let errorText = Watched<(bytes: [UInt8], isAtEnd: Bool)>(([], false))

    /// The path of an executable that is built beside the tests.
    static func product(_ name: String) throws -> String {
        let directory = try #require(Bundle.main.executableURL?.deletingLastPathComponent())
        let path = directory.appendingPathComponent(name).path
        try #require(FileManager.default.isExecutableFile(atPath: path), "\(path) is not built: run 'make build'")
        return path
    }

    static func start(_ arguments: [String], environment: [String: String] = [:]) throws -> WatchedProcess {
        try WatchedProcess(
            SpawnedProcess(
                try #require(arguments.first), Array(arguments.dropFirst()),
                environment: ProcessInfo.processInfo.environment.merging(environment) { $1 }, output: .pipe,
                errors: .pipe))
    }

    private init(_ process: SpawnedProcess) throws {
        self.process = process
        watcher = try process.guardian()
        let (lines, errors) = (try #require(process.output), try #require(process.errors))
        Thread.detachNewThread { [status] in
            let number = process.wait()
            status.update { $0 = number }
        }
        // Reading blocks, so it has threads of its own.
        Thread.detachNewThread { [output] in
            var line: [UInt8] = []
            while let byte = (try? lines.read(upToCount: 1))?.first {
                guard byte == UInt8(ascii: "\n") else {
                    line.append(byte)
                    continue
                }
                let text = String(decoding: line, as: UTF8.self)
                output.update { $0.lines.append(text) }
                line = []
            }
            output.update { $0.isAtEnd = true }
        }
        Thread.detachNewThread { [errorText] in
            // Not read(upToCount:), which waits until there is as much.
            while case let data = errors.availableData, !data.isEmpty { errorText.update { $0.bytes += data } }
            errorText.update { $0.isAtEnd = true }
        }
    }

    /// The next line of standard output; `nil` at its end.
    func nextLine() async -> String? {
        await output.wait { !$0.lines.isEmpty || $0.isAtEnd }
        var line: String?
        output.update { if !$0.lines.isEmpty { line = $0.lines.removeFirst() } }
        return line
    }

    /// What it has written to standard error until now.
    var errors: String { String(decoding: errorText.value.bytes, as: UTF8.self) }

    /// Waits until it has written `text` to standard error, or its last.
    func waitUntilSaid(_ text: String) async {
        await errorText.wait { $0.isAtEnd || String(decoding: $0.bytes, as: UTF8.self).contains(text) }
    }

    /// Waits until it has written its last to standard error.
    func waitUntilRead() async { await errorText.wait { $0.isAtEnd } }

    /// Whether it has not ended yet.
    var isRunning: Bool { status.value == nil }

    /// Its process id.
    var identifier: Int32 { process.id }

    func signal(_ number: Int32) { process.signal(number) }

    /// Waits for the end: the exit status, or the negative number of the signal that ended it.
    func exit() async -> Int32 {
        await status.wait { $0 != nil }
        // Its number may soon be somebody else's.
        watcher.signal(SIGKILL)
        _ = watcher.wait()
        return status.value ?? .min
    }

    /// Ends it at once, if it runs.
    func stop() async {
        signal(SIGKILL)
        _ = await exit()
    }
}
