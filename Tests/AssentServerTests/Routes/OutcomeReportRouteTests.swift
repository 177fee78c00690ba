import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What an enforcement point reports, and hears, of transactions", .server, .serialized)
struct OutcomeReportRouteTests {
    private static let withdraw = "https://bank.example:443/withdraw?amount=100.00"

    /// The one decision, asked by `caller` about the user of `subject`.
    private func ask(
        _ fixture: ServerFixture, _ caller: String, about subject: String, id: String? = nil,
        resource: String = withdraw, reports: Bool = true
    ) async throws -> JSONValue {
        var environment = JSONObject()
        if let id { environment["TxId"] = [.string(id)] }
        if reports { environment["report"] = ["outcome"] }
        let body: JSONValue = [
            "resources": [.string(resource)], "application": "rest", "subject": ["ssoToken": .string(subject)],
            "environment": .object(environment),
        ]
        let reply = try await fixture.send(
            "POST", fixture.json("policies?_action=evaluate"),
            [("Content-Type", "application/json")] + ServerFixture.session(caller), text: body.serialized())
        #expect(reply.status == 200)
        return try #require(reply.json.array?.first)
    }

    private func report(
        _ fixture: ServerFixture, _ caller: String, _ id: String, _ outcome: JSONValue
    ) async throws -> Int {
        let body: JSONValue = ["transaction": .string(id), "outcome": outcome]
        return try await fixture.send(
            "POST", fixture.json("policies?_action=report"),
            [("Content-Type", "application/json")] + ServerFixture.session(caller), text: body.serialized()
        ).status
    }

    private func advised(_ decision: JSONValue) -> String? {
        decision["advices"]?["TransactionConditionAdvice"]?.strings?.first
    }

    /// A transaction that `caller` was advised, and that the user has approved.
    private func approved(_ fixture: ServerFixture, _ caller: String, _ user: String) async throws -> String {
        let id = try #require(advised(try await ask(fixture, caller, about: user)))
        #expect(try await fixture.approve(id, session: user).status == 200)
        return id
    }

    @Test("Who asks again with a used transaction is told what became of it, as far as it was reported, and no more")
    func outcome() async throws {
        let fixture = try #require(ServerFixture.shared)
        let (ana, pat) = (try await fixture.session("ana"), try await fixture.session("pat"))
        let id = try await approved(fixture, pat, ana)
        let granted = try await ask(fixture, pat, about: ana, id: id)
        #expect(granted["actions"]?["POST"] == true && granted["transaction"] == nil && granted["ttl"] == 0)

        let before = try await fixture.count("transactions")
        let early = try await ask(fixture, pat, about: ana, id: id)
        #expect(early["transaction"] == ["id": .string(id), "outcome": ["state": "forwarded"]])
        #expect(early["actions"] == [:] && early["advices"] == [:] && early["ttl"] == 0)
        #expect(try await report(fixture, pat, id, ["state": "answered", "status": 201]) == 200)
        // What is known stays.
        #expect(try await report(fixture, pat, id, ["state": "notForwarded"]) == 200)
        let late = try await ask(fixture, pat, about: ana, id: id)
        #expect(late["transaction"] == ["id": .string(id), "outcome": ["state": "answered", "status": 201]])
        #expect(try await fixture.count("transactions") == before)
        let outcomes = try await fixture.audit(id).filter { $0.event == .transactionOutcome }
        #expect(outcomes.count == 1 && outcomes.first?.outcome == .success)
    }

    @Test("A transaction that does not help is denied without another one, and stays what it is")
    func useless() async throws {
        let fixture = try #require(ServerFixture.shared)
        let (ana, pat) = (try await fixture.session("ana"), try await fixture.session("pat"))
        let id = try await approved(fixture, pat, ana)
        let before = try await fixture.count("transactions")
        let other = try await ask(
            fixture, pat, about: ana, id: id, resource: "https://bank.example:443/withdraw?amount=900.00")
        let unknown = try await ask(fixture, pat, about: ana, id: SystemRandom().uuid())
        for decision in [other, unknown] {
            #expect(decision["actions"] == [:] && decision["advices"] == [:] && decision["transaction"] == nil)
        }
        #expect(try await fixture.count("transactions") == before)
        #expect(try await ask(fixture, pat, about: ana, id: id)["actions"]?["POST"] == true)
    }

