package import AssentCore
import Foundation
import TestSupport

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
        let done = try FinishedProcess.run(
            "/usr/bin/timeout", ["--kill-after=5", "\(Patience.seconds)", python] + arguments,
            environment: [
                "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "", "PYTHONDONTWRITEBYTECODE": "1",
            ], input: input)
        guard done.status == 0 else {
            throw PeerFailure("\(arguments): status \(done.status): \(done.complaints.suffix(2000))")
        }
        return try JSONValue.parse(done.output)
    }
}
