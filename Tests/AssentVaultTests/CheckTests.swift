import AssentCore
import AssentPeers
import Foundation
import Testing

@testable import AssentVault

@Suite("Checking a vault")
struct CheckTests {
    private static func prepared() async throws -> (SimulatedDisk, FileVault) {
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk)
        for (name, value) in ["one": "1", "two": "22", "three": "333"] {
            try await vault.update(name, to: Secret(value), expected: .absent)
        }
        return (disk, vault)
    }

    private static func record(_ name: String, _ vault: FileVault) async throws -> String {
        let contents = try await vault.current()
        let entry = try await vault.shard(contents.sealer.shardIndex(of: name), in: contents).entries[name]
        return FileVault.recordName(try #require(entry?.record))
    }

    @Test("A vault in order is in order")
    func inOrder() async throws {
        let (disk, vault) = try await Self.prepared()
        let before = disk.copy()
        let report = try await vault.check(removingDamaged: true)
        #expect(report.intact == 3 && report.findings.isEmpty && report.isInOrder)
        #expect(report.removedLeftovers == 0 && report.removedKeys == 0)
        #expect(disk["vault"] == before["vault"])
    }

    @Test("Entries have names, versions and sizes, and no values")
    func entries() async throws {
        let (_, vault) = try await Self.prepared()
        try await vault.update("two", to: Secret("4444"), expected: .exactly(1))
        let entries = try await vault.entries()
        #expect(entries.map(\.name) == ["one", "three", "two"])
        #expect(entries.map(\.version) == [1, 1, 2])
        #expect(entries.map(\.size) == [1, 3, 4])
    }

    @Test("Damaged secrets are named with what is wrong, and only they are removed when that is asked for")
    func damaged() async throws {
        let (disk, vault) = try await Self.prepared()
        let (one, two) = (try await Self.record("one", vault), try await Self.record("two", vault))
        disk[one]?[15] ^= 4
        disk[two] = Array(disk[two]?.prefix(9) ?? [])
        let report = try await vault.check()
        #expect(report.intact == 1 && !report.isInOrder)
        let codes = Dictionary(uniqueKeysWithValues: report.findings.map { ($0.name, $0.error.code) })
        #expect(codes == ["one": .tampered, "two": .truncated])
        #expect(try await vault.names().count == 3)
        let repaired = try await vault.check(removingDamaged: true)
        #expect(repaired.isInOrder && repaired.findings.count == 2)
        #expect(try await vault.names() == ["three"])
        #expect(
            try await vault.check()
                == {
                    var report = VaultReport()
                    report.intact = 1
                    return report
                }())
        #expect(disk[one] == nil && disk[two] == nil)
        #expect(try await vault.update("one", to: Secret("again"), expected: .absent) == 2)
    }

    @Test("A damaged list of names is reported, and removed when that is asked for")
    func damagedList() async throws {
        let (disk, vault) = try await Self.prepared()
        let lists = disk.names.filter { $0.hasPrefix("s-") }
        disk[lists[0]] = nil
        let report = try await vault.check()
        #expect(report.findings.count == 1 && report.findings[0].name == nil)
        let again = try await AssentVaultTests.vault(on: disk)
        #expect(try await again.check(removingDamaged: true).isInOrder)
        let names = try await again.names()
        #expect(names.count < 3)
        #expect(try await again.check().findings.isEmpty)
        for name in ["one", "two", "three"] where !names.contains(name) {
            #expect(try await again.update(name, to: Secret("x"), expected: .absent) == 2)
        }
    }

    @Test("Leftovers of interrupted updates and changes of key are cleaned up")
    func leftovers() async throws {
        let device = FakeDevice()
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk, guardedBy: .requireHardware(device))
        try await vault.update("name", to: Secret("x"), expected: .absent)
        let id = try await vault.current().header.vaultID
        _ = try await device.makeSigningKey(named: ProviderKeys.keyName(vaultID: id, epoch: 9), algorithm: .es256)
        _ = try await device.makeSigningKey(named: "vault-of-somebody-else-1", algorithm: .es256)
        disk["t-00"] = [1]
        disk["r-00000000000000000000000000000000"] = [2]
        disk["s-00000000000000000000000000000000"] = [3]
        let report = try await vault.check()
        #expect(report.removedLeftovers == 3 && report.removedKeys == 1)
        #expect(disk.names.count == 3)
        #expect(try await device.keyNames().contains("vault-of-somebody-else-1"))
        #expect(try await vault.value("name")?.value == Secret("x"))
    }

    @Test("Without its key, a vault's claims can be read, and nothing else")
    func inspect() async throws {
        let directory = try TemporaryDirectory()
        #expect(try FileVault.inspect(directory.vault) == nil)
        let info = try await directory.open().info()
        #expect(try FileVault.inspect(directory.vault)?.claimed == info)
        #expect(info.protection == .unprotected && info.provider == "software" && info.keyDerivation == nil)
        let file = directory.vault.appending(path: "vault")
        try Data([1, 2, 3]).write(to: file)
        #expect(await code { _ = try FileVault.inspect(directory.vault) } == .tampered)
    }
}
