#if os(Linux)
import AssentCore
import Foundation
import Spawning
import Testing

@testable import AssentVault

/// A `VaultAgent` that runs: a process of its own, whose lines are read as they come.
final class AgentProcess {
    private let process: SpawnedProcess
    private var unread: [UInt8] = []

    /// Beside the tests' own executable, where SwiftPM puts it.
    private static let executable = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "VaultAgent")

    convenience init(_ mode: String, _ directory: TemporaryDirectory, _ number: Int = -1, seed: Int = 0) throws {
        try self.init(mode, at: directory.url, number, seed: seed)
    }

    init(_ mode: String, at directory: URL, _ number: Int = -1, seed: Int = 0) throws {
        process = try SpawnedProcess(
            Self.executable.path, [mode, directory.path(percentEncoded: false), "\(number)", "\(seed)"],
            input: .pipe, output: .pipe)
    }

    /// The next line; `nil` when the agent has ended.
    func line() -> String? {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { unread.removeFirst(end + 1) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            // What a killed agent began to say counts for nothing.
            guard let data = process.output?.availableData, !data.isEmpty else { return nil }
            unread += data
        }
    }

    func lines() -> [String] { Array(sequence(state: ()) { _ in self.line() }) }

    func kill() { process.signal(SIGKILL) }

    func endInput() throws { try process.input?.close() }

    /// Whether it ended by itself and all was well.
    var endedWell: Bool { process.wait() == 0 }

    var wasKilled: Bool { process.wait() == -SIGKILL }
}

/// What an agent said that it did.
struct Account {
    /// What was acknowledged.
    var secrets: [String: String] = [:]
    /// The change that was begun and not acknowledged; `*` stands for all names.
    var begun: (name: String, value: String?)?
    var acknowledgements = 0

    mutating func read(_ line: String) {
        let words = line.split(separator: " ").map(String.init)
        switch words.first {
        case "begin" where words.count == 3: begun = (words[1], words[2] == "-" ? nil : words[2])
        case "ack":
            secrets = afterBegun
            begun = nil
            acknowledgements += 1
        default: break
        }
    }

    var afterBegun: [String: String] {
        guard let begun else { return secrets }
        if begun.name == "*" { return [:] }
        var secrets = secrets
        secrets[begun.name] = begun.value
        return secrets
    }
}
#endif
