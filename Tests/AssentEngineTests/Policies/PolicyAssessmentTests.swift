import AssentCore
import Testing

@testable import AssentEngine

/// Without a database: an assessment is a value of its question alone.
@Suite("What the policies say before anything is spent")
struct PolicyAssessmentTests {
    private static let user = User(
        id: "u1", realm: "/alpha", username: "ana", isActive: true, roles: [], attributes: ["mail": "ana@bank.example"],
        epoch: 0)

    private static func session(level: Int = 0) -> LiveSession {
        LiveSession(
            id: "hash", auditID: "audit-1", user: user, realm: "/alpha", authLevel: level, createdAt: 0,
            latestAccess: 0, maxIdle: 1800, expiresAt: 7200, properties: JSONObject())
    }

    private static func assess(
        _ policies: [Policy], facts: PolicyFacts, action: String? = "POST", path: String = "/transfers"
    ) throws -> PolicyAssessment {
        let set = PolicySet(name: "bank", realm: "/alpha", policies: policies)
        let point = PolicyDecisionPoint(policySets: [set])
        let found = try #require(point.policySet("bank", realm: "/alpha"))
        return point.assess(
            point.match(found, resource: try CanonicalResource("https://api.bank.example" + path), action: action),
            facts: facts)
    }

    @Test("A pending transaction is granted on its condition, and nothing is spent for asking again")
    func pending() throws {
        let policies = [try TransactionFixture.policy()]
        for _ in 0..<3 {
            let assessment = try Self.assess(policies, facts: PolicyFacts(session: Self.session()))
            #expect(try assessment.decision == .granted(taken: nil))
            #expect(assessment.pending?.policy.name == "transfers")
        }
    }

    @Test("Two pending transactions are a denial, and a weak session is advised before any transaction")
    func precedence() throws {
        let facts = PolicyFacts(session: Self.session())
        let two = try Self.assess(
            [try TransactionFixture.policy(), try TransactionFixture.policy("second")], facts: facts)
        #expect(try two.decision == .denied(.severalTransactions))
        let weak = try Self.assess(
            [try TransactionFixture.policy(), try TransactionFixture.policy("strong", condition: .authLevel(2))],
            facts: facts)
        #expect(try weak.decision == .advised(Advice([.init(.authLevel, ["2"])]), transaction: nil))
    }

    @Test("Nobody is granted anything, and policies of another method or resource say nothing")
    func nobody() throws {
        let policies = [try TransactionFixture.policy()]
        #expect(try Self.assess(policies, facts: PolicyFacts(session: nil)).decision == .denied(.noPolicy))
        let facts = PolicyFacts(session: Self.session())
        #expect(try Self.assess(policies, facts: facts, action: "GET").decision == .denied(.noPolicy))
        #expect(try Self.assess(policies, facts: facts, path: "/other").decision == .denied(.noPolicy))
    }

    @Test("A user without a session is granted what asks for neither session, level nor transaction")
    func withoutSession() throws {
        let facts = PolicyFacts(user: Self.user, session: nil)
        let open = try TransactionFixture.policy("open", condition: nil, bind: [], display: [])
        #expect(try Self.assess([open], facts: facts).decision == .granted(taken: nil))
        #expect(try Self.assess([try TransactionFixture.policy()], facts: facts).decision == .denied(.noPolicy))
        let level = try TransactionFixture.policy("level", condition: .authLevel(0), bind: [], display: [])
        #expect(try Self.assess([level], facts: facts).decision == .denied(.noPolicy))
    }
}
