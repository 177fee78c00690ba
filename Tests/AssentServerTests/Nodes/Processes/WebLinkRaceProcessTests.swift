#if PostgreSQL && os(Linux)
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "Two processes of assent serve that are killed: one browser's session for one link",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct WebLinkRaceProcessTests {
    @Test("41: Raced over both while one of them may be killed, a link signs one browser in, on record")
    func race() async throws {
        try await NodeProcesses.run { world in
            let race = try await WebLinkRace(world)
            let plan = RacePlan(40, kills: 4)
            for round in 1...plan.rounds {
                let killing = plan.killing(round)
                let outcome = try await race.run(killing: killing)
                #expect(outcome.isOne(killed: killing != nil), "round \(round): \(outcome.told.count)")
                if killing != nil { try await race.compare() }
            }
            try await race.compare()
            try await race.close()
        }
    }
}
#endif
