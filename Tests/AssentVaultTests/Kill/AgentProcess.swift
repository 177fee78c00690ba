#if os(Linux)
import AssentCore
import AssentPeers
import Foundation
import TestSupport
import Testing

@testable import AssentVault

/// A `VaultAgent` that runs: a process of its own, whose lines are read as they come.
final class AgentProcess {
    private let process: SpawnedProcess
    private var unread: [UInt8] = []

    convenience init(_ mode: String, _ directory: TemporaryDirectory, _ number: Int = -1, seed: Int = 0) throws {
        try self.init(mode, at: directory.url, number, seed: seed)
    }

    init(_ mode: String, at directory: URL, _ number: Int = -1, seed: Int = 0) throws {
        process = try SpawnedProcess(
            BuiltProgram.beside("VaultAgent").path,
            [mode, directory.path(percentEncoded: false), "\(number)", "\(seed)"],
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
#endif
