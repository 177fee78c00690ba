#if TPM && os(Linux)
import AssentCore
import AssentPeers
import Foundation
import Testing

@testable import AssentPlatform

/// swtpm with a state of its own, reached through a socket in a temporary directory.
final class SoftTPM: Sendable {
    static let pin = Secret("271828")

    let directory: TemporaryDirectory
    private let process = Locked<ChildProcess?>(nil)

    var tcti: String { "swtpm:path=" + directory.path("tpm") }
    var keys: URL { directory.url.appending(path: "keys") }

    init() throws {
        directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(atPath: directory.path("state"), withIntermediateDirectories: true)
        try start()
    }

    deinit { stop() }

    func stop() {
        process.withLock { process in
            process?.stop()
            process = nil
        }
        for name in ["tpm", "tpm.ctrl"] { try? FileManager.default.removeItem(atPath: directory.path(name)) }
    }

    func start() throws {
        let arguments = [
            "socket", "--tpm2", "--tpmstate", "dir=" + directory.path("state"), "--server",
            "type=unixio,path=" + directory.path("tpm"), "--ctrl", "type=unixio,path=" + directory.path("tpm.ctrl"),
            "--flags", "not-need-init,startup-clear",
        ]
        try process.withLock { $0 = try ChildProcess("/usr/bin/swtpm", arguments) }
        try wait { (try? TPMConnection(tcti, parent: .ownerHierarchy)) != nil }
    }

    /// Forgets all that the TPM holds, as clearing it in the firmware does.
    func clear() throws {
        stop()
        try FileManager.default.removeItem(atPath: directory.path("state"))
        try FileManager.default.createDirectory(atPath: directory.path("state"), withIntermediateDirectories: true)
        try start()
    }

    func provider(_ pin: (any UserPresence)? = KnownSecret(SoftTPM.pin), keys: URL? = nil) -> TPMKeyProvider {
        TPMKeyProvider(directory: keys ?? self.keys, tcti: tcti, pin: pin)
    }

    /// Runs one of tpm2-tools on this TPM.
    func tool(_ name: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/" + name)
        process.arguments = arguments + ["-T", tcti]
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(name) failed")
    }

    private func wait(_ condition: () -> Bool) throws {
        for _ in 0..<20_000 {
            if condition() { return }
            // Not time that is tested: another process starts.
            var pause = timespec(tv_sec: 0, tv_nsec: 1_000_000)
            nanosleep(&pause, nil)
        }
        throw PeerFailure("swtpm does not start")
    }
}
#endif
