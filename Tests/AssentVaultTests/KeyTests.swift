import AssentCore
import AssentPeers
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("Vault keys in software")
struct KeyTests {
    /// The code of the key error that `body` throws; anything else fails the test.
    private func keyCode(
        _ location: SourceLocation = #_sourceLocation, of body: () async throws -> Void
    ) async -> KeyProviderError.Code? {
        do {
            try await body()
            return nil
        } catch let error as KeyProviderError {
            #expect(error.detail.count > 20, "\(error)", sourceLocation: location)
            return error.code
        } catch {
            Issue.record("\(error)", sourceLocation: location)
            return nil
        }
    }

    private static func provider(_ disk: SimulatedDisk, passphrase: String? = nil) -> SoftwareKeyProvider {
        SoftwareKeyProvider(
            name: "key", passphrase: passphrase.map { KnownSecret(Secret($0)) }, cost: cheap
        ) { _ in disk }
    }

    @Test("A key file that is gone is never made anew for a vault that exists")
    func missingKeyFile() async throws {
        let directory = try TemporaryDirectory()
        try await directory.open().update("name", to: Secret("x"), expected: .any)
        let key = try Data(contentsOf: directory.keyFile)
        try FileManager.default.removeItem(at: directory.keyFile)
        #expect(await code { _ = try await directory.open() } == .keyLost)
        #expect(!FileManager.default.fileExists(atPath: directory.keyFile.path))
        let made = FileManager.default.createFile(
            atPath: directory.keyFile.path, contents: key, attributes: [.posixPermissions: 0o600])
        #expect(made)
        #expect(try await directory.open().value("name")?.value == Secret("x"))
    }

    @Test("A vault restored under another key, or put in another user's place, is not reported as damage")
    func foreignKeyFile() async throws {
        let (one, other) = (try TemporaryDirectory(), try TemporaryDirectory())
        try await one.open().update("name", to: Secret("x"), expected: .any)
        try await other.open().update("name", to: Secret("y"), expected: .any)
        let files = FileManager.default
        // The other user's vault with this user's keys.
        try files.moveItem(at: one.vault, to: one.url.appending(path: "aside"))
        try files.copyItem(at: other.vault, to: one.vault)
        do {
            _ = try await one.open()
            Issue.record("the other user's vault was opened")
        } catch let error as SecretStoreError {
            #expect(error.code == .keyLost)
            #expect(error.detail.contains("another user's vault"))
        }
        // This user's vault, and keys of the same name that are not the same.
        try files.removeItem(at: one.vault)
        try files.moveItem(at: one.url.appending(path: "aside"), to: one.vault)
        let name = try #require(try await SoftwareKeyProvider(unprotectedFile: one.keyFile).keyNames().first)
        try files.removeItem(at: one.keyFile)
        let replaced = SoftwareKeyProvider(unprotectedFile: one.keyFile)
        _ = try await replaced.makeSigningKey(named: name, algorithm: .es256)
        _ = try await replaced.makeAgreementKey(named: name)
        #expect(await code { _ = try await one.open() } == .wrongKey)
    }

    @Test("A key file of others, a link or anything but a file is refused", arguments: [0o640, 0o604, 0o620, 0o601])
    func exposedKeyFile(mode: Int) async throws {
        let directory = try TemporaryDirectory()
        _ = try await directory.open()
        let files = FileManager.default
        try files.setAttributes([.posixPermissions: mode], ofItemAtPath: directory.keyFile.path)
        #expect(await code { _ = try await directory.open() } == .keyUnavailable)
        try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: directory.keyFile.path)
        _ = try await directory.open()

