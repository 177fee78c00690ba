import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("Vault keys in software")
struct KeyTests {
    private let context = Array("a vault's header".utf8)
    private let dataKey = Secret(bytes: [UInt8](repeating: 7, count: 32))

    @Test("A key file opens what it sealed, and nothing that was changed")
    func keyFile() async throws {
        let directory = try TemporaryDirectory()
        let key = VaultKeyFile(directory.keyFile)
        let sealed = try await key.seal(dataKey, context: context)
        #expect(try await VaultKeyFile(directory.keyFile).unseal(sealed, context: context) == dataKey)
        #expect(await code { _ = try await key.unseal(sealed, context: [0] + context) } == .tampered)
        for position in sealed.indices {
            var changed = sealed
            changed[position] ^= 1
            let failure = await code { _ = try await key.unseal(changed, context: context) }
            // The first 16 bytes say which key sealed it.
            #expect(failure == (position < 16 ? .wrongKey : .tampered))
            let cut = Array(sealed.prefix(position))
            #expect(await code { _ = try await key.unseal(cut, context: context) } == .tampered)
        }
    }

    @Test("A key file that is gone is never made anew for a vault that exists")
    func missingKeyFile() async throws {
        let directory = try TemporaryDirectory()
        try await directory.open().update("name", to: Secret("x"), expected: .any)
        let key = try Data(contentsOf: directory.keyFile)
        try FileManager.default.removeItem(at: directory.keyFile)
        #expect(await code { _ = try await directory.open() } == .keyUnavailable)
        #expect(!FileManager.default.fileExists(atPath: directory.keyFile.path))
        let made = FileManager.default.createFile(
            atPath: directory.keyFile.path, contents: key, attributes: [.posixPermissions: 0o600])
        #expect(made)
        #expect(try await directory.open().value("name")?.value == Secret("x"))
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
        #expect(mkfifo(directory.url.appending(path: "fifo").path, 0o600) == 0)
        let fifo = VaultKeyFile(directory.url.appending(path: "fifo"))
        #expect(await code { _ = try await FileVault.open(directory.vault, keys: fifo) } == .keyUnavailable)
    }

    @Test("A key file in a directory that others can write to is refused")
    func exposedKeyDirectory() async throws {
        let directory = try TemporaryDirectory()
        try FileManager.default.setAttributes([.posixPermissions: 0o770], ofItemAtPath: directory.url.path)
        let key = VaultKeyFile(directory.keyFile)
        #expect(await code { _ = try await key.seal(dataKey, context: context) } == .keyUnavailable)
        #expect(!FileManager.default.fileExists(atPath: directory.keyFile.path))
    }

    @Test("A key file that is cut off or holds something else is no key")
    func damagedKeyFile() async throws {
        let disk = SimulatedDisk()
        let key = VaultKeyFile(name: "key") { _ in disk }
        let sealed = try await key.seal(dataKey, context: context)
        let content = try #require(disk["key"])
        for length in content.indices {
            disk["key"] = Array(content.prefix(length))
            #expect(await code { _ = try await key.unseal(sealed, context: context) } == .wrongKey, "\(length)")
            #expect(await code { _ = try await key.seal(dataKey, context: context) } == .wrongKey, "\(length)")
        }
        disk["key"] = Array("assent-vault-key:2:\n".utf8)
        #expect(await code { _ = try await key.unseal(sealed, context: context) } == .newerFormat)
        disk["key"] = [UInt8](repeating: 65, count: 300)
        #expect(await code { _ = try await key.unseal(sealed, context: context) } == .keyUnavailable)
    }

    @Test("Processes that make the key file at once agree on one key")
    func keyFileRace() async throws {
        let directory = try TemporaryDirectory()
        let sealed = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<8 {
                group.addTask { try await VaultKeyFile(directory.keyFile).seal(dataKey, context: context) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        for blob in sealed {
            #expect(try await VaultKeyFile(directory.keyFile).unseal(blob, context: context) == dataKey)
        }
        #expect(try directory.files().count == 1)
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
    }

    @Test(
        "scrypt parameters outside of the limits are refused before any work",
        arguments: [
            [13, 8, 1], [19, 8, 1], [63, 8, 1], [255, 8, 1], [15, 0, 1], [15, 7, 1], [15, 17, 1], [15, 255, 1],
            [15, 8, 0],
            [15, 8, 5],
        ] as [[UInt8]])
    func costLimits(parameters: [UInt8]) async throws {
        #expect(
            VaultPassphrase.Cost(
                logRounds: parameters[0], blockSize: parameters[1], parallelism: parameters[2]) == nil)
        let key = try VaultPassphrase(Secret("correct horse"))
        let blob = parameters + [UInt8](repeating: 0, count: 32 + 76)
        #expect(await code { _ = try await key.unseal(blob, context: context) } == .tampered)
    }

    @Test("A passphrase's blob is bound to its parameters and its salt")
    func passphraseBlob() async throws {
        let cost = try #require(VaultPassphrase.Cost(logRounds: 14, blockSize: 8, parallelism: 1))
        let key = try VaultPassphrase(Secret("correct horse"), cost: cost, random: SeededRandom(seed: 1))
        let sealed = try await key.seal(dataKey, context: context)
        // A passphrase opens what another cost sealed: the blob says which.
        let other = try VaultPassphrase(Secret("correct horse"))
        #expect(try await other.unseal(sealed, context: context) == dataKey)
        for position in [0, 1, 2, 3, 34, 35, 50, 51, 70, sealed.count - 1] {
            var changed = sealed
            changed[position] ^= 1
            #expect(await code { _ = try await key.unseal(changed, context: context) } != nil, "\(position)")
        }
        for length in [0, 2, 3, 34, 35, sealed.count - 1] {
            let cut = Array(sealed.prefix(length))
            #expect(await code { _ = try await key.unseal(cut, context: context) } == .tampered, "\(length)")
        }
        #expect(await code { _ = try VaultPassphrase(Secret("")) } == .invalidInput)
    }

    @Test("A vault made with hardware never opens with software, or the other way round")
    func protectionIsKept() async throws {
        let disk = SimulatedDisk()
        let hardware = try await vault(on: disk, keys: MemoryKey(protection: .hardware))
        #expect(hardware.protection == .hardware)
        #expect(await code { _ = try await vault(on: disk, keys: MemoryKey()) } == .keyUnavailable)
        let other = SimulatedDisk()
        _ = try await vault(on: other)
        #expect(
            await code { _ = try await vault(on: other, keys: MemoryKey(protection: .hardware)) } == .keyUnavailable)
    }

    @Test("Another key and another kind of key are told apart from damage")
    func wrongKey() async throws {
        let disk = SimulatedDisk()
        _ = try await vault(on: disk)
        #expect(await code { _ = try await vault(on: disk, keys: MemoryKey(seed: 2)) } == .wrongKey)
        #expect(await code { _ = try await vault(on: disk, keys: MemoryKey(kind: "other")) } == .wrongKey)
    }

    @Test("No error, description or dump shows a key or a passphrase")
    func nothingShown() async throws {
        let directory = try TemporaryDirectory()
        let passphrase = try VaultPassphrase(Secret("correct horse battery"))
        let vault = try await FileVault.open(directory.vault, keys: passphrase)
        try await vault.update("name", to: Secret("staple staple"), expected: .any)
        var text = "\(passphrase) \(vault) \(try await vault.value("name").debugDescription)"
        dump(passphrase, to: &text)
        dump(try await vault.value("name"), to: &text)
        for secret in ["correct horse", "staple"] { #expect(!text.contains(secret)) }
    }
}
