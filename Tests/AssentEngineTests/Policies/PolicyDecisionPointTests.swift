import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Policy decisions over REST")
struct PolicyDecisionPointTests {
    static let resource = "https://bank.example.com:443/withdraw?amount=100.00"

    static func set(_ policies: Policy...) -> [Policy] { policies }

    static func policy(
        _ name: String = "one", _ actions: [String: Bool] = ["GET": true], subject: PolicySubject = .authenticatedUsers,
        _ condition: PolicyCondition? = nil
    ) throws -> Policy {
        try TransactionFixture.policy(
            name, resources: ["https://bank.example.com:443/withdraw?*"], actions: actions, subject: subject,
            condition: condition, bind: condition?.transactions.isEmpty == false ? [.query] : [], display: [])
    }

    static let confirm = PolicyCondition.transaction(TransactionCondition(specifier: "Confirm"))

    static func ask(
        _ fixture: TransactionFixture, _ policies: [Policy], session: LiveSession? = nil,
        _ environment: [String: [String]] = [:],
        resources: [String] = [resource]
    ) async throws -> [PolicyDecision] {
        try await fixture.settlement(policies).settle(
            EvaluateRequest(
                realm: "/alpha", policySet: "bank", resources: resources,
                subject: .session(PresentedSession(session ?? fixture.ana)), environment: environment),
            caller: fixture.gateway)
    }

    @Test("Advice, approval, one grant, and then a new advice")
    func goldenPath() async throws {
        let fixture = try await TransactionFixture()
        let policies = [try Self.policy("withdraw", ["GET": true, "POST": true], Self.confirm)]
        let advised = try #require(try await Self.ask(fixture, policies).first)
        let id = try #require(advised.advices["TransactionConditionAdvice"]?.first)
        #expect(
            advised
                == PolicyDecision(
                    resource: Self.resource, advices: ["TransactionConditionAdvice": [id]], ttl: 0,
                    reasons: advised.reasons))
        #expect(id.count == 36 && id.allSatisfy { $0.isHexDigit || $0 == "-" })

