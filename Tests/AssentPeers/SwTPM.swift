import AssentCore
package import Foundation
import TestSupport

/// swtpm, a TPM 2.0 in software, with a state of its own. Its sockets lie in `directory`, whose path must be short.
package final class SwTPM: Sendable {
    private let directory: URL
    private let process = Locked<ChildProcess?>(nil)

    /// How tpm2-tss reaches it.
    package var tcti: String { "swtpm:path=" + path("tpm") }

    /// Starts a TPM as it leaves the factory.
    ///
    /// - Throws: ``PeerFailure`` when it does not start.
    package init(in directory: URL) throws {
        self.directory = directory
        try FileManager.default.createDirectory(atPath: path("state"), withIntermediateDirectories: true)
        try start()
    }

    deinit { stop() }

    /// Ends it, as if it had been taken out.
    package func stop() {
        process.withLock { process in
            process?.stop()
            process = nil
        }
        for name in ["tpm", "tpm.ctrl"] { try? FileManager.default.removeItem(atPath: path(name)) }
    }

    /// Starts it with what it held before.
    package func start() throws {
        let arguments = [
            "socket", "--tpm2", "--tpmstate", "dir=" + path("state"), "--server",
            "type=unixio,path=" + path("tpm"), "--ctrl", "type=unixio,path=" + path("tpm.ctrl"), "--flags",
            "not-need-init,startup-clear",
        ]
        try process.withLock { $0 = try ChildProcess("/usr/bin/swtpm", arguments) }
        for _ in 0..<20_000 {
            if (try? tool("tpm2_getcap", ["properties-fixed"])) != nil { return }
            // Not time that is tested: another process starts.
            var pause = timespec(tv_sec: 0, tv_nsec: 1_000_000)
            nanosleep(&pause, nil)
        }
        throw PeerFailure("swtpm does not start")
    }

    /// Forgets all that the TPM holds, as clearing it in the firmware does.
    package func clear() throws {
        stop()
        try FileManager.default.removeItem(atPath: path("state"))
        try FileManager.default.createDirectory(atPath: path("state"), withIntermediateDirectories: true)
        try start()
    }

    /// Runs one of tpm2-tools on it.
    ///
    /// - Throws: ``PeerFailure`` when the tool fails.
    package func tool(_ name: String, _ arguments: [String]) throws {
        let done = try FinishedProcess.run("/usr/bin/" + name, arguments + ["-T", tcti])
        guard done.status == 0 else { throw PeerFailure("\(name) failed: \(done.complaints.suffix(500))") }
    }

    private func path(_ name: String) -> String { directory.appending(path: name).path(percentEncoded: false) }
}
