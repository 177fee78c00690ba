#if PostgreSQL && os(Linux)
import AssentCore
import TestSupport
import Testing

@testable import AssentServer

@Suite("Two processes of assent serve that are killed: one login for one evaluation, and no guess too many")
struct LoginRaceProcessTests {
    @Test("29: Raced over both while one of them may be killed, an evaluation gives one login, on record")
    func logins() async throws {
        try await NodeProcesses.run(editing: { LoginRace.file($0) }) { world in
            let race = try await LoginRace(world)
            let (rounds, kills) = Soak.isOn ? (10_000, 100) : (40, 4)
            for round in 1...rounds {
                let kill = round.isMultiple(of: rounds / kills) ? round / (rounds / kills) : nil
                // From before the first answer to after the fourth.
                let outcome = try await race.run(killing: kill.map { $0 % 5 })
                // A process that is killed may have made one, and told nobody.
                let isLost = kill != nil && outcome.lost > 0 && outcome.told.isEmpty
                #expect(outcome.told.count == 1 || isLost, "round \(round): \(outcome.told)")
                if kill != nil { try await race.compare() }
            }
            try await race.compare()
            try await race.close()
        }
    }

    @Test("29: Raced over both while one of them may be killed, no more guesses are evaluated than there may be")
    func guesses() async throws {
        try await NodeProcesses.run(editing: { LoginRace.file($0) }) { world in
            let race = try await LoginRace(world)
            let (rounds, kills) = Soak.isOn ? (1000, 100) : (8, 2)
            for round in 1...rounds {
                let kill = round.isMultiple(of: rounds / kills) ? round / (rounds / kills) : nil
                let guesses = try await race.guess(killing: kill.map { $0 % 10 })
                let numbers = Set(guesses.evaluated)
                #expect(numbers.count == guesses.evaluated.count, "round \(round): \(guesses)")
                #expect(numbers.allSatisfy { (1...LoginRace.most).contains($0) }, "round \(round): \(guesses)")
                #expect(numbers.count <= Int(guesses.counted), "round \(round): \(guesses)")
                #expect(guesses.total == LoginRace.most, "round \(round): \(guesses)")
            }
            try await race.close()
        }
    }
}
#endif
