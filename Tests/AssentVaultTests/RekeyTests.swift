import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("Changing a vault's key")
struct RekeyTests {
    private static let secrets = ["one": "1", "two": "22", "three": ""]

    private static func filled(_ disk: SimulatedDisk, _ keys: VaultKeys) async throws -> FileVault {
        let vault = try await vault(on: disk, guardedBy: keys)
        for (name, value) in secrets { try await vault.update(name, to: Secret(value), expected: .absent) }
        try await vault.update("removed", to: Secret("r"), expected: .absent)
        try await vault.update("removed", to: nil, expected: .any)
        return vault
    }

    private static func contents(_ vault: FileVault) async throws -> [String: String] {
        var contents: [String: String] = [:]
        for name in try await vault.names() { contents[name] = try await vault.value(name)?.value.reveal() }
        return contents
    }

    @Test("The same provider with a new key: everything is sealed anew, and old copies cannot be read any more")
    func sameProvider() async throws {
        let device = FakeDevice()
        let disk = SimulatedDisk()
        let vault = try await Self.filled(disk, .requireHardware(device))
        let old = disk.copy()
        let outcome = try await vault.rekey(to: .requireHardware(device))
        #expect(outcome.oldKeyRemains == nil)
        #expect(try await Self.contents(vault) == Self.secrets)
        let again = try await AssentVaultTests.vault(on: disk, guardedBy: .requireHardware(device))
        #expect(try await Self.contents(again) == Self.secrets)
        #expect(try await again.value("one")?.version == 1)
        #expect(try await again.update("removed", to: Secret("r"), expected: .absent) == 2)
        #expect(device.state.withLock { $0.signing.count } == 1 && device.state.withLock { $0.agreement.count } == 1)
        for name in old.names { #expect(disk[name] != old[name], "\(name) was not sealed anew") }
        #expect(
            await code { _ = try await AssentVaultTests.vault(on: old, guardedBy: .requireHardware(device)) }
                == .keyLost)
    }

