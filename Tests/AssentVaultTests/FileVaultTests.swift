import AssentCore
import AssentPeers
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("File vault")
struct FileVaultTests {
    @Test("What was stored is there after the vault was opened again")
    func reopens() async throws {
        let directory = try TemporaryDirectory()
        try await directory.open().update("tokens", to: Secret("refresh-1"), expected: .absent)
        let stored = try await directory.open().value("tokens")
        #expect(stored == StoredSecret(value: Secret("refresh-1"), version: 1))
    }

    @Test("A vault with a passphrase opens with that passphrase only")
    func passphrase() async throws {
        let directory = try TemporaryDirectory()
        func keys(_ passphrase: String) -> VaultKeys {
            .software(
                SoftwareKeyProvider(
                    file: directory.keyFile, passphrase: KnownSecret(Secret(passphrase)), cost: cheap))
        }
        try await FileVault.open(directory.vault, keys: keys("correct horse"))
            .update("name", to: Secret("x"), expected: .any)
        let again = try await FileVault.open(directory.vault, keys: keys("correct horse"))
        #expect(try await again.value("name")?.value == Secret("x"))
        #expect(try await again.info().keyDerivation == "$scrypt$ln=14,r=8,p=1")
        #expect(await code { _ = try await FileVault.open(directory.vault, keys: keys("correct house")) } == .wrongKey)
        let before = try Data(contentsOf: directory.keyFile)
        #expect(await code { _ = try await directory.open() } == .protectionMismatch)
        #expect(try Data(contentsOf: directory.keyFile) == before)
    }

