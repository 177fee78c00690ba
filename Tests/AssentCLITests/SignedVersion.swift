#if os(Linux)
import Foundation
import ArgumentParser
import AssentCore

@testable import AssentCLI

extension VaultCommandTests.Home {
    /// Makes a key as `assent config key` does, in the test's own process.
    func makeKey(_ name: String) throws {
        _ = try TrustKeyFile.make(directory.appending(path: name).path)
    }

    /// Signs a draft as `assent config sign` does, in the test's own process: `ConfigCommandTests` starts the program.
    func sign(_ draft: String, in versions: String, key: String) async throws {
        let command = try ConfigSignCommand.parse([draft, versions, "--key", key])
        let file = try await command.signed(at: Int(SystemClock().epochSeconds))
        try TrustDirectory(path: versions).write(file)
    }
}
#endif
