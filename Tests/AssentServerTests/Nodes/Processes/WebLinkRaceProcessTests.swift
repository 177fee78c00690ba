#if PostgreSQL && os(Linux)
import TestSupport
import Testing

@testable import AssentServer

@Suite("Two processes of assent serve that are killed: one browser's session for one link")
struct WebLinkRaceProcessTests {
    @Test("41: Raced over both while one of them may be killed, a link signs one browser in, on record")
    func race() async throws {
        try await NodeProcesses.run { world in
            let race = try await WebLinkRace(world)
            let (rounds, kills) = Soak.isOn ? (10_000, 100) : (40, 4)
            for round in 1...rounds {
                let kill = round.isMultiple(of: rounds / kills) ? round / (rounds / kills) : nil
                // From before the first answer to after the fourth.
                let outcome = try await race.run(killing: kill.map { $0 % 5 })
                // A process that is killed may have begun a session, and told nobody.
                let isLost = kill != nil && outcome.lost > 0 && outcome.told.isEmpty
                #expect(outcome.told.count == 1 || isLost, "round \(round): \(outcome.told.count)")
                if kill != nil { try await race.compare() }
            }
            try await race.compare()
            try await race.close()
        }
    }
}
#endif