        let elsewhere = directory.url.appending(path: "elsewhere")
        try files.moveItem(at: directory.keyFile, to: elsewhere)
        try files.createSymbolicLink(at: directory.keyFile, withDestinationURL: elsewhere)
        #expect(await code { _ = try await directory.open() } == .keyUnavailable)
        try files.removeItem(at: directory.keyFile)
        try files.createDirectory(at: directory.keyFile, withIntermediateDirectories: false)
        #expect(await code { _ = try await directory.open() } == .keyUnavailable)
        try files.removeItem(at: directory.keyFile)
        #expect(mkfifo(directory.keyFile.path, 0o600) == 0)
        #expect(await code { _ = try await directory.open() } == .keyUnavailable)
    }

    @Test("A key file in a directory that others can write to is refused")
    func exposedKeyDirectory() async throws {
        let directory = try TemporaryDirectory()
        try FileManager.default.setAttributes([.posixPermissions: 0o770], ofItemAtPath: directory.url.path)
        let keys = SoftwareKeyProvider(unprotectedFile: directory.keyFile)
        #expect(await keyCode { _ = try await keys.makeSigningKey(named: "k", algorithm: .es256) } == .unavailable)
        #expect(await !keys.isAvailable)
        #expect(!FileManager.default.fileExists(atPath: directory.keyFile.path))
    }

    @Test("A key file that was cut off or changed is refused, whichever bit it is", arguments: [nil, "correct horse"])
    func damagedKeyFile(passphrase: String?) async throws {
        let disk = SimulatedDisk()
        let key = try await Self.provider(disk, passphrase: passphrase).makeSigningKey(named: "k", algorithm: .es256)
        let content = try #require(disk["key"])
        let expected: Set<KeyProviderError.Code> = [.tampered, .newerFormat, .unavailable, .wrongSecret]
        for position in content.indices {
            // With a passphrase each try costs what a guess costs.
            if passphrase != nil, position > 14, position % 9 != 0 { continue }
            for damaged in [Array(content.prefix(position)), content] {
                var damaged = damaged
                if damaged.count == content.count { damaged[position] ^= 1 << UInt8(position % 8) }
                disk["key"] = damaged
                let provider = Self.provider(disk, passphrase: passphrase)
                let failure = await keyCode { _ = try await provider.signingKey(named: "k") }
                #expect(failure.map(expected.contains) == true, "\(position): \(failure.debugDescription)")
                #expect(
                    await keyCode { _ = try await provider.makeSigningKey(named: "n", algorithm: .es256) } != nil)
                #expect(disk["key"] == damaged, "what was damaged was overwritten")
            }
        }
        disk["key"] = content
        let found = try await Self.provider(disk, passphrase: passphrase).signingKey(named: "k")
        #expect(found?.publicKeyInfo == key.publicKeyInfo)
        disk["key"] = Array("assent-vault-key:1:AAAA\n".utf8)
        #expect(await keyCode { _ = try await Self.provider(disk).signingKey(named: "k") } == .olderFormat)
        disk["key"] = [UInt8](repeating: 65, count: 2 << 20)
        #expect(await keyCode { _ = try await Self.provider(disk).signingKey(named: "k") } == .unavailable)
    }

    @Test("Vaults that are made at once in one directory are one vault")
    func vaultRace() async throws {
        let directory = try TemporaryDirectory()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<6 {
                group.addTask {
                    try await directory.open().update("name \(number)", to: Secret("x"), expected: .absent)
                }
            }
            try await group.waitForAll()
        }
        #expect(try await directory.open().names().count == 6)
        #expect(try await SoftwareKeyProvider(unprotectedFile: directory.keyFile).keyNames().count == 1)
    }

    @Test(
        "scrypt parameters outside of the limits are refused before any work",
        arguments: [
            [13, 8, 1], [19, 8, 1], [63, 8, 1], [255, 8, 1], [0, 8, 1], [15, 0, 1], [15, 7, 1], [15, 17, 1],
            [15, 255, 1], [15, 8, 0], [15, 8, 5],
        ] as [[UInt8]])
    func costLimits(parameters: [UInt8]) async throws {
        #expect(ScryptCost(logRounds: parameters[0], blockSize: parameters[1], parallelism: parameters[2]) == nil)
        let text = "$scrypt$ln=\(parameters[0]),r=\(parameters[1]),p=\(parameters[2])"
        #expect(ScryptCost(description: text) == nil)
        let disk = SimulatedDisk()
        _ = try await Self.provider(disk, passphrase: "correct horse").makeSigningKey(named: "k", algorithm: .es256)
        disk["key"]?.replaceSubrange(11..<14, with: parameters)
        let asked = Locked(0)
        let provider = SoftwareKeyProvider(name: "key", passphrase: Counting(asked: asked), cost: cheap) { _ in disk }
        #expect(await keyCode { _ = try await provider.signingKey(named: "k") } == .tampered)
        #expect(asked.withLock { $0 } == 0)
    }

    @Test("A vault's header that names parameters below the minimum is refused, whoever signed it")
    func costInHeader() async throws {
        let device = FakeDevice(protection: .software)
        let providerKeys = try await ProviderKeys.make(
            vaultID: [UInt8](repeating: 1, count: 16), epoch: 1, provider: device)
        func header(_ derivation: String) async throws -> VaultHeader {
            VaultHeader(
                vaultID: [UInt8](repeating: 1, count: 16), store: "default", level: .software, protection: .software,
                kind: "fake", epoch: 1, keyDerivation: derivation, hasCounter: false,
                fingerprint: providerKeys.fingerprint, wrappedKey: [1])
        }
        let fine = try await header("$scrypt$ln=14,r=8,p=1")
        #expect(try VaultHeader(decoding: fine.encoded) == fine)
        for text in ["$scrypt$ln=1,r=8,p=1", "$scrypt$ln=63,r=8,p=1", "$scrypt$", "$scrypt$ln=014,r=8,p=1"] {
            let weak = try await header(text)
            #expect(throws: SecretStoreError.tampered("")) { try VaultHeader(decoding: weak.encoded) }
        }
    }

    @Test("A key file with other scrypt parameters than the vault was made with is refused")
    func exchangedCost() async throws {
        let directory = try TemporaryDirectory()
        func keys(_ cost: ScryptCost) -> SoftwareKeyProvider {
            SoftwareKeyProvider(file: directory.keyFile, passphrase: KnownSecret(Secret("correct horse")), cost: cost)
        }
        let costly = try #require(ScryptCost(logRounds: 14, blockSize: 8, parallelism: 2))
        _ = try await FileVault.open(directory.vault, keys: .software(keys(costly)))
        // Somebody who knows the passphrase writes the same keys down at a lower cost.
        let content = Array(try Data(contentsOf: directory.keyFile))
        let seal = try #require(try KeyFile.seal(of: content))
        let file = try KeyFile(
            decoding: content, key: seal.cost.key(Secret("correct horse"), salt: seal.salt))
        let lower = KeyFile.Seal(cost: cheap, salt: seal.salt)
        try Data(file.encoded(seal: lower, key: cheap.key(Secret("correct horse"), salt: seal.salt)))
            .write(to: directory.keyFile)
        #expect(await code { _ = try await FileVault.open(directory.vault, keys: .software(keys(cheap))) } == .tampered)
    }

    @Test("A wrong passphrase is asked for again three times, and a known one only once")
    func retries() async throws {
        let disk = SimulatedDisk()
        _ = try await Self.provider(disk, passphrase: "right").makeSigningKey(named: "k", algorithm: .es256)
        let asked = Locked<[PresenceRequest]>([])
        let answers = Locked(["wrong", "also wrong", "right"])
        let presence = Scripted(asked: asked, answers: answers)
        let patient = SoftwareKeyProvider(name: "key", passphrase: presence, cost: cheap) { _ in disk }
        #expect(try await patient.signingKey(named: "k") != nil)
        let requests = asked.withLock { $0 }
        #expect(requests.map(\.isRetry) == [false, true, true])
        #expect(requests.allSatisfy { $0.kind == .passphrase && $0.providerName == "key" })
        _ = try await patient.signingKey(named: "k")
        #expect(asked.withLock { $0.count } == 3, "the passphrase was asked for again")
        #expect(
            await keyCode { _ = try await Self.provider(disk, passphrase: "wrong").signingKey(named: "k") }
                == .wrongSecret)
        #expect(
            await keyCode { _ = try await Self.provider(disk, passphrase: "").signingKey(named: "k") } == .invalidInput)
    }

    @Test("A passphrase is changed at once and whole, and the old one opens nothing any more")
    func changedPassphrase() async throws {
        let directory = try TemporaryDirectory()
        func provider(_ passphrase: String) -> SoftwareKeyProvider {
            SoftwareKeyProvider(file: directory.keyFile, passphrase: KnownSecret(Secret(passphrase)), cost: cheap)
        }
        let vault = try await FileVault.open(directory.vault, keys: .software(provider("old")))
        try await vault.update("name", to: Secret("x"), expected: .absent)
        let changing = provider("old")
        try await changing.changePassphrase(to: KnownSecret(Secret("new")))
        #expect(
            await code { _ = try await FileVault.open(directory.vault, keys: .software(provider("old"))) } == .wrongKey)
        let again = try await FileVault.open(directory.vault, keys: .software(provider("new")))
        #expect(try await again.value("name")?.value == Secret("x"))
        #expect(
            await keyCode { try await provider("wrong").changePassphrase(to: KnownSecret(Secret("z"))) } == .wrongSecret
        )
        let unprotected = SoftwareKeyProvider(unprotectedFile: directory.url.appending(path: "plain"))
        #expect(await keyCode { try await unprotected.changePassphrase(to: KnownSecret(Secret("z"))) } == .unsupported)
    }

    @Test("No error, description or dump shows a key or a passphrase")
    func nothingShown() async throws {
        let directory = try TemporaryDirectory()
        let provider = SoftwareKeyProvider(
            file: directory.keyFile, passphrase: KnownSecret(Secret("correct horse battery")), cost: cheap)
        let vault = try await FileVault.open(directory.vault, keys: .software(provider))
        try await vault.update("name", to: Secret("staple staple"), expected: .any)
        var text = "\(provider) \(vault) \(try await vault.value("name").debugDescription)"
        dump(provider, to: &text)
        dump(vault, to: &text)
        dump(try await vault.value("name"), to: &text)
        for secret in ["correct horse", "staple"] { #expect(!text.contains(secret)) }
    }

    @Test("A wiped buffer holds zeros")
    func wiping() {
        var bytes = Array("secret".utf8)
        Wipe.bytes(&bytes)
        #expect(bytes == [UInt8](repeating: 0, count: 6))
        var data = Data("secret".utf8)
        Wipe.bytes(&data)
        #expect(data == Data(count: 6))
    }
}

private struct Counting: UserPresence {
    let asked: Locked<Int>
    func secret(for request: PresenceRequest) async throws -> Secret {
        asked.withLock { $0 += 1 }
        return Secret("correct horse")
    }
}

private struct Scripted: UserPresence {
    let asked: Locked<[PresenceRequest]>
    let answers: Locked<[String]>
    func secret(for request: PresenceRequest) async throws -> Secret {
        asked.withLock { $0.append(request) }
        return Secret(answers.withLock { $0.removeFirst() })
    }
}
