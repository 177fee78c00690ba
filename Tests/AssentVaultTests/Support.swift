import AssentCore
import Foundation
import Testing

@testable import AssentVault

/// How many seconds an update waits where waiting is not what is tested: a disk under load is slow.
let unhurried: Double = 300

/// A directory of the real file system that is gone after the test.
final class TemporaryDirectory: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "assent-vault-\(SystemRandom().uuid())")
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    var vault: URL { url.appending(path: "vault") }
    var keyFile: URL { url.appending(path: "vault.key") }

    func open() async throws -> FileVault {
        try await FileVault.open(vault, keys: VaultKeyFile(keyFile), lockTimeout: unhurried)
    }

    func mode(_ url: URL) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int)
    }

    /// All files below, by path.
    func files() throws -> [URL] {
        let paths = try #require(FileManager.default.subpaths(atPath: url.path))
        return paths.map { url.appending(path: $0) }.filter { (try? Data(contentsOf: $0)) != nil }
    }
}

/// A key in memory.
struct MemoryKey: VaultKeyProvider {
    var seed: UInt8 = 1
    var protection = KeyProtection.software
    var kind = "memory"

    private var key: SoftwareVaultKey {
        SoftwareVaultKey(Secret(bytes: [UInt8](repeating: seed, count: 32)).symmetricKey)
    }

    func seal(_ dataKey: Secret, context: [UInt8]) async throws -> [UInt8] {
        try key.seal(dataKey, context: context)
    }

    func unseal(_ sealed: [UInt8], context: [UInt8]) async throws -> Secret {
        try key.unseal(sealed, context: context)
    }
}

func vault(
    on disk: any VaultDirectory, keys: any VaultKeyProvider = MemoryKey(), createIfMissing: Bool = true
) async throws -> FileVault {
    let vault = FileVault(
        files: disk, keys: keys, clock: SystemClock(), random: SystemRandom(), lockTimeout: unhurried)
    try await vault.start(createIfMissing: createIfMissing)
    return vault
}

/// The code of the store error that `body` throws; anything else fails the test.
func code(
    _ location: SourceLocation = #_sourceLocation, of body: () async throws -> Void
) async -> SecretStoreError.Code? {
    do {
        try await body()
        return nil
    } catch let error as SecretStoreError {
        #expect(error.detail.count > 20, "\(error)", sourceLocation: location)
        return error.code
    } catch {
        Issue.record("\(error)", sourceLocation: location)
        return nil
    }
}

/// Lets other tasks run until `condition` holds; fails when it does not within a million turns.
func until(_ condition: () -> Bool) async throws {
    struct NeverHappened: Error {}
    for _ in 0..<1_000_000 {
        if condition() { return }
        await Task.yield()
    }
    throw NeverHappened()
}
