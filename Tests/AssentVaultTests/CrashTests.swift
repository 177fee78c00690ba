import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("A vault that loses power")
struct CrashTests {
    /// A change of the vault, and what it makes of the secrets `name`, `old` and `other`.
    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let after: [String: String]
        let run: @Sendable (FileVault) async throws -> Void

        static let before = ["name": "1", "old": "o", "other": "x"]
        static let all = [
            Change(testDescription: "update", after: ["name": "2", "old": "o", "other": "x"]) {
                try await $0.update("name", to: Secret("2"), expected: .exactly(1))
            },
            Change(testDescription: "create", after: ["name": "1", "old": "o", "other": "x", "new": "n"]) {
                try await $0.update("new", to: Secret("n"), expected: .absent)
            },
            Change(testDescription: "remove", after: ["name": "1", "other": "x"]) {
                try await $0.update("old", to: nil, expected: .exactly(1))
            },
            Change(testDescription: "removeAll", after: [:]) { try await $0.removeAll() },
        ]
    }

    static func prepared() async throws -> SimulatedDisk {
        let disk = SimulatedDisk()
        let vault = try await vault(on: disk)
        for (name, value) in Change.before.sorted(by: <) {
            try await vault.update(name, to: Secret(value), expected: .absent)
        }
        return disk.copy()
    }

    static func contents(_ vault: FileVault) async throws -> [String: String] {
        var contents: [String: String] = [:]
        for name in try await vault.names() { contents[name] = try await vault.value(name)?.value.reveal() }
        return contents
    }

    /// What may be left of unsynced pieces: nothing, everything, and many mixtures.
    static var survivals: [@Sendable (Int) -> Bool] {
        [{ _ in false }, { _ in true }]
            + (1...24).map { seed in
                let random = SeededRandom(seed: UInt64(seed))
                return { _ in random.bytes(1)[0] & 1 == 0 }
            }
    }

    /// Loses power before each step of `change` in turn, and in every way. Returns what was found wrong.
    static func wrecks(_ change: Change, faults: [SimulatedDisk.Fault] = []) async throws -> [String] {
        var wrong: [String] = []
        let base = try await prepared()
        for step in 0... {
            var completed = false
            for (way, survives) in survivals.enumerated() {
                let disk = base.copy()
                let before = try await vault(on: disk)
                disk.arm(faults + [.powerLoss(at: step)])
                let acknowledged: Bool
                do {
                    try await change.run(before)
                    acknowledged = true
                } catch {
                    acknowledged = false
                }
                completed = disk.steps.count <= step
                let place = "\(change.testDescription), power lost before step \(step), way \(way): "
                do {
                    let found = try await contents(vault(on: disk.afterPowerLoss(survives)))
                    if found != change.after, acknowledged || found != Change.before {
                        wrong.append(place + "found \(found.keys.sorted())")
                    }
                } catch {
                    wrong.append(place + "\(error)")
                }
            }
            if completed { break }
        }
        return wrong
    }

    @Test("has all of its old state or all of the new one, and everything that was acknowledged", arguments: Change.all)
    func atomicity(_ change: Change) async throws {
        #expect(try await Self.wrecks(change) == [])
    }

    @Test("would lose something if any one sync before the commit were left out", arguments: Change.all)
    func everySyncCounts(_ change: Change) async throws {
        let disk = try await Self.prepared()
        let vault = try await vault(on: disk)
        disk.arm([])
        try await change.run(vault)
        let syncs = disk.steps.indices.filter { disk.steps[$0].hasPrefix("sync") }
        // removeAll's manifest refers to no new files, so that only its content and its name need to be on the disk.
        let needed = change.after.isEmpty ? [syncs[0], syncs[2]] : syncs
        #expect(needed.count == (change.after.isEmpty ? 2 : change.after.count < 3 ? 4 : 5))
        for sync in needed {
            let wrong = try await Self.wrecks(change, faults: [.lostSync(at: sync)])
            #expect(wrong != [], "step \(sync): \(disk.steps[sync])")
        }
    }

    @Test("would lose its key file if any sync of it were left out")
    func everyKeySyncCounts() async throws {
        let context = Array("context".utf8)
        let dataKey = Secret(bytes: [UInt8](repeating: 9, count: 32))
        let whole = SimulatedDisk()
        _ = try await VaultKeyFile(name: "key") { _ in whole }.seal(dataKey, context: context)
        for step in whole.steps.indices where whole.steps[step].hasPrefix("sync") {
            let disk = SimulatedDisk(faults: [.lostSync(at: step)])
            let sealed = try await VaultKeyFile(name: "key") { _ in disk }.seal(dataKey, context: context)
            var losses = 0
            for survives in Self.survivals {
                let found = disk.afterPowerLoss(survives)
                let after = VaultKeyFile(name: "key") { _ in found }
                do { _ = try await after.unseal(sealed, context: context) } catch { losses += 1 }
            }
            #expect(losses > 0, "step \(step)")
        }
    }

    @Test("while it was made for the first time can be made again")
    func creation() async throws {
        for step in 0... {
            var completed = false
            for survives in Self.survivals {
                let disk = SimulatedDisk(faults: [.powerLoss(at: step)])
                do {
                    _ = try await vault(on: disk)
                    completed = true
                } catch is SimulatedDisk.PowerLoss {}
                let again = try await vault(on: disk.afterPowerLoss(survives))
                try await again.update("name", to: Secret("1"), expected: .absent)
                #expect(try await again.value("name")?.value == Secret("1"))
            }
            if completed { break }
        }
    }

    @Test("leaves no file behind once it is opened again")
    func leftovers() async throws {
        let base = try await Self.prepared()
        let count = base.names.count
        for step in 0..<12 {
            let disk = base.copy()
            let interrupted = try await vault(on: disk)
            disk.arm([.powerLoss(at: step)])
            _ = try? await interrupted.update("name", to: Secret("2"), expected: .any)
            let found = disk.afterPowerLoss { _ in true }
            _ = try await vault(on: found)
            #expect(found.names.count == count, "step \(step): \(found.names)")
        }
    }

    @Test("while its key file was made has no key or a whole one")
    func keyFile() async throws {
        let context = Array("context".utf8)
        let dataKey = Secret(bytes: [UInt8](repeating: 9, count: 32))
        for step in 0... {
            var completed = false
            for survives in Self.survivals {
                let disk = SimulatedDisk(faults: [.powerLoss(at: step)])
                let before = VaultKeyFile(name: "key") { _ in disk }
                let sealed = try? await before.seal(dataKey, context: context)
                completed = sealed != nil
                let found = disk.afterPowerLoss(survives)
                let after = VaultKeyFile(name: "key") { _ in found }
                if let sealed {
                    #expect(try await after.unseal(sealed, context: context) == dataKey)
                } else {
                    _ = try await after.seal(dataKey, context: context)
                }
            }
            if completed { break }
        }
    }

    @Test("A full disk changes nothing, and space lets it go on", arguments: Change.all)
    func fullDisk(_ change: Change) async throws {
        let base = try await Self.prepared()
        for step in 0... {
            let disk = base.copy()
            let vault = try await vault(on: disk)
            disk.arm([.failure(.diskFull, at: step)])
            let failure = await code { try await change.run(vault) }
            if disk.steps.count <= step { break }
            let found = try await Self.contents(vault)
            if failure == nil {
                #expect(found == change.after, "step \(step)")
            } else {
                #expect(failure == .storageFailed)
                #expect(found == Change.before || found == change.after, "step \(step)")
            }
            disk.arm([])
            if found == Change.before { try await change.run(vault) }
            #expect(try await Self.contents(vault) == change.after, "step \(step)")
            #expect(try await Self.contents(AssentVaultTests.vault(on: disk.copy())) == change.after, "step \(step)")
        }
    }

    @Test("A read-only disk can be read, and says so when written to")
    func readOnly() async throws {
        let disk = try await Self.prepared()
        disk.arm([.readOnly])
        let vault = try await vault(on: disk)
        #expect(try await Self.contents(vault) == Change.before)
        for change in Change.all {
            #expect(await code { try await change.run(vault) } == .storageFailed)
        }
        #expect(try await Self.contents(vault) == Change.before)
    }
}
