import AssentCore
import AssentPeers
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("A vault that was tampered with")
struct TamperTests {
    private static func prepared(_ secrets: [String: String] = ["name": "one", "other": "two"]) async throws
        -> SimulatedDisk
    {
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk)
        for (name, value) in secrets.sorted(by: <) {
            try await vault.update(name, to: Secret(value), expected: .any)
        }
        return disk
    }

    /// Reads the secret `name` from a copy of `disk` after `damage`: the value, or the error's code. What is damaged
    /// stays there to be looked at and repaired.
    private static func read(
        _ disk: SimulatedDisk, damage: (SimulatedDisk) -> Void
    ) async -> Result<String?, SecretStoreError> {
        let copy = disk.copy()
        damage(copy)
        let damaged = copy.names.map { copy[$0] }
        do {
            return .success(try await vault(on: copy).value("name")?.value.reveal())
        } catch let error as SecretStoreError {
            #expect(copy.names.map { copy[$0] } == damaged, "files were touched")
            return .failure(error)
        } catch {
            Issue.record("\(error)")
            return .success(nil)
        }
    }

    private static func recordFile(_ name: String, _ vault: FileVault) async throws -> String {
        let entry = try await vault.entry(name)
        return FileVault.recordName(try #require(entry.record))
    }

    @Test("never answers with a wrong value, whichever bit of whichever byte is flipped")
    func bitFlips() async throws {
        let disk = try await Self.prepared(["name": "one"])
        for file in disk.names {
            let content = try #require(disk[file])
            for position in content.indices {
                let bit = UInt8(1) << (position % 8)
                let result = await Self.read(disk) { $0[file]?[position] ^= bit }
                guard case .failure(let error) = result else {
                    Issue.record("byte \(position) of \(file) can be changed")
                    continue
                }
                // Format and length of the main file lie where a change looks like something else.
                let due: Set<SecretStoreError.Code> =
                    switch position {
                    case 8...9 where file == "vault": [.tampered, .newerFormat]
                    case 10...13 where file == "vault": [.tampered, .truncated]
                    default: [.tampered]
                    }
                #expect(due.contains(error.code), "\(file) \(position): \(error.code)")
            }
        }
    }

    @Test("never answers with a wrong value, wherever a file ends")
    func truncation() async throws {
        let disk = try await Self.prepared(["name": "one"])
        for file in disk.names {
            let content = try #require(disk[file])
            for length in content.indices {
                let result = await Self.read(disk) { $0[file] = Array(content.prefix(length)) }
                #expect(result == .failure(.truncated("")), "\(file) cut to \(length)")
            }
            let longer = await Self.read(disk) { $0[file] = content + [0] }
            #expect(longer == .failure(.tampered("")), "\(file) made longer")
        }
    }

    @Test("misses any file that is gone")
    func missingFiles() async throws {
        let disk = try await Self.prepared(["name": "one"])
        #expect(disk.names.count == 3)
        for file in disk.names {
            #expect(await Self.read(disk) { $0[file] = nil } == .failure(.tampered("")), "\(file)")
        }
    }

    @Test("keeps its other secrets readable, and the damaged one can be replaced or removed")
    func otherRecords() async throws {
        let disk = try await Self.prepared()
        let file = try await Self.recordFile("name", vault(on: disk))
        let damages: [([UInt8]?, SecretStoreError.Code)] = [
            (nil, .tampered), ([], .truncated), ([UInt8](repeating: 0, count: 100), .tampered),
            ([UInt8](repeating: 0, count: 4 << 20), .tampered),
        ]
        for (damaged, due) in damages {
            let copy = disk.copy()
            copy[file] = damaged
            let vault = try await vault(on: copy)
            #expect(await code { _ = try await vault.value("name") } == due)
            #expect(try await vault.value("other")?.value == Secret("two"))
            #expect(try await vault.names() == ["name", "other"])
            try await vault.update("name", to: Secret("new"), expected: .exactly(1))
            #expect(try await vault.value("name")?.value == Secret("new"))
            copy[try await Self.recordFile("name", vault)] = damaged
            try await vault.update("name", to: nil, expected: .any)
            #expect(try await vault.names() == ["other"])
        }
    }

    @Test("can be emptied even when a list of names is damaged")
    func emptyDamaged() async throws {
        let disk = try await Self.prepared()
        for file in disk.names where file.hasPrefix("s-") { disk[file] = [1, 2, 3] }
        let vault = try await vault(on: disk)
        #expect(await code { _ = try await vault.names() } == .truncated)
        try await vault.removeAll()
        #expect(try await vault.names() == [])
        #expect(disk.names == ["vault"])
        #expect(try await vault.update("name", to: Secret("again"), expected: .absent) == 2)
    }

    @Test("notices records that changed places")
    func swapped() async throws {
        let disk = try await Self.prepared()
        let vault = try await vault(on: disk)
        let one = try await Self.recordFile("name", vault)
        let two = try await Self.recordFile("other", vault)
        (disk[one], disk[two]) = (disk[two], disk[one])
        for name in ["name", "other"] {
            #expect(await code { _ = try await vault.value(name) } == .tampered)
        }
    }

    @Test("notices the record of another vault under the same key")
    func otherVault() async throws {
        let disk = try await Self.prepared()
        let other = try await Self.prepared(["name": "another user's"])
        let file = try await Self.recordFile("name", vault(on: disk))
        let foreign = other[try await Self.recordFile("name", vault(on: other))]
        #expect(await Self.read(disk) { $0[file] = foreign } == .failure(.tampered("")))
        let open = try await vault(on: disk)
        disk["vault"] = other["vault"]
        #expect(await code { _ = try await open.value("name") } == .anotherStore)
    }

    @Test("notices an old record in a new one's place")
    func recordRollback() async throws {
        let disk = try await Self.prepared()
        let vault = try await vault(on: disk)
        let old = disk[try await Self.recordFile("name", vault)]
        try await vault.update("name", to: Secret("new"), expected: .exactly(1))
        disk[try await Self.recordFile("name", vault)] = old
        #expect(await code { _ = try await vault.value("name") } == .tampered)
    }

    @Test("A sealed file opens only for what it was sealed for")
    func boundContexts() throws {
        let vaultID = [UInt8](repeating: 1, count: 16)
        let key = Secret(bytes: [UInt8](repeating: 2, count: 32))
        let sealer = VaultSealer(vaultID: vaultID, store: "default", dataKey: key)
        let file = [UInt8](repeating: 3, count: 16)
        let context = sealer.recordContext(name: "name", version: 1, file: file)
        let sealed = try sealer.seal(Data("value".utf8), as: .record, bound: context)
        #expect(try sealer.open(sealed, as: .record, bound: context) == Data("value".utf8))
        for other in [
            sealer.recordContext(name: "Name", version: 1, file: file),
            sealer.recordContext(name: "name", version: 2, file: file),
            sealer.recordContext(name: "name", version: 1, file: [UInt8](repeating: 4, count: 16)),
        ] {
            #expect(throws: SecretStoreError.tampered("")) { try sealer.open(sealed, as: .record, bound: other) }
        }
        #expect(throws: SecretStoreError.tampered("")) { try sealer.open(sealed, as: .shard, bound: context) }
        for elsewhere in [
            VaultSealer(vaultID: [UInt8](repeating: 9, count: 16), store: "default", dataKey: key),
            VaultSealer(vaultID: vaultID, store: "other", dataKey: key),
        ] {
            #expect(throws: SecretStoreError.tampered("")) { try elsewhere.open(sealed, as: .record, bound: context) }
        }
    }

    @Test("A value that does not open is an error by itself, and never its own ciphertext")
    func ciphertextIsNoValue() throws {
        let (vaultID, file) = ([UInt8](repeating: 1, count: 16), [UInt8](repeating: 3, count: 16))
        let key = Secret(bytes: [UInt8](repeating: 2, count: 32))
        let sealer = VaultSealer(vaultID: vaultID, store: "default", dataKey: key)
        let sealed = try sealer.seal(Secret("value"), name: "name", version: 1, file: file)
        #expect(try sealer.open(sealed, name: "name", version: 1, file: file) == Secret("value"))
        let error = SecretStoreError.tampered("")
        #expect(throws: error) { try sealer.open(sealed, name: "Name", version: 1, file: file) }
        #expect(throws: error) { try sealer.open(sealed, name: "name", version: 2, file: file) }
        #expect(throws: error) { try sealer.open(sealed, name: "name", version: 1, file: vaultID) }
        let otherKey = VaultSealer(
            vaultID: vaultID, store: "default", dataKey: Secret(bytes: [UInt8](repeating: 4, count: 32)))
        #expect(throws: error) { try otherKey.open(sealed, name: "name", version: 1, file: file) }
        for bit in 0..<(sealed.count * 8) {
            var flipped = sealed
            flipped[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: error) { try sealer.open(flipped, name: "name", version: 1, file: file) }
        }
        for count in 0..<sealed.count {
            #expect(throws: error) {
                try sealer.open(Array(sealed.prefix(count)), name: "name", version: 1, file: file)
            }
        }
    }

    @Test("An old copy of the whole vault is noticed by processes that have it open, and by no others")
    func wholeRollback() async throws {
        let disk = try await Self.prepared()
        let old = disk.copy()
        let open = try await vault(on: disk)
        try await open.update("name", to: Secret("newer"), expected: .exactly(1))
        for name in disk.names { disk[name] = nil }
        for name in old.names { disk[name] = old[name] }
        #expect(await code { _ = try await open.value("name") } == .rolledBack)
        // The limit that the documentation states: without a counter elsewhere, this cannot be seen.
        #expect(try await vault(on: disk).value("name")?.value == Secret("one"))
    }

    @Test("A newer format is not touched")
    func newerFormat() async throws {
        let disk = try await Self.prepared()
        disk["vault"]?[9] = 3
        let before = disk["vault"]
        #expect(await code { _ = try await vault(on: disk) } == .newerFormat)
        #expect(disk["vault"] == before)
    }

    @Test("An older format is not touched, and the error says what to do")
    func olderFormat() async throws {
        let disk = try await Self.prepared()
        disk["vault"]?[9] = 1
        let before = disk["vault"]
        #expect(await code { _ = try await vault(on: disk) } == .olderFormat)
        #expect(disk["vault"] == before)
        #expect(SecretStoreError.olderFormat.detail.contains("Move its directory"))
    }

    @Test("One of the same user's vaults in another one's place is noticed")
    func otherStore() async throws {
        let key = MemoryKey()
        let (work, home) = (SimulatedDisk(), SimulatedDisk())
        try await vault(on: work, keys: key, store: "work").update("name", to: Secret("w"), expected: .absent)
        try await vault(on: home, keys: key, store: "home").update("name", to: Secret("h"), expected: .absent)
        #expect(await code { _ = try await vault(on: home, keys: key, store: "work") } == .anotherStore)
        #expect(try await vault(on: home, keys: key, store: "home").value("name")?.value == Secret("h"))
    }

    @Test("A manifest that the vault's data key sealed and its provider did not sign is refused")
    func unsignedManifest() async throws {
        let disk = try await Self.prepared()
        let contents = try await vault(on: disk).current()
        // Somebody who got hold of the data key once, and has no access to the provider.
        var manifest = contents.manifest
        manifest.generation += 1
        manifest.shards = [:]
        let sealed = try contents.sealer.seal(manifest.encoded, as: .manifest, bound: contents.header.encoded)
        let signed = VaultFile.signedPart(header: contents.header, sealedManifest: sealed)
        let old = try VaultFile(decoding: contents.bytes)
        for signature in [old.signature, [UInt8](repeating: 1, count: 64), [UInt8](repeating: 0, count: 64)] {
            let forged = await Self.read(disk) { $0["vault"] = signed + signature }
            #expect(forged == .failure(.tampered("")))
        }
        let own = try await SoftwareSigner(Secret(bytes: [UInt8](repeating: 9, count: 32))).signature(for: signed)
        #expect(await Self.read(disk) { $0["vault"] = signed + own } == .failure(.tampered("")))
    }

    @Test("A record that the data key sealed, and that the manifest does not mean, is refused")
    func forgedRecord() async throws {
        let disk = try await Self.prepared()
        let vault = try await vault(on: disk)
        let contents = try await vault.current()
        let entry = try await vault.entry("name")
        let record = try #require(entry.record)
        // Name, version and file are right, as somebody who got hold of the data key once can make them.
        let context = contents.sealer.recordContext(name: "name", version: entry.version, file: record.id)
        let forged = try contents.sealer.seal(Data("two".utf8), as: .record, bound: context)
        #expect(forged.count == Int(record.length))
        #expect(await Self.read(disk) { $0[FileVault.recordName(record)] = forged } == .failure(.tampered("")))
    }

    @Test("Where there are records without a vault's main file, no new vault is made")
    func lostMainFile() async throws {
        let disk = try await Self.prepared()
        disk["vault"] = nil
        for createIfMissing in [true, false] {
            #expect(await code { _ = try await vault(on: disk, createIfMissing: createIfMissing) } == .tampered)
        }
        #expect(disk["vault"] == nil)

        let directory = try TemporaryDirectory()
        try await directory.open().update("name", to: Secret("value"), expected: .absent)
        try FileManager.default.removeItem(at: directory.vault.appending(path: "vault"))
        #expect(await code { _ = try FileVault.inspect(directory.vault) } == .tampered)
        #expect(await code { _ = try await directory.open() } == .tampered)
    }
}

extension FileVault {
    func entry(_ name: String) async throws -> VaultShard.Entry {
        let contents = try await current()
        let entry = try shard(contents.sealer.shardIndex(of: name), in: contents).entries[name]
        return try #require(entry)
    }
}
