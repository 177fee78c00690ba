import Foundation
import TestSupport
import Testing

/// A program that serves as a second implementation.
struct Program: Sendable {
    let path: String

    static let jose = Program(path: "/usr/bin/jose")
    static let openssl = Program(path: "/usr/bin/openssl")

    /// In CI the program must be there: a missing one fails the tests instead of skipping them.
    var mustRun: Bool {
        FileManager.default.isExecutableFile(atPath: path) || ProcessInfo.processInfo.environment["CI"] != nil
    }

    /// Runs in `directory` and gives what it writes, or `nil` when it fails.
    func run(_ arguments: [String], in directory: URL) throws -> [UInt8]? {
        let done = try FinishedProcess.run(path, arguments, directory: directory.path)
        return done.status == 0 ? done.output : nil
    }
}

/// A directory that goes away with the test.
final class Workspace: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "assent-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func write(_ name: String, _ bytes: [UInt8]) throws { try Data(bytes).write(to: url.appending(path: name)) }
    func write(_ name: String, _ text: String) throws { try write(name, Array(text.utf8)) }

    func jose(_ arguments: String...) throws -> [UInt8]? { try Program.jose.run(arguments, in: url) }
}
