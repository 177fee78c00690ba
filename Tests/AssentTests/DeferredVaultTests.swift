import Assent
import AssentTesting
import AssentVault
import Foundation
import TestSupport
import Testing

/// A directory for one test, which goes with it.
private final class Folder: Sendable {
    let url = FileManager.default.temporaryDirectory.appending(path: "assent-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func exists(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: url.appending(path: name).path(percentEncoded: false))
    }
}

@Suite("A vault that is opened when it is first needed") struct DeferredVaultTests {
    private func vault(_ folder: Folder, _ name: String, passphrase: String? = nil) -> DeferredVault {
        let keys =
            passphrase.map { VaultKeys.passphrase(Secret($0)) }
            ?? .softwareFile(folder.url.appending(path: "\(name).key"))
        // Each of many updates waits for all before it, and each of those for the disk.
        return DeferredVault(
            folder.url.appending(path: name), store: "default", keys: keys, lockTimeout: Double(Patience.seconds),
            clock: SystemClock(), random: SystemRandom())
    }

    @Test("It keeps the contract of secret stores", arguments: SecretStoreContract.rules)
    func contract(rule: SecretStoreContract.Rule) async throws {
        let folder = try Folder()
        try await rule.check(vault(folder, "vault"))
    }

    @Test("Nothing is made on the disk before somebody needs it")
    func lazy() async throws {
        let folder = try Folder()
        let vault = vault(folder, "vault")
        #expect(!folder.exists("vault") && !folder.exists("vault.key"))
        #expect(try await vault.names().isEmpty)
        #expect(folder.exists("vault") && folder.exists("vault.key"))
    }

    @Test("Many who need it at once open one vault")
    func atOnce() async throws {
        let folder = try Folder()
        let vault = vault(folder, "vault")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask { _ = try await vault.update("n\(number)", to: Secret("\(number)"), expected: .absent) }
            }
            try await group.waitForAll()
        }
        let again = self.vault(folder, "vault")
        #expect(try await again.names().count == 20)
    }

    @Test("What kept it from opening is told as it is, and the next use tries again")
    func again() async throws {
        let folder = try Folder()
        // A file stands where the vault's directory would be.
        let place = folder.url.appending(path: "vault")
        try Data("x".utf8).write(to: place)
        let vault = vault(folder, "vault")
        await #expect(throws: SecretStoreError.self) { try await vault.value("session") }
        await #expect(throws: SecretStoreError.self) { try await vault.lease("session", deadline: .distantFuture) }
        try FileManager.default.removeItem(at: place)
        #expect(try await vault.value("session") == nil)
    }

    @Test("The wrong passphrase is no reason to make another vault")
    func wrongPassphrase() async throws {
        let folder = try Folder()
        _ = try await vault(folder, "vault", passphrase: "right").update("a", to: Secret("1"), expected: .absent)
        let wrong = vault(folder, "vault", passphrase: "wrong")
        await #expect(throws: SecretStoreError(.wrongKey, "")) { try await wrong.value("a") }
        #expect(try await vault(folder, "vault", passphrase: "right").value("a")?.value == Secret("1"))
    }
}
