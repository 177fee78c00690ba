#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite(
    "Two nodes on one database: a proof is good once between them",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct ProofNodeTests {
    @Test("A proof that one node has accepted is refused by the other, and a nonce of one is good at the other")
    func replay() async throws {
        try await TwoNodes.run { nodes in
            let session = try await nodes.first.session()
            let key = try ProofKey()
            for door in ResourceDoor.allCases {
                let token = try await door.boundToken(nodes.first, session: session, to: key)
                for (sends, repeats) in [(nodes.first, nodes.second), (nodes.second, nodes.first)] {
                    let fields = try await sends.proved("GET", door.url(sends), token: token, by: key)
                    let first = try await sends.send("GET", door.url(sends), fields)
                    #expect(door.accepts(first), "\(door): \(first.text)")
                    let again = try await repeats.send("GET", door.url(repeats), fields)
                    #expect(try door.outcome(again) == "401 `DPoP` `invalid_dpop_proof`", "\(again.text)")
                    let other = try await sends.proved("GET", door.url(sends), token: token, by: key)
                    let there = try await repeats.send("GET", door.url(repeats), other)
                    #expect(door.accepts(there), "\(door): \(there.text)")
                }
            }
        }
    }

    @Test("The nonce that one node tells is accepted at the other, at every door and at the token endpoint")
    func nonces() async throws {
        try await TwoNodes.run { nodes in
            let session = try await nodes.first.session()
            let key = try ProofKey()
            for (tells, takes) in [(nodes.first, nodes.second), (nodes.second, nodes.first)] {
                let old = try await tells.provedTokenRequest(by: key) {
                    $0["nonce"] = nil
                    $0["iat"] = .integer(($0["iat"]?.integer ?? 0) - 3600)
                }
                let told = try await tells.shopToken(old)
                #expect(told.status == 400 && told.error == "use_dpop_nonce", "\(told.text)")
                let nonce = try #require(told["DPoP-Nonce"])
                let given = try await takes.shopToken(
                    try await takes.provedTokenRequest(by: key) { $0["nonce"] = .string(nonce) })
                #expect(given.status == 200, "\(given.text)")
                for door in ResourceDoor.allCases {
                    let token = try await door.boundToken(nodes.first, session: session, to: key)
                    var subject = tells.subject("GET", door.url(tells), token: token)
                    subject.nonce = nil
                    subject.issuedAt -= 3600
                    let asked = try await tells.send(
                        "GET", door.url(tells), ServerFixture.dpop(token, try await key.proof(subject)))
                    #expect(try door.outcome(asked) == "401 `DPoP` `use_dpop_nonce`", "\(door): \(asked.text)")
                    let told = try #require(asked["DPoP-Nonce"], "\(door)")
                    subject.nonce = told
                    let there = try await takes.send(
                        "GET", door.url(takes), ServerFixture.dpop(token, try await key.proof(subject)))
                    #expect(door.accepts(there), "\(door): \(there.text)")
                }
            }
        }
    }

    @Test("Of a hundred requests with one proof, half at each node, one is let in; the same for ten more proofs")
    func race() async throws {
        try await TwoNodes.run { nodes in
            let session = try await nodes.first.session()
            let key = try ProofKey()
            let door = ResourceDoor.gateway
            let token = try await door.boundToken(nodes.first, session: session, to: key)
            for round in 1...11 {
                let fields = try await nodes.first.proved("GET", door.url(nodes.first), token: token, by: key)
                let answers = try await nodes.race(round == 1 ? 100 : 20) { node, _ in
                    try await node.send("GET", door.url(node), fields)
                }
                #expect(answers.count { $0.status == 200 } == 1)
                #expect(answers.allSatisfy { [200, 401].contains($0.status) })
                #expect(nodes.forwarded.count == round)
            }
        }
    }

    @Test("Of fifty token requests with one proof, half at each node, one gets a token; the same for three more proofs")
    func tokenRace() async throws {
        try await TwoNodes.run { nodes in
            let key = try ProofKey()
            for _ in 0..<4 {
                let fields = try await nodes.first.provedTokenRequest(by: key)
                let answers = try await nodes.race(50) { node, _ in try await node.shopToken(fields) }
                #expect(answers.count { $0.status == 200 && $0.json["token_type"]?.string == "DPoP" } == 1)
                #expect(answers.count { $0.status == 400 && $0.error == "invalid_dpop_proof" } == 49)
                // No request with the same proof gets a token afterwards, at either node.
                for node in nodes.both { #expect(try await node.shopToken(fields).error == "invalid_dpop_proof") }
            }
        }
    }
}
#endif
