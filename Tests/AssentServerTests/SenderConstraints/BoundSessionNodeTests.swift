#if PostgreSQL && os(Linux)
import AssentCore
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite(
    "Two nodes on one database: sessions that belong to a key",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct BoundSessionNodeTests {
    @Test("A journey that begins at one node is finished at the other with its key alone")
    func journey() async throws {
        try await TwoNodes.run { nodes in
            let (owner, thief) = (try ProofKey(), try ProofKey())
            let (first, second) = (nodes.first, nodes.second)
            let answers = try second.answers(of: "ana")
            let url = first.json("authenticate")
            let page = try await first.send(
                "POST", url + "?" + ServerFixture.query(ServerFixture.service("Quick")),
                [try await first.proof("POST", url, by: owner)])
            let body = try ServerFixture.filled(page.json, answers).serializedBytes()
            func finish(_ fields: [(String, String)]) async throws -> Answer {
                try await second.send(
                    "POST", second.json("authenticate"), [("Content-Type", "application/json")] + fields, body: body)
            }
            #expect(try await finish([]).status == 401)
            #expect(try await finish([try await second.proof("POST", url, by: thief)]).status == 401)
            let reply = try await finish([try await first.proof("POST", url, by: owner)])
            #expect(reply.json["cnf"]?["jkt"]?.string == owner.thumbprint, "\(reply.text)")
        }
    }

    @Test("Of many requests with one proof of a session, half at each node, one is let in")
    func race() async throws {
        try await TwoNodes.run { nodes in
            let key = try ProofKey()
            let session = try await nodes.first.boundSession(to: key)
            let door = SessionDoor.gateway
            let proof = try await nodes.first.proof("GET", door.url(nodes.first), session: session, by: key)
            let answers = try await nodes.race(40) { node, _ in try await door.send(node, session, [proof]) }
            #expect(answers.count { door.accepts($0) } == 1)
            #expect(answers.allSatisfy { [200, 401].contains($0.status) })
            #expect(nodes.forwarded.count == 1)
        }
    }
}
#endif
