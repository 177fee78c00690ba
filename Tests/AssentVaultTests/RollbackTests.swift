import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("An old copy of the whole vault")
struct RollbackTests {
    private func put(_ old: SimulatedDisk, on disk: SimulatedDisk) {
        for name in disk.names { disk[name] = nil }
        for name in old.names { disk[name] = old[name] }
    }

    @Test("is noticed where a counter is outside of it", arguments: 1...3)
    func withCounter(updates: Int) async throws {
        let keys = VaultKeys.requireHardware(FakeDevice(counters: true))
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk, guardedBy: keys)
        #expect(try await vault.info().isRollbackProtected)
        try await vault.update("name", to: Secret("old"), expected: .absent)
        let old = disk.copy()
        for number in 0..<updates { try await vault.update("name", to: Secret("\(number)"), expected: .any) }
        let newest = disk.copy()
        put(old, on: disk)
        #expect(await code { _ = try await AssentVaultTests.vault(on: disk, guardedBy: keys) } == .rolledBack)
        #expect(disk["vault"] == old["vault"])
        put(newest, on: disk)
        #expect(
            try await AssentVaultTests.vault(on: disk, guardedBy: keys).value("name")?.version == UInt64(updates + 1))
    }

    @Test("is not noticed without a counter, and the vault says that it would not be")
    func withoutCounter() async throws {
        let keys = VaultKeys.requireHardware(FakeDevice())
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk, guardedBy: keys)
        #expect(try await !vault.info().isRollbackProtected)
        try await vault.update("name", to: Secret("old"), expected: .absent)
        let old = disk.copy()
        try await vault.update("name", to: Secret("new"), expected: .exactly(1))
        put(old, on: disk)
        // The limit that docs/vault.md and `assent doctor` state.
        let fooled = try await AssentVaultTests.vault(on: disk, guardedBy: keys)
        #expect(try await fooled.value("name")?.value == Secret("old"))
        // Whoever has it open does notice.
        #expect(await code { _ = try await vault.value("name") } == .rolledBack)
    }

    @Test("A counter that was removed, set back or added does not pass")
    func exchangedCounter() async throws {
        let device = FakeDevice(counters: true)
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk, guardedBy: .requireHardware(device))
        for number in 0..<3 { try await vault.update("name", to: Secret("\(number)"), expected: .any) }
        let name = try #require(device.state.withLock { $0.counters.keys.first })
        let value = device.state.withLock { $0.counters[name] ?? 0 }
        let open = { _ = try await AssentVaultTests.vault(on: disk, guardedBy: .requireHardware(device)) }
        for (changed, due) in [
            (value - 2, SecretStoreError.Code.rolledBack), (0, .rolledBack), (value + 1, .rolledBack),
            (.max, .rolledBack),
        ] {
            device.state.withLock { $0.counters[name] = changed }
            #expect(await code(of: open) == due, "\(changed)")
        }
        device.state.withLock { $0.counters[name] = nil }
        #expect(await code(of: open) == .keyLost)
        device.state.withLock { $0.counters[name] = value }
        try await open()

        let plain = SimulatedDisk()
        let other = FakeDevice()
        _ = try await AssentVaultTests.vault(on: plain, guardedBy: .requireHardware(other))
        let key = try #require(other.state.withLock { $0.signing.keys.first })
        other.state.withLock { $0.counters[key] = 5 }
        #expect(
            await code { _ = try await AssentVaultTests.vault(on: plain, guardedBy: .requireHardware(other)) }
                == .keyLost)
    }

    @Test("A process killed between the file and the counter loses nothing, and the counter is made up for")
    func interruptedCount() async throws {
        let device = FakeDevice(counters: true)
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk, guardedBy: .requireHardware(device))
        try await vault.update("name", to: Secret("1"), expected: .absent)
        let name = try #require(device.state.withLock { $0.counters.keys.first })
        for round in 2...4 {
            // As if the increment had never been made.
            device.state.withLock { $0.counters[name] = ($0.counters[name] ?? 0) - 1 }
            let again = try await AssentVaultTests.vault(on: disk, guardedBy: .requireHardware(device))
            #expect(try await again.value("name")?.version == UInt64(round - 1))
            #expect(try await again.update("name", to: Secret("\(round)"), expected: .any) == UInt64(round))
            let counter = device.state.withLock { $0.counters[name] }
            #expect(try await again.current().manifest.counter == counter)
        }
    }

    @Test("An update whose count fails says so; it is there or not, and the vault goes on")
    func failingCount() async throws {
        let device = FakeDevice(counters: true)
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk, guardedBy: .requireHardware(device))
        try await vault.update("name", to: Secret("1"), expected: .absent)
        device.failIncrements(true)
        #expect(await code { try await vault.update("name", to: Secret("2"), expected: .any) } == .keyUnavailable)
        device.failIncrements(false)
        #expect(try await vault.value("name")?.value == Secret("2"))
        #expect(try await vault.update("name", to: Secret("3"), expected: .exactly(2)) == 3)
        let again = try await AssentVaultTests.vault(on: disk, guardedBy: .requireHardware(device))
        #expect(try await again.value("name")?.value == Secret("3"))
        #expect(disk.names.count == 3)
    }

    @Test("Two processes that write by turns never take each other for a rollback")
    func twoProcesses() async throws {
        let keys = VaultKeys.requireHardware(FakeDevice(counters: true))
        let disk = SimulatedDisk()
        let vaults = [try await vault(on: disk, guardedBy: keys), try await vault(on: disk, guardedBy: keys)]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for vault in vaults {
                group.addTask {
                    for _ in 0..<15 {
                        try await vault.update("name", to: Secret("x"), expected: .any)
                        _ = try await vault.value("name")
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await vaults[0].value("name")?.version == 30)
    }

    @Test("A change of key takes a counter of its own along")
    func rekeyed() async throws {
        let (with, without) = (FakeDevice(kind: "with", counters: true), FakeDevice(kind: "without"))
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk, guardedBy: .requireHardware(without))
        try await vault.update("name", to: Secret("1"), expected: .absent)
        _ = try await vault.rekey(to: .requireHardware(with))
        #expect(try await vault.info().isRollbackProtected)
        try await vault.update("name", to: Secret("2"), expected: .exactly(1))
        _ = try await vault.rekey(to: .requireHardware(with))
        #expect(with.state.withLock { $0.counters.count } == 1)
        try await vault.update("name", to: Secret("3"), expected: .exactly(2))
        _ = try await vault.rekey(to: .requireHardware(without))
        #expect(with.state.withLock { $0.counters.isEmpty })
        #expect(try await !vault.info().isRollbackProtected)
        #expect(try await vault.value("name")?.value == Secret("3"))
    }
}
