#if os(Linux)
import AssentCore
import AssentPeers
import Foundation
import Testing

@testable import AssentVault

/// Holds the real directory against the simulated one, on which the proofs of `CrashTests` stand.
@Suite("What the vault asks of a real disk")
struct RealStepsTests {
    /// The system calls between the line that begins the change number `number` and the one that acknowledges it.
    private static func calls(_ lines: [String], change number: Int) -> [String] {
        let begin = lines.indices.filter { lines[$0].hasPrefix("begin ") }[number]
        return lines[begin...].dropFirst().prefix { !$0.hasPrefix("ack ") }.map { String($0.dropFirst("step ".count)) }
    }

    @Test("is what it asks of a simulated one, in the same order")
    func sameSteps() async throws {
        // In one vault of 64 the two names stand in one list, which takes fewer steps.
        for _ in 0..<4 where try await differences().isEmpty { return }
        #expect(try await differences() == [])
    }

    private func differences() async throws -> [String] {
        let agent = try AgentProcess("trace", TemporaryDirectory())
        let lines = agent.lines()
        #expect(agent.endedWell)

        let disk = SimulatedDisk()
        let vault = try await vault(on: disk)
        let changes: [(FileVault) async throws -> Void] = [
            { try await $0.update("one", to: Secret("1"), expected: .any) },
            { try await $0.update("two", to: Secret("2"), expected: .any) },
            { try await $0.update("one", to: Secret("3"), expected: .any) },
            { try await $0.update("two", to: nil, expected: .any) },
            { try await $0.removeAll() },
            { try await $0.update("one", to: Secret("4"), expected: .any) },
        ]
        var differences: [String] = []
        for (number, change) in changes.enumerated() {
            disk.arm([])
            try await change(vault)
            // Creating a file is not taken over, since it has a variable number of arguments in C.
            let simulated = disk.steps.filter { $0 != "create" }
            let real = Self.calls(lines, change: number)
            if real != simulated { differences.append("change \(number): \(real), not \(simulated)") }
        }
        return differences
    }

    @Test("begins with directories whose names are on the disk")
    func directories() async throws {
        let directory = try TemporaryDirectory()
        let below = directory.url.appending(path: "made/for/it")
        let agent = try AgentProcess("trace", at: below)
        let steps = agent.lines().prefix { !$0.hasPrefix("begin ") }.filter { $0.hasPrefix("step ") }
        #expect(agent.endedWell)
        var unsynced = 0
        var made = 0
        for step in steps {
            switch step {
            case "step mkdir":
                made += 1
                unsynced += 1
            case "step syncDirectory": unsynced = max(0, unsynced - 1)
            // Nothing is written below a directory whose name may vanish.
            case "step write": #expect(unsynced == 0)
            default: break
            }
        }
        #expect(made == 4)
        #expect(unsynced == 0)
    }
}
#endif
