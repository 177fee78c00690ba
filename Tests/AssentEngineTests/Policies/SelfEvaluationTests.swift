import AssentCore
import AssentEngine
import AssentStore
import Testing

@Suite("Whether users may ask a policy set about themselves")
struct SelfEvaluationTests {
    private static func ask(
        _ fixture: TransactionFixture, _ caller: LiveSession, selfEvaluation: Bool
    ) async throws -> PolicyDecision? {
        let confirm = PolicyCondition.transaction(TransactionCondition(specifier: "Confirm"))
        let policy = try PolicyDecisionPointTests.policy("withdraw", ["GET": true], confirm)
        let set = PolicySet(name: "bank", realm: "/alpha", policies: [policy], selfEvaluation: selfEvaluation)
        let settlement = AccessSettlement(
            fixture.context, decisions: PolicyDecisionPoint(policySets: [set]), transactions: fixture.transactions)
        let request = EvaluateRequest(
            realm: "/alpha", policySet: "bank", resources: [PolicyDecisionPointTests.resource],
            subject: .session(PresentedSession(fixture.ana)))
        return try await settlement.settle(request, caller: caller).first
    }

    @Test("Users may ask about themselves where nothing is said, and only enforcement points where that is off")
    func selfEvaluation() async throws {
        let fixture = try await TransactionFixture()
        #expect(try await Self.ask(fixture, fixture.ana, selfEvaluation: true)?.advices.isEmpty == false)
        await #expect(throws: EngineError.forbidden) {
            try await Self.ask(fixture, fixture.ana, selfEvaluation: false)
        }
        let count = try await fixture.database.run(.read("SELECT id FROM transactions")).count
        #expect(count == 1)
        let admin = try await TransactionFixture.signIn("admin", roles: [.admin], fixture.context)
        for caller in [fixture.gateway, admin] {
            #expect(try await Self.ask(fixture, caller, selfEvaluation: false)?.advices.isEmpty == false)
        }
    }

    @Test("The file says so, and says nothing by default")
    func read() throws {
        for (text, value) in [("", true), (#","selfEvaluation":true"#, true), (#","selfEvaluation":false"#, false)] {
            let set = try PolicySet(JSONValue.parse(#"{"name":"bank","policies":[]\#(text)}"#), journeys: [])
            #expect(set.selfEvaluation == value)
        }
    }
}
