import AssentCore
import Foundation
import Testing

/// Why a process of a test did not do what it must.
struct ProcessFailure: Error, CustomStringConvertible {
    let description: String
}

/// A process that a test starts, watches, sends signals and ends. It ends at the latest with the tests' own process.
final class WatchedProcess: Sendable {
    private let process: Locked<Process>
    private let guardian: Locked<Process>
    private let leash: Pipe
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
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(arguments.first))
        process.arguments = Array(arguments.dropFirst())
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let output = Pipe()
        let errors = Pipe()
        process.standardOutput = output
        process.standardError = errors
        return try WatchedProcess(process, output.fileHandleForReading, errors.fileHandleForReading)
    }

    private init(_ process: sending Process, _ lines: FileHandle, _ errors: FileHandle) throws {
        process.terminationHandler = { [status] process in
            let number = process.terminationStatus
            status.update { $0 = process.terminationReason == .exit ? number : -number }
        }
        // A worker thread blocks signals, and a process inherits that.
        var none = sigset_t()
        var before = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try process.run()
        let guardian = Process()
        guardian.executableURL = URL(fileURLWithPath: "/bin/sh")
        guardian.arguments = ["-c", "read -r _; kill -KILL $0 2>/dev/null", "\(process.processIdentifier)"]
        leash = Pipe()
        guardian.standardInput = leash
        try guardian.run()
        self.process = Locked(process)
        self.guardian = Locked(guardian)
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
            while let data = try? errors.read(upToCount: 4096), !data.isEmpty { errorText.update { $0.bytes += data } }
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

    /// Waits until it has written its last to standard error.
    func waitUntilRead() async { await errorText.wait { $0.isAtEnd } }

    /// Whether it has not ended yet.
    var isRunning: Bool { status.value == nil }

    /// Its process id.
    var identifier: Int32 { process.withLock { $0.processIdentifier } }

    func signal(_ number: Int32) {
        process.withLock { process in
            if process.isRunning { kill(process.processIdentifier, number) }
        }
    }

    /// Waits for the end: the exit status, or the negative number of the signal that ended it.
    func exit() async -> Int32 {
        await status.wait { $0 != nil }
        guardian.withLock { if $0.isRunning { kill($0.processIdentifier, SIGKILL) } }
        return status.value ?? .min
    }

    /// Ends it at once, if it runs.
    func stop() async {
        signal(SIGKILL)
        _ = await exit()
    }
}
