#if TPM && os(Linux)
import AssentCore
import AssentPeers
import Foundation
import TestSupport

@testable import AssentPlatform

/// swtpm with a state of its own, reached through a socket in a temporary directory.
final class SoftTPM: Sendable {
    static let pin = Secret("271828")

    let directory: TemporaryDirectory
    private let tpm: SwTPM

    var tcti: String { tpm.tcti }
    var keys: URL { directory.url.appending(path: "keys") }

    init() throws {
        directory = try TemporaryDirectory()
        tpm = try SwTPM(in: directory.url)
    }

    func stop() { tpm.stop() }

    func start() throws { try tpm.start() }

    func clear() throws { try tpm.clear() }

    func provider(_ pin: (any UserPresence)? = KnownSecret(SoftTPM.pin), keys: URL? = nil) -> TPMKeyProvider {
        TPMKeyProvider(
            directory: keys ?? self.keys, tcti: tcti, pin: pin, lockTimeout: TimeInterval(Patience.seconds))
    }

    func tool(_ name: String, _ arguments: [String]) throws { try tpm.tool(name, arguments) }
}
#endif