    @Test("The data key changes too: someone who once had the old one can read nothing of what is there now")
    func newDataKey() async throws {
        let device = FakeDevice()
        let disk = SimulatedDisk()
        let vault = try await Self.filled(disk, .requireHardware(device))
        let old = try await vault.current()
        _ = try await vault.rekey(to: .requireHardware(device))
        let new = try await vault.current()
        let sealed = try VaultFile(decoding: new.bytes).sealedManifest
        #expect(try new.sealer.manifest(opening: sealed, header: new.header) == new.manifest)
        #expect(throws: SecretStoreError.tampered("")) {
            try old.sealer.manifest(opening: sealed, header: new.header)
        }
        let entry = try await vault.entry("two")
        let record = try #require(entry.record)
        let bytes = try #require(disk[FileVault.recordName(record)])
        func open(_ sealer: VaultSealer) throws -> Secret {
            try sealer.open(bytes, name: "two", version: entry.version, file: record.id)
        }
        #expect(try open(new.sealer) == Secret("22"))
        #expect(throws: SecretStoreError.tampered("")) { try open(old.sealer) }
    }

    @Test("Up to hardware and down to software, each only when it is said")
    func otherProvider() async throws {
        let (device, software) = (FakeDevice(), FakeDevice(kind: "soft", protection: .software))
        let disk = SimulatedDisk()
        let vault = try await Self.filled(disk, .software(software))
        _ = try await vault.rekey(to: .requireHardware(device))
        #expect(try await vault.info().protection == .hardware)
        #expect(try await vault.info().level == .requireHardware)
        try await vault.update("one", to: Secret("1"), expected: .exactly(1))
        #expect(
            await code { _ = try await AssentVaultTests.vault(on: disk, guardedBy: .software(software)) }
                == .protectionMismatch)
        _ = try await vault.rekey(to: .software(software))
        #expect(
            try await Self.contents(AssentVaultTests.vault(on: disk, guardedBy: .software(software))) == Self.secrets)
        #expect(
            await code { _ = try await AssentVaultTests.vault(on: disk, guardedBy: .requireHardware(device)) }
                == .protectionMismatch)
        #expect(device.state.withLock { $0.signing.isEmpty && $0.agreement.isEmpty })
    }

    @Test("A new provider that cannot be used changes nothing")
    func refused() async throws {
        let device = FakeDevice()
        let disk = SimulatedDisk()
        let vault = try await Self.filled(disk, .requireHardware(device))
        let gone = FakeDevice(kind: "gone")
        gone.fail(.unavailable)
        let garbage = FakeDevice(kind: "garbage")
        garbage.state.withLock { $0.garbage = true }
        let software = FakeDevice(kind: "soft", protection: .software)
        let before = disk.copy()
        for keys: VaultKeys in [
            .requireHardware(gone), .requireHardware(), .requireHardware(software), .requireHardware(garbage),
            .software(FakeDevice()),
        ] {
            #expect(await code { _ = try await vault.rekey(to: keys) } != nil)
            #expect(disk.names == before.names && disk.names.allSatisfy { disk[$0] == before[$0] })
            #expect(try await Self.contents(vault) == Self.secrets)
        }
        #expect(device.state.withLock { $0.signing.count } == 1)
        #expect(garbage.state.withLock { $0.signing.isEmpty })
    }

    @Test("A damaged record stops it, and nothing has changed")
    func damaged() async throws {
        let device = FakeDevice()
        let disk = SimulatedDisk()
        let vault = try await Self.filled(disk, .requireHardware(device))
        let record = try #require(disk.names.first { $0.hasPrefix("r-") })
        disk[record]?[20] ^= 1
        let before = disk.copy()
        #expect(await code { _ = try await vault.rekey(to: .requireHardware(device)) } == .tampered)
        #expect(disk.names == before.names && disk.names.allSatisfy { disk[$0] == before[$0] })
        #expect(try await vault.names().count == 3)
    }

    @Test("An old key that cannot be destroyed is said, and its copy of the vault is then still readable")
    func oldKeyRemains() async throws {
        let (device, other) = (FakeDevice(), FakeDevice(kind: "other"))
        let disk = SimulatedDisk()
        let vault = try await Self.filled(disk, .requireHardware(device))
        device.state.withLock { $0.calls = [] }
        // It is read before it goes.
        _ = try await Self.contents(vault)
        device.fail(.unavailable)
        let outcome = try await vault.rekey(to: .requireHardware(other))
        #expect(outcome.oldKeyRemains?.contains("could not be destroyed") == true)
        #expect(try await Self.contents(vault) == Self.secrets)
    }

    @Test("Another process goes on with the new key, or says why it cannot")
    func otherProcess() async throws {
        let device = FakeDevice()
        let disk = SimulatedDisk()
        let one = try await Self.filled(disk, .requireHardware(device))
        let two = try await vault(on: disk, guardedBy: .requireHardware(device))
        _ = try await one.rekey(to: .requireHardware(device))
        #expect(try await Self.contents(two) == Self.secrets)
        try await two.update("one", to: Secret("1"), expected: .exactly(1))
        #expect(try await Self.contents(one) == Self.secrets)
        _ = try await one.rekey(to: .requireHardware(FakeDevice(kind: "other")))
        #expect(await code { _ = try await two.value("one") } == .protectionMismatch)
    }

    /// A vault with one secret, its device, and what changing the key to the same device leaves behind.
    private struct Interrupted {
        let disk: SimulatedDisk
        let device: FakeDevice.State
        let acknowledged: Bool

        static let secrets = ["one": "1"]

        init(_ faults: [SimulatedDisk.Fault]) async throws {
            let device = FakeDevice()
            let made = SimulatedDisk()
            try await AssentVaultTests.vault(on: made, guardedBy: .requireHardware(device))
                .update("one", to: Secret("1"), expected: .absent)
            disk = made.copy()
            let vault = try await AssentVaultTests.vault(on: disk, guardedBy: .requireHardware(device))
            disk.arm(faults)
            acknowledged = (try? await vault.rekey(to: .requireHardware(device))) != nil
            self.device = device.state.withLock { $0 }
        }

        /// The device as it was then, for one outcome.
        var copyOfDevice: FakeDevice {
            let copy = FakeDevice()
            copy.state.withLock { $0 = device }
            return copy
        }
    }

    @Test("A loss of power at any step leaves the old vault or the new one, whole")
    func powerLoss() async throws {
        var epochs: Set<UInt32> = []
        for step in 0... {
            let interrupted = try await Interrupted([.powerLoss(at: step)])
            for (way, found) in interrupted.disk.outcomes.enumerated() {
                let device = interrupted.copyOfDevice
                let again = try await vault(on: found, guardedBy: .requireHardware(device))
                let header = try await again.current().header
                epochs.insert(header.epoch)
                #expect(!interrupted.acknowledged || header.epoch == 2)
                #expect(try await Self.contents(again) == Interrupted.secrets, "step \(step), way \(way)")
                #expect(try await again.check().isInOrder)
                #expect(
                    device.state.withLock { Array($0.signing.keys) } == [
                        ProviderKeys.keyName(vaultID: header.vaultID, epoch: header.epoch)
                    ])
                #expect(found.names.count == 3, "step \(step), way \(way): \(found.names)")
                let later = try await vault(on: found, guardedBy: .requireHardware(device))
                #expect(try await Self.contents(later) == Interrupted.secrets)
            }
            if interrupted.acknowledged { break }
        }
        #expect(epochs == [1, 2])
    }

    @Test("would lose the vault if any one sync before the commit were left out")
    func everySyncCounts() async throws {
        let steps = try await Interrupted([]).disk.steps
        let rename = try #require(steps.firstIndex(of: "rename"))
        for sync in steps.indices where steps[sync].hasPrefix("sync") && sync < rename {
            // What the directory's sync is for shows when the power goes right after the rename.
            let faults: [SimulatedDisk.Fault] =
                steps[sync] == "sync" ? [.lostSync(at: sync)] : [.lostSync(at: sync), .powerLoss(at: rename + 1)]
            let interrupted = try await Interrupted(faults)
            var losses = 0
            for found in interrupted.disk.outcomes {
                do {
                    let vault = try await vault(on: found, guardedBy: .requireHardware(interrupted.copyOfDevice))
                    if try await Self.contents(vault) != Interrupted.secrets { losses += 1 }
                } catch { losses += 1 }
            }
            #expect(losses > 0, "step \(sync): \(steps[sync])")
        }
    }
}
