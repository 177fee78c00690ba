import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Settling an access that somebody else waits for")
struct SettlementAttackTests {
    typealias Point = PolicyDecisionPointTests

    @Test("An enforcement point cannot spend what another one has asked for, and the gateway cannot either")
    func makers() async throws {
        let fixture = try await TransactionFixture()
        let second = try await TransactionFixture.signIn("second", roles: [.pep], fixture.context)
        let point = try fixture.settlement([try Point.policy("withdraw", ["GET": true], Point.confirm)])
        func ask(_ caller: LiveSession, _ id: String? = nil) async throws -> PolicyDecision {
            let request = EvaluateRequest(
                realm: "/alpha", policySet: "bank", resources: [Point.resource],
                subject: .session(PresentedSession(fixture.ana)), environment: id.map { ["TxId": [$0]] } ?? [:])
            return try #require(try await point.settle(request, caller: caller).first)
        }
        let id = try #require(try await ask(fixture.gateway).advices["TransactionConditionAdvice"]?.first)
        try await fixture.approve(id)
        // Another point, and the user who asks about themselves.
        for caller in [second, fixture.ana] { #expect(try await ask(caller, id).actions.isEmpty) }
        let atGateway = SentRequest(
            session: PresentedSession(fixture.ana), method: "GET", resource: try CanonicalResource(Point.resource),
            transactionID: id)
        #expect(await point.settle(atGateway) == .denied(.transaction(.maker)))
        #expect(try await fixture.audited(.transactionTake, id) == Array(repeating: "refused maker", count: 3))
        #expect(try await ask(fixture.gateway, id).actions == ["GET": true])
    }

    @Test("Two requests that look alike share a transaction over REST too, unless their keys tell them apart")
    func keys() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement([try Point.policy("withdraw", ["GET": true], Point.confirm)])
        func ask(_ key: String?) async throws -> String {
            let request = EvaluateRequest(
                realm: "/alpha", policySet: "bank", resources: [Point.resource],
                subject: .session(PresentedSession(fixture.ana)),
                environment: key.map { ["idempotencyKey": [$0]] } ?? [:])
            let answer = try await point.settle(request, caller: fixture.gateway).first
            return try #require(answer?.advices["TransactionConditionAdvice"]?.first)
        }
        let (plain, first, second) = (try await ask(nil), try await ask("k-1"), try await ask("k-2"))
        #expect(Set([plain, first, second]).count == 3)
        #expect(try await ask("k-1") == first)
        #expect(try await ask(nil) == plain)
    }