        try await fixture.approve(id)
        let granted = try #require(try await Self.ask(fixture, policies, ["TxId": [id]]).first)
        #expect(
            granted
                == PolicyDecision(
                    resource: Self.resource, actions: ["GET": true, "POST": true], ttl: 0, reasons: granted.reasons))

        let again = try #require(try await Self.ask(fixture, policies, ["TxId": [id]]).first)
        #expect(again.actions.isEmpty)
        #expect(again.advices["TransactionConditionAdvice"]?.count == 1)
        #expect(again.advices["TransactionConditionAdvice"] != [id])
        #expect(again.reasons.contains("the transaction was taken before"))
    }

    @Test(
        "An id that is of no use leads to a new advice, never to an error",
        arguments: ["unknown", "created", "expired", "query", "session"])
    func uselessID(why: String) async throws {
        let fixture = try await TransactionFixture()
        let policies = [try Self.policy("withdraw", ["GET": true], Self.confirm)]
        let id = try #require(try await Self.ask(fixture, policies).first?.advices["TransactionConditionAdvice"]?.first)
        if why != "created" { try await fixture.approve(id) }
        if why == "expired" { fixture.clock.advance(by: 181) }
        let decisions = try await Self.ask(
            fixture, policies, session: why == "session" ? fixture.anaElsewhere : fixture.ana,
            ["TxId": [why == "unknown" ? "nonsense" : id]],
            resources: [why == "query" ? "https://bank.example.com:443/withdraw?amount=900.00" : Self.resource])
        let new = try #require(decisions.first?.advices["TransactionConditionAdvice"])
        // Nobody has looked at the one that was made a moment ago: it still serves.
        #expect(new.count == 1 && (new == [id]) == (why == "created"))
        #expect(decisions.first?.actions.isEmpty == true)
        let reason = why == "created" ? "state" : why
        if why != "unknown" { #expect(try await fixture.audited(.transactionTake, id) == ["refused \(reason)"]) }
    }

    @Test("Without an action a last slash is compared, as AM does")
    func lastSlash() async throws {
        let fixture = try await TransactionFixture()
        let below = try TransactionFixture.policy(
            "below", resources: ["https://api.bank.example:443/transfers/*"], condition: nil, bind: [], display: [])
        let decisions = try await Self.ask(
            fixture, [try TransactionFixture.policy(bind: [], display: []), below],
            resources: ["https://api.bank.example/transfers/", "https://api.bank.example/transfers"])
        #expect(decisions.map(\.actions) == [["POST": true], [:]])
        #expect(decisions.map(\.advices.count) == [0, 1])
    }

    @Test("Of several resources one is granted by one id")
    func batch() async throws {
        let fixture = try await TransactionFixture()
        let policies = [try Self.policy("withdraw", ["GET": true], Self.confirm)]
        let id = try #require(try await Self.ask(fixture, policies).first?.advices["TransactionConditionAdvice"]?.first)
        try await fixture.approve(id)
        let decisions = try await Self.ask(
            fixture, policies, ["TxId": [id]], resources: [Self.resource, Self.resource, "shop://orders/1", "x"])
        #expect(decisions.map { $0.actions["GET"] == true } == [true, false, false, false])
        #expect(decisions.map(\.resource) == [Self.resource, Self.resource, "shop://orders/1", "x"])
        #expect(decisions.map(\.advices.count) == [0, 1, 0, 0])
    }

    @Test("A policy that binds the body gives no transaction to who does not tell it, and one to who does")
    func boundContent() async throws {
        let fixture = try await TransactionFixture()
        let resources = ["https://api.bank.example/transfers"]
        let blind = try await Self.ask(fixture, [try TransactionFixture.policy()], resources: resources)
        #expect(blind.first?.advices.isEmpty == true && blind.first?.actions.isEmpty == true)
        #expect(blind.first?.reasons.isEmpty == false)

        var environment = [
            "method": ["POST"], "contentType": ["application/json"],
            "body": [Base64URL.encode(TransactionFixture.body)],
        ]
        let advised = try await Self.ask(fixture, [try TransactionFixture.policy()], environment, resources: resources)
        let id = try #require(advised.first?.advices["TransactionConditionAdvice"]?.first)
        #expect(
            try await fixture.transactions.outcome(id: id, session: fixture.ana)?.display.first?.value == "200.00 EUR")
        try await fixture.approve(id)
        environment["TxId"] = [id]
        let granted = try await Self.ask(fixture, [try TransactionFixture.policy()], environment, resources: resources)
        #expect(granted.first?.actions == ["POST": true])
    }

    @Test("What cannot be shown is an error, too many transactions only a silent denial, and neither undoes a grant")
    func refusals() async throws {
        let fixture = try await TransactionFixture(limits: TransactionLimits(creations: 1))
        let shown = ["https://api.bank.example/transfers"]
        let environment = [
            "method": ["POST"], "contentType": ["application/json"], "body": [Base64URL.encode(Array("{}".utf8))],
        ]
        let policies = [try TransactionFixture.policy(), try Self.policy("withdraw", ["GET": true], Self.confirm)]
        let error = await #expect(throws: EngineError.self) {
            try await Self.ask(fixture, policies, environment, resources: shown)
        }
        #expect(error?.code == .invalidRequest)

        let id = try #require(try await Self.ask(fixture, policies).first?.advices["TransactionConditionAdvice"]?.first)
        let limited = try await Self.ask(
            fixture, policies, resources: ["https://bank.example.com:443/withdraw?amount=900.00"])
        #expect(limited.first?.actions == [:] && limited.first?.advices == [:])
        try await fixture.approve(id)
        let both = try await Self.ask(
            fixture, policies, environment.merging(["TxId": [id]]) { $1 }, resources: [Self.resource] + shown)
        #expect(both.map(\.actions) == [["GET": true], [:]])
    }

    @Test("Neither claims nor nobody get a transaction")
    func noSession() async throws {
        let fixture = try await TransactionFixture()
        let everybody = PolicySubject.not(.none)
        let point = try fixture.settlement([try Self.policy("p", ["GET": true], subject: everybody, Self.confirm)])
        for subject in [DecisionSubject.anonymous, .claims(JSONObject([.init(name: "sub", value: "ana")]))] {
            let decisions = try await point.settle(
                EvaluateRequest(realm: "/alpha", policySet: "bank", resources: [Self.resource], subject: subject),
                caller: fixture.gateway)
            #expect(decisions.first?.actions.isEmpty == true && decisions.first?.advices.isEmpty == true)
        }
        #expect(try await fixture.database.run(.read("SELECT id FROM transactions")).isEmpty)
    }

    @Test("About others may ask who has the role for it")
    func callers() async throws {
        let fixture = try await TransactionFixture()
        let admin = try await TransactionFixture.signIn("admin", roles: [.admin], fixture.context)
        let auditor = try await TransactionFixture.signIn("auditor", roles: [.auditor], fixture.context)
        let point = try fixture.settlement([try Self.policy()])
        let about = DecisionSubject.session(PresentedSession(fixture.ana))
        let denied = EngineError.forbidden
        for caller in [fixture.ana, fixture.gateway, admin] {
            try point.authorize(caller, toAskAbout: about, realm: "/alpha")
        }
        for caller in [fixture.ben, fixture.anaElsewhere, auditor] {
            #expect(throws: denied) { try point.authorize(caller, toAskAbout: about, realm: "/alpha") }
            #expect(throws: denied) { try point.authorize(caller, toAskAbout: .anonymous, realm: "/alpha") }
        }
        let request = EvaluateRequest(realm: "/alpha", policySet: "bank", resources: [Self.resource], subject: about)
        await #expect(throws: denied) { try await point.settle(request, caller: fixture.ben) }
        #expect(try await point.settle(request, caller: fixture.ana).first?.actions == ["GET": true])
    }

    @Test("Requests that AM refuses are refused in its words")
    func errors() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement([try Self.policy()])
        func ask(set: String = "bank", realm: String = "/alpha", _ resources: [String]) async throws {
            _ = try await point.settle(
                EvaluateRequest(
                    realm: realm, policySet: set, resources: resources,
                    subject: .session(PresentedSession(fixture.gateway))),
                caller: fixture.gateway)
        }
        await #expect(throws: EngineError(.invalidResources)) { try await ask([]) }
        await #expect(throws: EngineError(.invalidResources)) {
            try await ask(Array(repeating: "x", count: 101))
        }
        await #expect(throws: EngineError(.unknownPolicySet)) {
            try await ask(set: "shop", ["x"])
        }
        await #expect(throws: EngineError.forbidden) { try await ask(realm: "/beta", ["x"]) }
    }
}
