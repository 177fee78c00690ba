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

    /// Loses power before each step of `change` in turn, from the end, and in every way that POSIX allows. Returns what
    /// was found wrong, at most `limit` times.
    static func wrecks(
        _ change: Change, faults: [SimulatedDisk.Fault] = [], upTo limit: Int = .max
    ) async throws -> [String] {
        var wrong: [String] = []
        let base = try await prepared()
        for step in try await (0...steps(of: change).count).reversed() {
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
            for (way, found) in disk.outcomes.enumerated() {
                let place = "\(change.testDescription), power lost before step \(step), way \(way): "
                do {
                    let contents = try await contents(vault(on: found))
                    if contents != change.after, acknowledged || contents != Change.before {
                        wrong.append(place + "found \(contents.keys.sorted())")
                    }
                } catch {
                    wrong.append(place + "\(error)")
                }
                if wrong.count >= limit { return wrong }
            }
        }
        return wrong
    }

    static func steps(of change: Change) async throws -> [String] {
        let disk = try await prepared()
        let vault = try await vault(on: disk)
        disk.arm([])
        try await change.run(vault)
        return disk.steps
    }

    @Test("has all of its old state or all of the new one, and everything that was acknowledged", arguments: Change.all)
    func atomicity(_ change: Change) async throws {
        #expect(try await Self.wrecks(change) == [])
    }

    @Test("would lose something if any one sync were left out", arguments: Change.all)
    func everySyncCounts(_ change: Change) async throws {
        let steps = try await Self.steps(of: change)
        let syncs = steps.indices.filter { steps[$0].hasPrefix("sync") }
        // removeAll's manifest refers to no new files, so that only its content and its name need to be on the disk.
        try #require(syncs.count == (change.after.isEmpty ? 3 : change.after.count < 3 ? 4 : 5))
        let needed = change.after.isEmpty ? [syncs[0], syncs[2]] : syncs
        for sync in needed {
            let wrong = try await Self.wrecks(change, faults: [.lostSync(at: sync)], upTo: 1)
            #expect(wrong != [], "step \(sync): \(steps[sync])")
        }
    }

    /// Kills a process before each step of `change`, lets another one open the vault, and then loses power.
    private static func wrecksAfterKill(
        _ change: Change, faults: [SimulatedDisk.Fault] = []
    ) async throws -> [String] {
        var wrong: [String] = []
        let base = try await prepared()
        for step in try await 0..<steps(of: change).count {
            let disk = base.copy()
            let killed = try await vault(on: disk)
            disk.arm([.powerLoss(at: step)])
            try? await change.run(killed)
            let found = disk.afterKill()
            found.arm(faults)
            let seen = try await contents(vault(on: found))
            if seen != change.after, seen != Change.before { wrong.append("killed before step \(step): \(seen.keys)") }
            for (way, later) in found.outcomes.enumerated() {
                do {
                    let contents = try await contents(vault(on: later))
                    if contents != seen { wrong.append("killed before step \(step), way \(way): \(contents.keys)") }
                } catch {
                    wrong.append("killed before step \(step), way \(way): \(error)")
                }
            }
        }
        return wrong
    }

    @Test(
        "keeps what the next process found after a kill, even when the power goes after that", arguments: Change.all)
    func killThenPowerLoss(_ change: Change) async throws {
        #expect(try await Self.wrecksAfterKill(change) == [])
        let withoutSync = try await Self.wrecksAfterKill(change, faults: [.lostSync(at: 0)])
        #expect(withoutSync != [], "opening does not sync the directory before it sweeps")
    }

    @Test("while it was made for the first time can be made again")
    func creation() async throws {
        for step in 0... {
            var completed = false
            let disk = SimulatedDisk(faults: [.powerLoss(at: step)])
            do {
                _ = try await vault(on: disk)
                completed = true
            } catch is SimulatedDisk.PowerLoss {}
            for found in disk.outcomes {
                let again = try await vault(on: found)
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
            let found = disk.copy()
            _ = try await vault(on: found)
            #expect(found.names.count == count, "step \(step): \(found.names)")
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
                #expect(failure == .diskFull)
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
            #expect(await code { try await change.run(vault) } == .notPermitted)
        }
        #expect(try await Self.contents(vault) == Change.before)
    }
}
