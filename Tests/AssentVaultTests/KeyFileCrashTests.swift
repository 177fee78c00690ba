import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("A key file that loses power")
struct KeyFileCrashTests {
    private static func keys(on disk: SimulatedDisk, isSealed: Bool = false) -> SoftwareKeyProvider {
        SoftwareKeyProvider(
            name: "keys", passphrase: isSealed ? KnownSecret(Secret("correct horse")) : nil, cost: cheap
        ) { _ in disk }
    }

    /// Makes a second key, losing power before `step`. Returns the disk and whether the key was acknowledged.
    private static func interrupted(
        at step: Int, isSealed: Bool = false, faults: [SimulatedDisk.Fault] = []
    ) async throws -> (disk: SimulatedDisk, first: [UInt8], second: [UInt8]?) {
        let disk = SimulatedDisk()
        let first = try await keys(on: disk, isSealed: isSealed).makeAgreementKey(named: "first").publicPoint
        disk.arm(faults + [.powerLoss(at: step)])
        let second = try? await keys(on: disk, isSealed: isSealed).makeAgreementKey(named: "second").publicPoint
        return (disk, first, second)
    }

    /// What is wrong after the power was lost before each step, in every way that POSIX allows.
    private static func wrecks(
        isSealed: Bool = false, faults: [SimulatedDisk.Fault] = []
    ) async throws -> [String] {
        var wrong: [String] = []
        for step in 0... {
            let (disk, first, second) = try await interrupted(at: step, isSealed: isSealed, faults: faults)
            // scrypt takes its time: of sealed files only some outcomes are looked at.
            for (way, found) in disk.outcomes.enumerated().prefix(isSealed ? 4 : .max) {
                do {
                    let keys = keys(on: found, isSealed: isSealed)
                    let (one, two) = (
                        try await keys.agreementKey(named: "first"), try await keys.agreementKey(named: "second")
                    )
                    if one?.publicPoint != first { wrong.append("step \(step), way \(way): the first key is gone") }
                    if let second, two?.publicPoint != second {
                        wrong.append("step \(step), way \(way): the second key is gone")
                    }
                } catch {
                    wrong.append("step \(step), way \(way): \(error)")
                }
            }
            if second != nil { break }
        }
        return wrong
    }

    @Test("has all of its old keys, and the new one when it was acknowledged", arguments: [false, true])
    func atomicity(isSealed: Bool) async throws {
        #expect(try await Self.wrecks(isSealed: isSealed) == [])
    }

    @Test("clears away what an interrupted change left, with the next change")
    func leftovers() async throws {
        for step in 0..<4 {
            let disk = try await Self.interrupted(at: step).disk.copy()
            _ = try await Self.keys(on: disk).makeAgreementKey(named: "third")
            #expect(disk.names == ["keys"], "step \(step)")
        }
    }

    @Test("is not written in clear when the file under the passphrase is removed between two looks at it")
    func removedMeanwhile() async throws {
        let disk = SimulatedDisk()
        _ = try await Self.keys(on: disk, isSealed: true).makeAgreementKey(named: "first")
        let looks = Locked(0)
        let keys = SoftwareKeyProvider(
            name: "keys", passphrase: KnownSecret(Secret("correct horse")), cost: cheap
        ) { isCreating in
            let isSecond = looks.withLock { looks in
                looks += isCreating ? 0 : 1
                return !isCreating && looks == 2
            }
            if isSecond { try disk.remove("keys") }
            return disk
        }
        let error = await #expect(throws: KeyProviderError.self) {
            _ = try await keys.makeAgreementKey(named: "second")
        }
        #expect(error?.code == .unavailable)
        #expect(!disk.names.contains("keys"))
        // With the next try somebody chooses a passphrase for a new file.
        _ = try await keys.makeAgreementKey(named: "second")
        #expect(try await Self.keys(on: disk, isSealed: true).keyNames() == ["second"])
        let open = await #expect(throws: KeyProviderError.self) { _ = try await Self.keys(on: disk).keyNames() }
        #expect(open?.code == .unavailable)
    }

    @Test("would lose a key if any one sync were left out")
    func everySyncCounts() async throws {
        let steps = try await Self.interrupted(at: .max).disk.steps
        let syncs = steps.indices.filter { steps[$0].hasPrefix("sync") }
        #expect(syncs.count == 2)
        for sync in syncs {
            #expect(try await Self.wrecks(faults: [.lostSync(at: sync)]) != [], "step \(sync): \(steps[sync])")
        }
    }

    @Test("may have no file at all before its first key was acknowledged, and then makes one")
    func firstKey() async throws {
        for step in 0... {
            let disk = SimulatedDisk(faults: [.powerLoss(at: step)])
            let key = try? await Self.keys(on: disk).makeAgreementKey(named: "key").publicPoint
            for found in disk.outcomes {
                let keys = Self.keys(on: found)
                if let key {
                    #expect(try await keys.agreementKey(named: "key")?.publicPoint == key)
                } else if try await keys.agreementKey(named: "key") == nil {
                    _ = try await keys.makeAgreementKey(named: "key")
                }
            }
            if key != nil { break }
        }
    }
}