    @Test("What the gateway has asked for cannot be spent over REST")
    func gatewaysOwn() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement()
        let id = try await GatewayDecisionTests.approved(point, fixture)
        let request = EvaluateRequest(
            realm: "/alpha", policySet: "bank", resources: ["https://api.bank.example/transfers"],
            subject: .session(PresentedSession(fixture.ana, grantID: "g1")),
            environment: [
                "TxId": [id], "method": ["POST"], "contentType": ["application/json"],
                "body": [Base64URL.encode(TransactionFixture.body)],
            ])
        // An enforcement point, and the user who asks about themselves.
        for caller in [fixture.gateway, fixture.ana] {
            #expect(try await point.settle(request, caller: caller).first?.actions == [:])
        }
        #expect(try await fixture.audited(.transactionTake, id) == ["refused maker", "refused maker"])
        #expect(try await fixture.state(id) == "COMPLETED")
    }

    @Test("Of one request's resources the first spends the transaction, and no other tries to")
    func batch() async throws {
        let fixture = try await TransactionFixture()
        let policies = [try Point.policy("withdraw", ["GET": true], Point.confirm)]
        let id = try #require(
            try await Point.ask(fixture, policies).first?.advices["TransactionConditionAdvice"]?.first)
        try await fixture.approve(id)
        let decisions = try await Point.ask(
            fixture, policies, ["TxId": [id]], resources: [Point.resource, Point.resource, Point.resource])
        #expect(decisions.map { $0.actions.isEmpty } == [false, true, true])
        #expect(try await fixture.audited(.transactionTake, id) == ["success -"])
    }

    @Test("A hundred resources are decided on in one request")
    func hundred() async throws {
        let fixture = try await TransactionFixture()
        let resources = Array(repeating: Point.resource, count: 100)
        let decisions = try await Point.ask(fixture, [try Point.policy()], resources: resources)
        #expect(decisions.count == 100 && decisions.allSatisfy { $0.actions == ["GET": true] })
    }

    @Test("A session of another realm makes no transaction at the gateway and is not what a level is read from")
    func foreignRealm() async throws {
        let fixture = try await TransactionFixture()
        let begun = try await Sessions(fixture.context).begin(
            userID: fixture.ana.user.id, realm: "/beta", authLevel: 9, limits: SessionLimits())
        let foreign = try #require(try await Sessions(fixture.context).live(token: begun.token))
        let point = try fixture.settlement([
            try TransactionFixture.policy(),
            try TransactionFixture.policy(
                "read", actions: ["GET": true], condition: .authLevel(5), bind: [], display: []),
        ])
        for method in ["POST", "GET"] {
            var request = try GatewayDecisionTests.request(fixture, method: method)
            request.session = PresentedSession(foreign, grantID: "g1")
            #expect(await point.settle(request) == .denied(.noPolicy))
        }
        #expect(try await fixture.database.run(.read("SELECT id FROM transactions")).isEmpty)
    }

    @Test("Who is only remembered is asked neither for an approval nor for a stronger sign-in")
    func remembered() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement([
            try TransactionFixture.policy(),
            try TransactionFixture.policy(
                "read", actions: ["GET": true], condition: .authLevel(9), bind: [], display: []),
        ])
        for kind in [SessionKind.implicit, .stateless] {
            for method in ["POST", "GET"] {
                var session = fixture.ana
                session.kind = kind
                var request = try GatewayDecisionTests.request(fixture, method: method)
                request.session = PresentedSession(session, grantID: "g1")
                #expect(await point.settle(request) == .denied(.tokenKind), "\(kind), \(method)")
            }
        }
        #expect(try await fixture.database.run(.read("SELECT id FROM transactions")).isEmpty)
    }

    @Test(
        "Where it is not known whether a transaction was taken, that is said, and nothing is granted",
        arguments: [(NodeDatabase.Fault.doneUnknown, AccessDenial.outcomeUnknown), (.undone, .unavailable)])
    func unknown(fault: NodeDatabase.Fault, denial: AccessDenial) async throws {
        let fixture = try await TransactionFixture()
        let id = try await GatewayDecisionTests.approved(try fixture.settlement(), fixture)
        let context = try TransactionFixture.context(
            NodeDatabase(fixture.database, [fault]), clock: fixture.clock)
        let point = AccessSettlement(
            context, decisions: try fixture.settlement().decisions, transactions: Transactions(context))
        let request = try GatewayDecisionTests.request(fixture, id: id)
        #expect(await point.settle(request) == .denied(denial))
        #expect(try await fixture.state(id) == (fault == .undone ? "COMPLETED" : "TAKEN"))
        guard case .alreadyTaken = await point.settle(request) else {
            #expect(fault == .undone, "what was taken stays taken")
            return
        }
        #expect(fault == .doneUnknown)
    }

    @Test("A value of two hundred characters is shown whole, and a longer one is refused", arguments: [200, 201])
    func longest(count: Int) async throws {
        let fixture = try await TransactionFixture()
        let name = String(repeating: "B", count: count)
        let decision = try await TransactionDisplayTests.decide(
            #"{"to":"\#(name)","amount":"1","currency":"EUR"}"#, in: fixture)
        if case .advised(_, let record) = decision {
            #expect(count == 200 && record?.display.last?.value == name)
        } else {
            #expect(count == 201)
        }
    }
}
