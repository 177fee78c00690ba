#if PostgreSQL && os(Linux)
import AssentCore
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite(
    "Round trips to the database of calls by kind",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct KindRoundTripTests {
    @Test("A call of an installation or of a remembered user is one statement, as a user's is, with a proof or without")
    func calls() async throws {
        try await TwoNodes.run(editingBoth: KindDoorTests.file, configuring: TwoNodes.countingTrips) { nodes in
            let node = nodes.first
            let door = try await RegistrationDoor(node)
            let url = node.gateway("/every/open")
            for kind in KindColumn.allCases where kind != .nobody {
                let caller = try await KindCredentials.make(kind, at: door)
                for round in 0..<3 {
                    let fields = try await caller.byToken(node, "GET", url)
                    let before = nodes.proxy.roundTrips
                    let answer = try await node.send("GET", url, fields)
                    let trips = nodes.proxy.roundTrips - before
                    #expect(answer.status == 200, "\(kind): \(answer.text)")
                    // The first one may be a use of its session, which is written down from time to time.
                    if round > 0 { #expect(trips == 1, "\(kind), round \(round)") }
                }
            }
        }
    }
}
#endif
