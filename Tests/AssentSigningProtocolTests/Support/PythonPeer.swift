import AssentCore
import Foundation
import TestSupport

/// The second implementation, `Tests/Signing/tsp`, as far as one program for it goes.
enum PythonPeer {
    static let interpreter = "/usr/bin/python3"

    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Signing").path

    /// In CI the program must be there: a missing one fails the tests instead of skipping them.
    static let mustRun = ProcessInfo.processInfo.environment["CI"] != nil || (try? run("pass", [])) != nil

    struct Failure: Error {
        let complaints: String
    }

    /// What a program writes; `arguments` are its own.
    static func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = try FinishedProcess.run(
            "/usr/bin/timeout",
            ["60", interpreter, "-c", "from tsp import framing, oprf, pin\n" + program] + arguments,
            directory: folder)
        guard process.status == 0 else { throw Failure(complaints: process.complaints) }
        return process.text.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
