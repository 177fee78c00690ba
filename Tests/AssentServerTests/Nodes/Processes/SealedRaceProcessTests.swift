#if PostgreSQL && os(Linux)
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "Two processes of assent serve that are killed: a sealed call runs once, whatever is copied",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct SealedRaceProcessTests {
    @Test(
        "38: With a proof and without, copied to both while one may be killed, an unsafe call is executed once at most, and each safe one is answered"
    )
    func once() async throws {
        try await NodeProcesses.run(editing: { SealedCalls.file($0) }) { world in
            let race = try await SealedRace(world)
            let plan = RacePlan(10, kills: 2, soaking: 500)
            for round in 1...plan.rounds { try await race.run(killing: plan.killing(round, below: 30)) }
            let found = await race.compare()
            #expect(found.calls == plan.rounds * SealedRace.size)
            // Whole rounds are not lost with a node.
            #expect(found.executed >= (plan.rounds - plan.kills) * SealedRace.size)
            try await race.close()
        }
    }
}
#endif
