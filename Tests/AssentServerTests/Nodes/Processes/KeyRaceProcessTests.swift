#if PostgreSQL && os(Linux)
import AssentCore
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "Two processes of assent serve that are killed: what proves a key is accepted once between them",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct KeyRaceProcessTests {
    @Test("A proof and an assertion, raced over both while one of them may be killed, are each accepted once")
    func race() async throws {
        let key = try ProofKey()
        try await NodeProcesses.run(editing: { KeyRace.file($0, key) }) { world in
            let race = try await KeyRace(world, key)
            let plan = RacePlan(100, kills: 5)
            for round in 1...plan.rounds {
                let killing = plan.killing(round)
                let outcome = try await race.run(killing: killing)
                for credential in KeyRace.Credential.allCases {
                    let count = outcome.accepted[credential, default: 0]
                    // A process that is killed may have given a token, and told nobody.
                    let isLost = killing != nil && outcome.lost[credential] != nil
                    #expect(count == 1 || (isLost && count == 0), "round \(round): \(credential) \(count) times")
                }
            }
            let given = await race.accepted
            for credential in KeyRace.Credential.allCases { #expect(given[credential] == plan.rounds, "\(credential)") }
            try await race.close()
        }
    }
}
#endif
