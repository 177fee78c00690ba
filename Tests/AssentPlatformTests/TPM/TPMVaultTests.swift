#if TPM && PKCS11 && os(Linux)
import AssentCore
import AssentPeers
import AssentVault
import Foundation
import Testing

@testable import AssentPlatform

@Suite("A vault that a device guards")
struct TPMVaultTests {
    @Test("An old copy of everything, the TPM's wrapped keys included, is noticed by the TPM's counter")
    func rolledBack() async throws {
        let tpm = try SoftTPM()
        let directory = tpm.directory.url.appending(path: "vault")
        let keys = VaultKeys.requireHardware(tpm.provider(keys: directory.appending(path: "tpm")))
        let vault = try await FileVault.open(directory, keys: keys, lockTimeout: 300)
        #expect(try await vault.info().isRollbackProtected)
        try await vault.update("token", to: Secret("first"), expected: .absent)
        let copy = tpm.directory.url.appending(path: "copy")
        try FileManager.default.copyItem(at: directory, to: copy)
        try await vault.update("token", to: Secret("second"), expected: .any)
        try await vault.update("token", to: Secret("third"), expected: .any)
        #expect(try await FileVault.open(directory, keys: keys).value("token")?.value == Secret("third"))

        try FileManager.default.removeItem(at: directory)
        try FileManager.default.copyItem(at: copy, to: directory)
        let error = await #expect(throws: SecretStoreError.self) {
            _ = try await FileVault.open(directory, keys: keys).value("token")
        }
        #expect(error?.code == .rolledBack)
    }

    @Test("PKCS#11 has no counter: an old copy of the whole vault opens, and the vault says beforehand that it would")
    func notNoticed() async throws {
        let hsm = try SoftHSM.shared.get()
        let label = try hsm.makeToken()
        let keys = VaultKeys.requireHardware(hsm.provider(label))
        let place = try TemporaryDirectory()
        let directory = place.url.appending(path: "vault")
        let vault = try await FileVault.open(directory, keys: keys, lockTimeout: 300)
        #expect(try await vault.info().isRollbackProtected == false)
        try await vault.update("token", to: Secret("first"), expected: .absent)
        let copy = place.url.appending(path: "copy")
        try FileManager.default.copyItem(at: directory, to: copy)
        try await vault.update("token", to: Secret("second"), expected: .any)
        try FileManager.default.removeItem(at: directory)
        try FileManager.default.copyItem(at: copy, to: directory)
        #expect(try await FileVault.open(directory, keys: keys).value("token")?.value == Secret("first"))
    }

    @Test("Where the device is gone, nothing opens and no other key takes its place; with the device, all is there")
    func gone() async throws {
        let hsm = try SoftHSM.shared.get()
        let label = try hsm.makeToken()
        let module = try hsm.faulty()
        let place = try TemporaryDirectory()
        let directory = place.url.appending(path: "vault")
        let keys = VaultKeys.preferHardware(
            [module.provider(label)],
            otherwise: SoftwareKeyProvider(unprotectedFile: place.url.appending(path: "key")))
        try await FileVault.open(directory, keys: keys, lockTimeout: 300)
            .update("token", to: Secret("kept"), expected: .absent)
        try module.set(["slot-count": 0])
        let again = VaultKeys.preferHardware(
            [module.provider(label)],
            otherwise: SoftwareKeyProvider(unprotectedFile: place.url.appending(path: "key")))
        let error = await #expect(throws: SecretStoreError.self) {
            _ = try await FileVault.open(directory, keys: again)
        }
        #expect(error?.code == .keyUnavailable)
        #expect(error?.detail.contains("Insert") == true)
        #expect(!FileManager.default.fileExists(atPath: place.path("key")))
        try module.set([:])
        #expect(try await FileVault.open(directory, keys: again).value("token")?.value == Secret("kept"))
    }
}
#endif