    @Test("Whoever does not ask for it, or is no enforcement point, gets AM's answer: another transaction")
    func asAM() async throws {
        let fixture = try #require(ServerFixture.shared)
        let (ana, pat) = (try await fixture.session("ana"), try await fixture.session("pat"))
        for (caller, reports) in [(pat, false), (ana, true)] {
            let id = try await approved(fixture, caller, ana)
            #expect(try await ask(fixture, caller, about: ana, id: id, reports: reports)["actions"]?["POST"] == true)
            let again = try await ask(fixture, caller, about: ana, id: id, reports: reports)
            let next = advised(again)
            #expect(next != nil && next != id && again["transaction"] == nil)
        }
    }

    @Test("Only who took a transaction reports on it")
    func whose() async throws {
        let fixture = try #require(ServerFixture.shared)
        let (ana, pat) = (try await fixture.session("ana"), try await fixture.session("pat"))
        let done: JSONValue = ["state": "answered", "status": 201]
        let id = try await approved(fixture, pat, ana)
        // Not yet taken.
        #expect(try await report(fixture, pat, id, done) == 404)
        _ = try await ask(fixture, pat, about: ana, id: id)
        #expect(try await report(fixture, ana, id, done) == 403)
        #expect(try await ask(fixture, pat, about: ana, id: id)["transaction"]?["outcome"] == ["state": "forwarded"])

        let own = try await approved(fixture, ana, ana)
        #expect(try await ask(fixture, ana, about: ana, id: own)["actions"]?["POST"] == true)
        let gateways = try await fixture.completedTransaction(session: ana)
        let paid = try await fixture.send(
            "POST", fixture.gateway("/nods"),
            ServerFixture.jsonFields + ServerFixture.session(ana) + [("X-TxID", gateways)], text: FixtureBody.transfer)
        #expect((200...299).contains(paid.status))
        for other in [own, gateways, SystemRandom().uuid(), String(repeating: "a", count: 5000), ""] {
            #expect(try await report(fixture, pat, other, done) == 404)
        }
    }

    @Test(
        "What is no end of a request is no outcome",
        arguments: [
            [:], "answered", .null, ["state": "answered"], ["state": "answered", "status": 99],
            ["state": "answered", "status": 600], ["state": "answered", "status": "201"], ["state": "taken"],
            ["state": "forwarded"], ["state": "paid"],
        ] as [JSONValue])
    func malformed(_ outcome: JSONValue) async throws {
        let fixture = try #require(ServerFixture.shared)
        #expect(try await report(fixture, try await fixture.session("pat"), "t", outcome) == 400)
    }

    @Test("An enforcement point that is lost leaves an outcome that nobody knows, and a late report replaces that")
    func lost() async throws {
        try await ServerFixture.run { fixture in
            let (ana, pat) = (try await fixture.session("ana"), try await fixture.session("pat"))
            let id = try await approved(fixture, pat, ana)
            _ = try await ask(fixture, pat, about: ana, id: id)
            fixture.clock.advance(by: Double(Transactions.forwardingLimit) + 1)
            _ = try await Transactions(fixture.server.context).recordLostOutcomes()
            let unknown = try await ask(fixture, pat, about: ana, id: id)
            #expect(unknown["transaction"]?["outcome"] == ["state": "unknown"])
            #expect(try await report(fixture, pat, id, ["state": "answered", "status": 201]) == 200)
            let late = try await ask(fixture, pat, about: ana, id: id)
            #expect(late["transaction"]?["outcome"] == ["state": "answered", "status": 201])
        }
    }
}
