import Foundation

/// The second implementation of transaction signing, `Tests/Signing/tsp`.
package enum PythonPeer {
    /// Debian's Python.
    package static let interpreter = "/usr/bin/python3"

    /// Where the package `tsp` is.
    package static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Signing").path

    /// In CI the program must be there: a missing one fails the tests instead of skipping them.
    package static let mustRun = ProcessInfo.processInfo.environment["CI"] != nil || (try? run("pass")) != nil

    /// What went wrong there.
    package struct Failure: Error {
        /// Its standard error.
        package let complaints: String

        /// A failure.
        package init(complaints: String) { self.complaints = complaints }
    }

    /// What a program writes that has its framing, VOPRF, passwords and thief at hand.
    package static func run(_ program: String, _ arguments: [String] = [], input: [UInt8] = []) throws -> String {
        try text(of: ["-c", "from tsp import framing, oprf, pin, thief\n" + program] + arguments, input: input)
    }

    /// What a script of `Tests` writes. Its input may have secrets: they do not belong into arguments.
    package static func run(script: String, _ arguments: [String] = [], input: [UInt8]) throws -> String {
        let path = URL(filePath: folder).deletingLastPathComponent().appending(path: script).path
        return try text(of: [path] + arguments, input: input)
    }

    private static func text(of arguments: [String], input: [UInt8]) throws -> String {
        let process = try FinishedProcess.run(
            "/usr/bin/timeout", ["\(Patience.seconds)", interpreter] + arguments, directory: folder, input: input)
        guard process.status == 0 else { throw Failure(complaints: process.complaints) }
        return process.text.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