    @Test("Files have mode 0600 and directories 0700")
    func modes() async throws {
        let directory = try TemporaryDirectory()
        let vault = try await FileVault.open(
            directory.url.appending(path: "made/for/vault"),
            keys: .software(
                SoftwareKeyProvider(unprotectedFile: directory.url.appending(path: "made/for/keys/vault.key"))))
        try await vault.update("name", to: Secret("x"), expected: .any)
        let lease = try await vault.lease("name", deadline: .distantFuture)
        await lease.release()
        let files = try directory.files()
        #expect(files.count == 6)
        for file in files { #expect(try directory.mode(file) == 0o600, "\(file.lastPathComponent)") }
        for path in ["made", "made/for", "made/for/vault", "made/for/keys"] {
            #expect(try directory.mode(directory.url.appending(path: path)) == 0o700, "\(path)")
        }
    }

    @Test("Neither values nor names are readable on the disk")
    func nothingInPlainSight() async throws {
        let directory = try TemporaryDirectory()
        let vault = try await directory.open()
        let value = "a-very-secret-value-0123456789"
        let name = "the-name-of-a-secret"
        for version in 0..<3 { try await vault.update(name, to: Secret(value + "\(version)"), expected: .any) }
        try await vault.update(name, to: nil, expected: .any)
        try await vault.update(name + "2", to: Secret(value), expected: .any)
        for file in try directory.files() {
            let content = try Data(contentsOf: file)
            for text in [value, name, Base64URL.encode(Array(value.utf8)), Hex.encode(Array(name.utf8))] {
                #expect(content.range(of: Data(text.utf8.prefix(12))) == nil, "\(file.lastPathComponent)")
                #expect(!file.path.contains(text.prefix(12)))
            }
        }
    }

    @Test("A cancelled task updates and empties a vault whose keys are in a device that gives cancelled tasks no turn")
    func cancelledTask() async throws {
        let directory = try TemporaryDirectory()
        let vault = try await FileVault.open(
            directory.vault, keys: .requireHardware(FakeDevice(counters: true)), lockTimeout: unhurried)
        let update = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await vault.update("tokens", to: Secret("refresh-2"), expected: .absent)
        }
        #expect(try await update.value == 1)
        #expect(try await vault.value("tokens")?.value == Secret("refresh-2"))
        let removal = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await vault.removeAll()
        }
        try await removal.value
        #expect(try await vault.names().isEmpty)
    }

    @Test("Updates leave no file behind")
    func noLeftovers() async throws {
        let directory = try TemporaryDirectory()
        let vault = try await directory.open()
        for number in 0..<10 { try await vault.update("name", to: Secret("\(number)"), expected: .any) }
        #expect(try directory.files().count == 6)
        try await vault.removeAll()
        #expect(try directory.files().count == 4)
    }

    @Test("Another process's updates are seen, and versions are judged by them")
    func sharedBetweenVaults() async throws {
        let directory = try TemporaryDirectory()
        let one = try await directory.open()
        let other = try await directory.open()
        try await one.update("name", to: Secret("1"), expected: .absent)
        #expect(try await other.value("name")?.value == Secret("1"))
        try await other.update("name", to: Secret("2"), expected: .exactly(1))
        #expect(try await one.value("name")?.version == 2)
        #expect(await code { try await one.update("name", to: Secret("3"), expected: .exactly(1)) } == .versionMismatch)
    }

    @Test("Readers and writers of one directory do not disturb each other")
    func readersAndWriters() async throws {
        let directory = try TemporaryDirectory()
        let vaults = [try await directory.open(), try await directory.open(), try await directory.open()]
        try await vaults[0].update("name", to: Secret("1"), expected: .absent)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, vault) in vaults.enumerated() {
                group.addTask {
                    var last: UInt64 = 0
                    for _ in 0..<30 {
                        if index > 0 { try await vault.update("name", to: Secret("value"), expected: .any) }
                        let version = try #require(try await vault.value("name")).version
                        #expect(version >= last)
                        last = version
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await vaults[0].value("name")?.version == 61)
    }

    @Test("A name removed long ago still never repeats a version")
    func foldedNames() async throws {
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk)
        try await vault.update("first", to: Secret("1"), expected: .any)
        try await vault.update("first", to: nil, expected: .any)
        for number in 0..<5_000 where try await vault.shares("first", "name \(number)") {
            try await vault.update("name \(number)", to: Secret("x"), expected: .any)
            try await vault.update("name \(number)", to: nil, expected: .any)
        }
        #expect(try await vault.update("first", to: Secret("2"), expected: .absent) == 2)
        #expect(try await vault.names() == ["first"])
    }

    @Test("The cost of an update does not depend on the other secrets")
    func updateCost() async throws {
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk)
        try await vault.update("name", to: Secret("x"), expected: .any)
        let before = disk.bytesWritten
        try await vault.update("name", to: Secret("x"), expected: .any)
        let alone = disk.bytesWritten - before
        for number in 0..<1_000 { try await vault.update("other \(number)", to: Secret("x"), expected: .any) }
        let later = disk.bytesWritten
        try await vault.update("name", to: Secret("x"), expected: .any)
        let among = disk.bytesWritten - later
        // 64 references of 65 bytes, and a list of some 16 names.
        #expect(among - alone < 64 * 65 + 40 * 84)
    }

    @Test("A vault holds no more secrets than it should, and can still change those that it has")
    func entryLimit() async throws {
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk)
        try await vault.pretendToHold(VaultLimits.entries - 1)
        try await vault.update("last", to: Secret("x"), expected: .absent)
        #expect(await code { try await vault.update("more", to: Secret("x"), expected: .any) } == .invalidInput)
        try await vault.update("last", to: Secret("y"), expected: .exactly(1))
        try await vault.update("last", to: nil, expected: .exactly(2))
        try await vault.update("more", to: Secret("x"), expected: .any)
    }

    @Test("A directory that others can enter is refused, and so is a symbolic link")
    func exposedDirectory() async throws {
        let directory = try TemporaryDirectory()
        let open = directory.url.appending(path: "open")
        try FileManager.default.createDirectory(
            at: open, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o750])
        #expect(await code { _ = try await FileVault.open(open, keys: .software(MemoryKey())) } == .notPermitted)
        let link = directory.url.appending(path: "link")
        _ = try await directory.open()
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: directory.vault)
        #expect(await code { _ = try await FileVault.open(link, keys: .software(MemoryKey())) } == .storageFailed)
        let slash = URL(filePath: link.path + "/", directoryHint: .isDirectory)
        #expect(await code { _ = try await FileVault.open(slash, keys: .software(MemoryKey())) } == .storageFailed)
    }

    @Test("Something else where a file belongs is an error that says so", arguments: ["directory", "link", "fifo"])
    func inTheWay(kind: String) async throws {
        let directory = try TemporaryDirectory()
        let vault = try await directory.open()
        try await vault.update("name", to: Secret("x"), expected: .any)
        for file in try FileManager.default.contentsOfDirectory(at: directory.vault, includingPropertiesForKeys: nil) {
            let aside = directory.url.appending(path: "aside")
            try FileManager.default.moveItem(at: file, to: aside)
            switch kind {
            case "directory": try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
            case "link": try FileManager.default.createSymbolicLink(at: file, withDestinationURL: aside)
            default: #expect(mkfifo(file.path, 0o600) == 0)
            }
            let failure = await code {
                let again = try await directory.open()
                _ = try await again.value("name")
                try await again.update("name", to: Secret("y"), expected: .exactly(1))
            }
            #expect(failure == .storageFailed, "\(file.lastPathComponent)")
            try FileManager.default.removeItem(at: file)
            try FileManager.default.moveItem(at: aside, to: file)
        }
        #expect(try await directory.open().value("name")?.version == 1)
    }

    @Test("A directory that cannot be written to can be read", .enabled(if: geteuid() != 0))
    func readOnlyDirectory() async throws {
        let directory = try TemporaryDirectory()
        try await directory.open().update("name", to: Secret("x"), expected: .any)
        let files = FileManager.default
        try files.setAttributes([.posixPermissions: 0o500], ofItemAtPath: directory.vault.path)
        defer { try? files.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory.vault.path) }
        let vault = try await directory.open()
        #expect(try await vault.value("name")?.value == Secret("x"))
        #expect(await code { try await vault.update("name", to: Secret("y"), expected: .any) } == .notPermitted)
        #expect(try await vault.value("name")?.version == 1)
    }

    @Test("A missing vault is made only when that was asked for")
    func createIfMissing() async throws {
        let directory = try TemporaryDirectory()
        let open = {
            _ = try await FileVault.open(directory.vault, keys: .software(MemoryKey()), createIfMissing: false)
        }
        #expect(await code(of: open) == .absent)
        #expect(try directory.files().isEmpty)
    }
}

extension FileVault {
    fileprivate func shares(_ one: String, _ other: String) async throws -> Bool {
        let sealer = try await current().sealer
        return sealer.shardIndex(of: one) == sealer.shardIndex(of: other)
    }

    /// Commits a manifest that claims more names than there are.
    fileprivate func pretendToHold(_ count: Int) async throws {
        let contents = try await current()
        let unused = try #require(
            (0..<VaultManifest.shardCount).first { index in
                !["last", "more"].contains { contents.sealer.shardIndex(of: $0) == index }
            })
        var manifest = contents.manifest
        manifest.shards[unused] = VaultManifest.Shard(
            file: SealedFile(
                id: [UInt8](repeating: 0, count: 16), length: 0, digest: [UInt8](repeating: 0, count: 32)),
            count: UInt32(count), highest: 1)
        try await commit(manifest, of: contents)
    }
}
