import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Actions that are not the method")
struct RouteActionTests {
    private static let url = "https://api.bank.example/transfers"

    private static func settlement(_ fixture: TransactionFixture) throws -> AccessSettlement {
        let set = PolicySet(
            name: "bank", realm: "/alpha", actions: PolicySet.defaultActions + ["transfer"],
            policies: [try TransactionFixture.policy(actions: ["transfer": true])])
        return AccessSettlement(
            fixture.context, decisions: PolicyDecisionPoint(policySets: [set]), transactions: fixture.transactions)
    }

    private static func request(
        _ fixture: TransactionFixture, _ method: String = "POST", action: String? = "transfer", id: String? = nil
    ) throws -> SentRequest {
        SentRequest(
            session: PresentedSession(fixture.ana, grantID: "g1"), method: method, action: action,
            resource: try CanonicalResource(url), mediaType: "application/json", body: TransactionFixture.body,
            transactionID: id)
    }

    @Test("The policies decide on the action, and the transaction binds the method")
    func bound() async throws {
        let fixture = try await TransactionFixture()
        try await fixture.giveGrant("g1")
        let point = try Self.settlement(fixture)
        guard case .advised(let advice, let record?) = await point.settle(try Self.request(fixture)),
            let id = advice.transactionID
        else {
            Issue.record("an advice was expected")
            return
        }
        #expect(record.id == id)
        try await fixture.approve(id)
        let put = await point.settle(try Self.request(fixture, "PUT", id: id))
        #expect(put == .denied(.transaction(.method)))
        guard case .granted(let taken?) = await point.settle(try Self.request(fixture, id: id)) else {
            Issue.record("the approved request must pass")
            return
        }
        #expect(taken.id == id)
        let stored = try await fixture.database.run(.read("SELECT method FROM transactions WHERE id = \(id)"))
        #expect(try stored.first?.text("method") == "POST")
    }

    @Test("A policy that speaks of the action says nothing of the method, and the other way round")
    func apart() async throws {
        let fixture = try await TransactionFixture()
        let (ofAction, ofMethod) = (try Self.settlement(fixture), try fixture.settlement())
        let (asking, plain) = (try Self.request(fixture), try Self.request(fixture, action: nil))
        let decision = await ofAction.settle(plain)
        #expect(decision == .denied(.noPolicy))
        let usual = await ofMethod.settle(asking)
        #expect(usual == .denied(.noPolicy))
        let control = await ofMethod.settle(plain)
        guard case .advised = control else {
            Issue.record("an advice was expected")
            return
        }
    }

    @Test(
        "An entry is about methods and paths, in upper or lower case, whatever the query is",
        arguments: [
            ("/transfers", "POST", "/transfers", true), ("/transfers", "POST", "/TRANSFERS?a=1", true),
            ("/transfers", "PUT", "/transfers", false), ("/transfers", "POST", "/transfers/", false),
            ("/transfers/*", "POST", "/transfers/a/b", true), ("/transfers/*", "POST", "/transfers", false),
            ("/-*-/pay", "POST", "/a/pay", true), ("/-*-/pay", "POST", "/a/b/pay", false),
        ])
    func covers(path: String, method: String, target: String, isCovered: Bool) throws {
        let entry = try RouteAction(methods: ["POST"], path: path, name: "transfer")
        #expect(entry.covers(method, try CanonicalResource("https://api.bank.example" + target)) == isCovered)
    }

    @Test(
        "What no path can match is refused",
        arguments: [
            "", "transfers", "/a?b", "/a/../b", "/a%2fb", "/a;b", "/a b", "/-*-/*", "https://a.example/", "/\u{E9}",
            "/" + String(repeating: "a", count: 4000),
        ])
    func refused(path: String) {
        #expect(throws: PatternError.self) { try RouteAction(methods: ["POST"], path: path, name: "transfer") }
    }

    @Test(
        "An entry must reach something of its route",
        arguments: [
            ("/transfers", "/", true), ("/bank/*", "/bank", true), ("/bank", "/bank", true), ("/*", "/bank", true),
            ("/shop/*", "/bank", false), ("/bank2", "/bank", false), ("/-*-/pay", "/bank", true),
            ("/-*-", "/bank/x", false), ("/BANK/a", "/bank", true),
        ])
    func reaches(path: String, route: String, isReached: Bool) throws {
        #expect(try RouteAction(methods: ["GET"], path: path, name: "x").reaches(below: route) == isReached)
    }
}
