#if PostgreSQL && os(Linux)
import AssentCore
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "Two processes of assent serve that are killed: an initial access token registers as many as it is for",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct RegistrationRaceProcessTests {
    @Test("Raced over both while one of them may be killed, a token for one instance registers one, on record")
    func race() async throws {
        try await NodeProcesses.run(editing: { RegistrationRace.file($0) }) { world in
            let race = try await RegistrationRace(world)
            let plan = RacePlan(50, kills: 5)
            for round in 1...plan.rounds {
                let killing = plan.killing(round)
                let outcome = try await race.run(killing: killing)
                #expect(outcome.isOne(killed: killing != nil), "round \(round): \(outcome.told)")
                if killing != nil { try await race.compare() }
            }
            try await race.compare()
            let told = await race.told
            #expect((plan.rounds - plan.kills...plan.rounds).contains(told.count))
            try await race.close()
        }
    }
}
#endif
