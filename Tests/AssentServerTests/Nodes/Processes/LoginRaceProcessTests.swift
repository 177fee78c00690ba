#if PostgreSQL && os(Linux)
import AssentCore
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "Two processes of assent serve that are killed: one login for one evaluation, and no guess too many",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct LoginRaceProcessTests {
    @Test("29: Raced over both while one of them may be killed, an evaluation gives one login, on record")
    func logins() async throws {
        try await NodeProcesses.run(editing: { LoginRace.file($0) }) { world in
            let race = try await LoginRace(world)
            let plan = RacePlan(40, kills: 4)
            for round in 1...plan.rounds {
                let killing = plan.killing(round)
                let outcome = try await race.run(killing: killing)
                #expect(outcome.isOne(killed: killing != nil), "round \(round): \(outcome.told)")
                if killing != nil { try await race.compare() }
            }
            try await race.compare()
            try await race.close()
        }
    }

    @Test("29: Raced over both while one of them may be killed, no more guesses are evaluated than there may be")
    func guesses() async throws {
        try await NodeProcesses.run(editing: { LoginRace.file($0) }) { world in
            let race = try await LoginRace(world)
            let plan = RacePlan(8, kills: 2, soaking: 1000)
            for round in 1...plan.rounds {
                let guesses = try await race.guess(killing: plan.killing(round, below: 10))
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
