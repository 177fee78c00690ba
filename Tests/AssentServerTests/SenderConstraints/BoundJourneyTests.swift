import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Journeys whose requests have proofs, and the sessions that they give.
@Suite("Journeys that belong to a key", .server)
struct BoundJourneyTests {
    private static func key(_ fixture: ServerFixture, of token: String?) async throws -> String? {
        let live = try await Sessions(fixture.server.context).live(token: Secret(try #require(token)))
        return try #require(live).sender?.keyThumbprint
    }

    @Test("A journey that begins with a proof gives a session of that key, and says so")
    func signIn() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let reply = try await fixture.runProvedJourney(
                ServerFixture.service("Login"), by: key, answer: try fixture.answers(of: "ana"))
            #expect(reply.status == 200, "\(reply.text)")
            #expect(reply.json["cnf"]?["jkt"]?.string == key.thumbprint)
            let token = reply.json["tokenId"]?.string
            #expect(try await Self.key(fixture, of: token) == key.thumbprint)
            let url = fixture.gateway("/files/keyed/a")
            let session = try #require(token)
            #expect(
                try await fixture.send("GET", url, try await fixture.proved("GET", url, session: session, by: key))
                    .status
                    == 200)
        }
    }

    @Test("A journey without a proof is as it was, and its session belongs to no key")
    func unbound() async throws {
        let fixture = try #require(ServerFixture.shared)
        let late = try ProofKey()
        for keys in [nil, late] {
            let reply = try await fixture.runProvedJourney(
                ServerFixture.service("Quick"), by: nil, keys, answer: try fixture.answers(of: "ana"))
            #expect(reply.json.object?.names == ["tokenId", "successUrl", "realm"], "\(reply.text)")
            #expect(try await Self.key(fixture, of: reply.json["tokenId"]?.string) == nil)
        }
    }

    @Test("A journey that begins with one key is not finished with another, and its owner finishes it")
    func otherKey() async throws {
        try await ServerFixture.run { fixture in
            let (owner, thief) = (try ProofKey(), try ProofKey())
            let url = fixture.json("authenticate")
            let answers = try fixture.answers(of: "ana")
            let page = try await fixture.send(
                "POST", url + "?" + ServerFixture.query(ServerFixture.service("Quick")),
                [try await fixture.proof("POST", url, by: owner)])
            let body = try ServerFixture.filled(page.json, answers).serializedBytes()
            let json = [("Content-Type", "application/json")]
            let seen = try await fixture.proof("POST", url, by: owner)
            for _ in 0..<2 {
                // The second time the step is answered, and its reply has the session's token.
                for fields in [[], [try await fixture.proof("POST", url, by: thief)], [("DPoP", "x")]] {
                    let refused = try await fixture.send("POST", url, json + fields, body: body)
                    #expect(refused.status == 401 && refused.json["tokenId"] == nil, "\(refused.text)")
                    #expect(try refused.tokenChallenge?["error"] == "invalid_dpop_proof")
                }
                let proof = try await fixture.proof("POST", url, by: owner)
                let reply = try await fixture.send("POST", url, json + [proof], body: body)
                #expect(reply.status == 200 && reply.json["cnf"]?["jkt"]?.string == owner.thumbprint, "\(reply.text)")
                #expect(try await fixture.send("POST", url, json + [proof], body: body).status == 401, "used before")
            }
            let again = try await fixture.send("POST", url, json + [seen], body: body)
            #expect(again.status == 200 && again.json["tokenId"] != nil)
        }
    }

    @Test("A first request with a proof that is not valid begins nothing")
    func invalidProof() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let url = fixture.json("authenticate")
            let other = try await fixture.proof("POST", fixture.json("sessions"), by: key)
            for fields in [[("DPoP", "x")], [other], [other, other]] {
                let answer = try await fixture.send("POST", url, fields)
                #expect(answer.status == 401 && answer.json["authId"] == nil)
                #expect(answer.json["code"]?.integer == 401 && answer.json["reason"]?.string == "Unauthorized")
            }
            let rows = try await fixture.server.context.database.run(.read("SELECT id FROM journey_steps"))
            #expect(rows.isEmpty)
            #expect(try await fixture.send("POST", url, [try await fixture.proof("POST", url, by: key)]).status == 200)
        }
    }

    @Test("A step-up keeps the session's key, and needs it at every request")
    func stepUp() async throws {
        try await ServerFixture.run { fixture in
            let (key, other) = (try ProofKey(), try ProofKey())
            let session = try await fixture.boundSession(to: key)
            let answers = try fixture.answers(of: "ana")
            let query = ServerFixture.service("Login") + [("ForceAuth", "true")]
            for keys in [(nil, nil), (other, other), (key, other), (key, nil)] as [(ProofKey?, ProofKey?)] {
                let refused = try await fixture.runProvedJourney(
                    query, session: session, by: keys.0, keys.1, answer: answers)
                #expect(refused.status == 401 && refused.json["tokenId"] == nil, "\(refused.text)")
            }
            let reply = try await fixture.runProvedJourney(query, session: session, by: key, answer: answers)
            let token = try #require(reply.json["tokenId"]?.string, "\(reply.text)")
            #expect(token != session && reply.json["cnf"]?["jkt"]?.string == key.thumbprint)
            #expect(try await Self.key(fixture, of: token) == key.thumbprint)
            #expect(try await Sessions(fixture.server.context).live(token: Secret(session)) == nil)
        }
    }

    @Test("A session that belongs to no key does not get one by a step-up")
    func unboundStepUp() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let session = try await fixture.session()
            let answers = try fixture.answers(of: "ana")
            let url = fixture.json("authenticate")
            let query = ServerFixture.service("Login") + [("ForceAuth", "true")]
            var reply = try await fixture.send(
                "POST", url + "?" + ServerFixture.query(query),
                ServerFixture.session(session) + [try await fixture.proof("POST", url, by: key)])
            while reply.json["authId"] != nil {
                let body = try ServerFixture.filled(reply.json, answers).serializedBytes()
                reply = try await fixture.send("POST", url, [("Content-Type", "application/json")], body: body)
            }
            #expect(reply.status == 200 && reply.json["cnf"] == nil, "\(reply.text)")
            #expect(try await Self.key(fixture, of: reply.json["tokenId"]?.string) == nil)
        }
    }

    @Test("A new sign-in is not stopped by a session that has ended, whatever the proof says about it")
    func endedSession() async throws {
        let fixture = try #require(ServerFixture.shared)
        let (key, next) = (try ProofKey(), try ProofKey())
        let session = try await fixture.boundSession(to: key)
        _ = try await Sessions(fixture.server.context).end(id: TokenHash.of(Secret(session)))
        let reply = try await fixture.runProvedJourney(
            ServerFixture.service("Quick"), session: session, by: next, answer: try fixture.answers(of: "ana"))
        #expect(reply.json["cnf"]?["jkt"]?.string == next.thumbprint, "\(reply.text)")
    }
}
