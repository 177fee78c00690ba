import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("A transaction at the gateway is spent once, for what was approved")
struct GatewayTransactionTests {
    private static let body = #"{"amount":"200.00"}"#

    private func post(
        _ fixture: ServerFixture, _ id: String, _ credentials: [(String, String)], target: String = "/nods",
        method: String = "POST", type: String = "application/json", body: String = body
    ) async throws -> Answer {
        try await fixture.send(
            method, fixture.gateway(target + (target.contains("?") ? "&" : "?") + "_txid=" + id),
            [("Content-Type", type)] + credentials, text: body)
    }

    /// Why uses of a transaction were refused, sorted.
    private func refusals(_ fixture: ServerFixture, _ id: String) async throws -> [String] {
        try await fixture.audit(id).filter { $0.outcome == .refused }.map { $0.reason ?? "" }.sorted()
    }

    @Test("Each other request with the completed id is denied and leaves one record that names the field")
    func mismatches() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let mine = ServerFixture.session(session)
            let other = ServerFixture.session(try await fixture.session())
            let ben = ServerFixture.session(try await fixture.session("ben"))
            let access = ServerFixture.bearer(try await fixture.tokens(session: session).access)
            let id = try await fixture.completedTransaction(body: Self.body, session: session)
            let attempts: [(reason: String, () async throws -> Answer)] = [
                ("body", { try await post(fixture, id, mine, body: #"{"amount":"900.00"}"#) }),
                ("body", { try await post(fixture, id, mine, body: Self.body + " ") }),
                ("method", { try await post(fixture, id, mine, method: "PUT") }),
                ("query", { try await post(fixture, id, mine, target: "/nods?x=1") }),
                ("query", { try await post(fixture, id, mine, target: "/nods?") }),
                ("mediaType", { try await post(fixture, id, mine, type: "application/json; charset=utf-8") }),
                ("session", { try await post(fixture, id, other) }),
                ("subject", { try await post(fixture, id, ben) }),
                ("grant", { try await post(fixture, id, access) }),
                ("policy", { try await post(fixture, id, mine, target: "/transfers", body: FixtureBody.transfer) }),
                ("resource", { try await post(fixture, id, mine, target: "/down/nods") }),
            ]
            for (reason, attempt) in attempts {
                let before = try await refusals(fixture, id)
                let reply = try await attempt()
                #expect(reply.status == 403, "\(reason)")
                #expect(reply["WWW-Authenticate"] == nil && reply["Location"] == nil)
                let after = try await refusals(fixture, id)
                let expected = (before + [reason]).sorted()
                #expect(after == expected)
            }
            #expect(fixture.upstream.requests.isEmpty)
            #expect(try await fixture.count("transactions") == 1)
            #expect(try await post(fixture, id, mine, type: "Application/JSON").status == 201)
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test("An id that is unknown, not approved, or declined grants nothing, and brings no new advice")
    func useless() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let session = ServerFixture.session(token)
            let advised = try await fixture.send(
                "POST", fixture.gateway("/nods"), ServerFixture.jsonFields + session, text: Self.body)
            let id = try ServerFixture.transactionID(advised)
            for useless in [id, SystemRandom().uuid(), "x", String(repeating: "a", count: 500)] {
                let reply = try await post(fixture, useless, session)
                #expect(reply.status == 403 && reply["WWW-Authenticate"] == nil)
            }
            let declined = try await fixture.runJourney(
                [("authIndexType", "transaction"), ("authIndexValue", id)], session
            ) { $0 == "ConfirmationCallback" ? 1 : nil }
            #expect(declined.status == 401)
            #expect(declined.json["message"] == "Login failure")
            #expect(declined.json["detail"] == ["failureUrl": "", "reason": "declined"])
            #expect(try await post(fixture, id, session).status == 403)
            #expect(try await fixture.count("transactions") == 1)
            #expect(fixture.upstream.requests.isEmpty)
            #expect(try await fixture.approve(id, session: token).status == 401)
        }
    }

    @Test("The id comes in the header as well, and two that differ are refused")
    func header() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let id = try await fixture.completedTransaction(body: Self.body, session: session)
            let fields = [("Content-Type", "application/json"), ("X-TxID", id)] + ServerFixture.session(session)
            let two = try await fixture.send(
                "POST", fixture.gateway("/nods?_txid=other"), fields, text: Self.body)
            #expect(two.status == 400)
            #expect(try await fixture.send("POST", fixture.gateway("/nods"), fields, text: Self.body).status == 201)
            #expect(fixture.upstream.requests.first?.values("X-TxID") == [])
        }
    }

    @Test("After its time a completed transaction grants nothing")
    func expired() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let id = try await fixture.completedTransaction(body: Self.body, session: session)
            fixture.clock.advance(by: 180)
            #expect(try await post(fixture, id, ServerFixture.session(session)).status == 403)
            fixture.clock.advance(by: -100)
            #expect(try await post(fixture, id, ServerFixture.session(session)).status == 403)
            #expect(try await refusals(fixture, id) == ["expired", "expired"])
            #expect(fixture.upstream.requests.isEmpty)
        }
    }

    @Test("Of fifty requests at once with one completed id exactly one reaches the service")
    func race() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let id = try await fixture.completedTransaction(body: Self.body, session: session)
            let replies = try await withThrowingTaskGroup(of: Answer.self) { group in
                for _ in 0..<50 {
                    group.addTask { try await post(fixture, id, ServerFixture.session(session)) }
                }
                return try await group.reduce(into: [Answer]()) { $0.append($1) }
            }
            #expect(replies.filter { $0.status == 201 }.count == 1)
            let others = replies.filter { $0.status != 201 }
            #expect(others.count == 49)
            for reply in others {
                #expect(reply.status == 409)
                #expect(reply.json["transaction"]?.string == id)
            }
            #expect(fixture.upstream.requests.count == 1)
            #expect(fixture.upstream.requests.first?.values("Idempotency-Key") == [id])
        }
    }

    @Test("A service that is down gets nothing, and that is what is said then and later")
    func serviceDown() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let id = try await fixture.completedTransaction("/down/nods", body: Self.body, session: session)
            let first = try await post(fixture, id, ServerFixture.session(session), target: "/down/nods")
            #expect(first.status == 502)
            #expect(first.json["forwarded"] == "no" && first.json["transaction"]?.string == id)
            let again = try await post(fixture, id, ServerFixture.session(session), target: "/down/nods")
            #expect(again.status == 409 && again.json["outcome"] == ["state": "notForwarded"])
            let plain = try await fixture.send("GET", fixture.gateway("/down"), ServerFixture.session(session))
            #expect(plain.status == 502 && plain.json["transaction"] == nil)
        }
    }

    @Test("A service that ends the connection without an answer leaves an unknown outcome, and is not asked again")
    func noAnswer() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let id = try await fixture.completedTransaction(body: Self.body, session: session)
            fixture.upstream.answer(with: TestUpstream.closing)
            let first = try await post(fixture, id, ServerFixture.session(session))
            #expect(first.status == 504)
            #expect(first.json["forwarded"] == "unknown" && first.json["transaction"]?.string == id)
            fixture.upstream.answer(with: TestUpstream.answering)
            for _ in 0..<2 {
                let again = try await post(fixture, id, ServerFixture.session(session))
                #expect(again.status == 409 && again.json["outcome"] == ["state": "unknown"])
            }
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test(
        "A refusal of the service is passed on and told again",
        arguments: ["402 Payment Required", "500 Oops", "302 Found"])
    func serviceRefuses(_ status: String) async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let id = try await fixture.completedTransaction(body: Self.body, session: session)
            fixture.upstream.answer { _, peer in peer.answer(status, fields: ["Location: https://elsewhere.example/"]) }
            let first = try await post(fixture, id, ServerFixture.session(session))
            let code = Int(status.prefix(3)) ?? 0
            #expect(first.status == code)
            let again = try await post(fixture, id, ServerFixture.session(session))
            #expect(again.status == 409)
            #expect(again.json["outcome"] == ["state": "answered", "status": .integer(code)])
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test(
        "While the service works, asking again tells that it was forwarded; the outcome is kept when the client leaves")
    func clientLeaves() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let session = ServerFixture.session(token)
            let id = try await fixture.completedTransaction(body: Self.body, session: token)
            fixture.upstream.hold()
            let connection = try await fixture.rawConnection()
            try await connection.send(
                "POST /nods?_txid=\(id) HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\nContent-Type: application/json\r\nContent-Length: \(Self.body.utf8.count)\r\n\r\n\(Self.body)"
            )
            await fixture.upstream.waitUntilHeld()
            let meanwhile = try await post(fixture, id, session)
            #expect(meanwhile.status == 409 && meanwhile.json["outcome"] == ["state": "forwarded"])
            await connection.close()
            await fixture.upstream.release()
            var outcome: JSONValue?
            repeat {
                try Task.checkCancellation()
                outcome = try await post(fixture, id, session).json["outcome"]
            } while outcome == ["state": "forwarded"]
            #expect(outcome == ["state": "answered", "status": 201])
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test("A session that ended after the approval takes its transaction with it")
    func sessionEnds() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let access = ServerFixture.bearer(try await fixture.tokens(session: session).access)
            let id = try await fixture.completedTransaction(body: Self.body, session: session, credentials: access)
            try await fixture.signOut(session)
            #expect(try await post(fixture, id, access).status == 401)
            let renewed = ServerFixture.session(try await fixture.session())
            #expect(try await post(fixture, id, renewed).status == 403)
            #expect(fixture.upstream.requests.isEmpty)
        }
    }
}
