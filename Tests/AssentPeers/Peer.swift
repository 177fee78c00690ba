package import AssentCore
import Foundation
import TestSupport

/// Programs that we did not write: where they are, and how they are started.
package enum Peer {
    /// The scripts that start and drive them.
    package static let scripts = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "InteropTests/peers").path

    /// The Python that has the packages of `requirements.txt`.
    ///
    /// - Throws: ``PeerFailure`` when it is not installed.
    package static var python: String {
        get throws {
            let package = URL(fileURLWithPath: scripts).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            let python = package.appending(path: ".build/peers/bin/python").path
            guard FileManager.default.isExecutableFile(atPath: python) else {
                throw PeerFailure("\(python) is missing: run Scripts/setup.sh")
            }
            return python
        }
    }

    /// Whether the Python with the packages of `requirements.txt` is installed, for tests that are skipped without it.
    package static var hasPython: Bool { (try? python) != nil }

    /// Whether all of these files of installed programs are there, for tests that are skipped without them.
    package static func has(_ files: String...) -> Bool {
        files.allSatisfy { FileManager.default.fileExists(atPath: $0) }
    }

    /// Starts one of the scripts in a directory of its own, and waits until it says that it is ready.
    ///
    /// - Parameters:
    ///   - script: its name; it is given the directory, a free port and `arguments`, and writes `ready` when the
    ///     program that it has become answers, or else a line that says what is wrong. The program must set
    ///     SO_REUSEADDR (``TestSupport/ReservedPort``).
    ///   - arguments: what else it is given.
    /// - Returns: the process and its port.
    /// - Throws: ``PeerFailure``.
    package static func start(
        _ script: String, _ arguments: [String] = []
    ) async throws -> (process: Locked<ChildProcess>, port: Int) {
        let directory = try temporaryDirectory()
        // Until the program listens there nobody else does, who could be taken for it.
        let reserved = try ReservedPort()
        defer { withExtendedLifetime(reserved) {} }
        let words = [scripts + "/" + script, directory, String(reserved.port)]
        let process = Locked(try ChildProcess("/bin/bash", words + arguments, removing: directory))
        let said = await line(of: process) ?? "it ended"
        if said == "ready" { return (process, reserved.port) }
        process.withLock { $0.stop() }
        throw PeerFailure("\(script): \(said)")
    }

    /// A new directory that only this user may read.
    ///
    /// - Returns: its path.
    /// - Throws: what the file system says.
    package static func temporaryDirectory() throws -> String {
        let directory = NSTemporaryDirectory() + "/assent-peer-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        return directory
    }

    /// Waits for a line on a thread on which waiting holds nobody up.
    package static func line(of process: Locked<ChildProcess>) async -> String? {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: process.withLock { $0.line() }) }
        }
    }
}
