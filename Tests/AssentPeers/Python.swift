package import AssentCore
import Foundation

extension Peer {
    /// Runs one of the Python scripts, for a minute at most.
    ///
    /// - Parameters:
    ///   - script: its name.
    ///   - job: what it is told, on its standard input: secrets do not belong into arguments.
    /// - Returns: the JSON that it has written.
    /// - Throws: ``PeerFailure`` with what it has complained about.
    package static func run(_ script: String, _ job: JSONValue) async throws -> JSONValue {
        let python = try python
        return try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result { try finish(python, [scripts + "/" + script], input: job.serializedBytes()) })
            }
        }
    }

    private static func finish(_ python: String, _ arguments: [String], input: [UInt8]) throws -> JSONValue {
        let directory = try temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (output, errors) = (directory + "/output", directory + "/errors")
        for path in [output, errors] { _ = FileManager.default.createFile(atPath: path, contents: nil) }
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
        process.arguments = ["--kill-after=5", "60", python] + arguments
        process.environment = [
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "", "PYTHONDONTWRITEBYTECODE": "1",
        ]
        process.standardInput = pipe
        process.standardOutput = FileHandle(forWritingAtPath: output)
        process.standardError = FileHandle(forWritingAtPath: errors)
        try process.runWithSignals()
        try pipe.fileHandleForWriting.write(contentsOf: Data(input))
        try pipe.fileHandleForWriting.close()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let said = try String(contentsOfFile: errors, encoding: .utf8)
            throw PeerFailure("\(arguments): status \(process.terminationStatus): \(said.suffix(2000))")
        }
        return try JSONValue.parse([UInt8](try Data(contentsOf: URL(fileURLWithPath: output))))
    }
}
