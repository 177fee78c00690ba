#if PostgreSQL && os(Linux)
import AssentCore
import TestSupport
import Testing

@testable import AssentServer

@Suite("Two processes of assent serve that are killed: an initial access token registers as many as it is for")
struct RegistrationRaceProcessTests {
    @Test("Raced over both while one of them may be killed, a token for one instance registers one, on record")
    func race() async throws {
        try await NodeProcesses.run(editing: { RegistrationRace.file($0) }) { world in
            let race = try await RegistrationRace(world)
            let (rounds, kills) = Soak.isOn ? (10_000, 100) : (50, 5)
            for round in 1...rounds {
                let kill = round.isMultiple(of: rounds / kills) ? round / (rounds / kills) : nil
                // From before the first answer to after the fourth.
                let outcome = try await race.run(killing: kill.map { $0 % 5 })
                // A process that is killed may have registered one, and told nobody.
                let isLost = kill != nil && outcome.lost > 0 && outcome.told.isEmpty
                #expect(outcome.told.count == 1 || isLost, "round \(round): \(outcome.told)")
                if kill != nil { try await race.compare() }
            }
            try await race.compare()
            let told = await race.told
            #expect((rounds - kills...rounds).contains(told.count))
            try await race.close()
        }
    }
}
#endif
