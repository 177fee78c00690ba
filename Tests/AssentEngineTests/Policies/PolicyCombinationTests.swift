import AssentCore
import AssentEngine
import AssentStore
import Testing

@Suite("How policies and conditions combine")
struct PolicyCombinationTests {
    typealias Point = PolicyDecisionPointTests

    static let high = PolicyCondition.authLevel(5)
    static let low = PolicyCondition.authLevel(0)
    static let service = PolicyCondition.authenticateToService("Strong")
    /// Nobody says where the client is.
    static let elsewhere =
        NetworkPrefix("10.0.0.0").map { PolicyCondition.address(.ipv4, [.prefix($0)]) } ?? .or([])
    static let silent = PolicyCondition.sessionProperty(["device": ["known"]], ignoreCase: true)

    /// For a session of level 0 without properties: actions, the advice's names, whether a transaction was made.
    static let table: [(PolicyCondition, Bool, [String])] = [
        (low, true, []),
        (high, false, ["AuthLevelConditionAdvice"]),
        (silent, false, []),
        (.and([low, low]), true, []),
        (.and([high, service]), false, ["AuthLevelConditionAdvice"]),
        (.and([service, high]), false, ["AuthenticateToServiceConditionAdvice"]),
        (.and([silent, high]), false, []),
        (.or([high, low]), true, []),
        (.or([high, service]), false, ["AuthenticateToServiceConditionAdvice"]),
        (.or([silent, high]), false, ["AuthLevelConditionAdvice"]),
        (.not(high), true, []),
        (.not(low), false, []),
        (.not(.not(high)), false, []),
        (Point.confirm, false, ["TransactionConditionAdvice"]),
        (.and([Point.confirm, high]), false, ["AuthLevelConditionAdvice"]),
        (.and([high, Point.confirm]), false, ["AuthLevelConditionAdvice"]),
        (.and([Point.confirm, silent]), false, []),
        (.and([Point.confirm, low]), false, ["TransactionConditionAdvice"]),
        (.or([Point.confirm, low]), true, []),
        (.or([Point.confirm, high]), false, ["TransactionConditionAdvice"]),
        (.and([.or([high, Point.confirm]), low]), false, ["TransactionConditionAdvice"]),
        (.not(Point.confirm), false, []),
        (elsewhere, false, []),
        (.not(elsewhere), false, []),
        (.not(.not(elsewhere)), false, []),
        (.not(.and([elsewhere, low])), false, []),
        (.not(.and([elsewhere, high])), true, []),
        (.not(.and([high, elsewhere])), true, []),
        (.not(.or([elsewhere, high])), false, []),
        (.and([elsewhere, high]), false, []),
        (.and([elsewhere, high, Point.confirm]), false, []),
        (.and([elsewhere, Point.confirm, high]), false, []),
        (.and([Point.confirm, elsewhere, high]), false, []),
        (.not(.and([elsewhere, high, elsewhere])), true, []),
        (.and([.not(elsewhere), Point.confirm]), false, []),
        (.or([elsewhere, low]), true, []),
        (.or([elsewhere, Point.confirm]), false, ["TransactionConditionAdvice"]),
        (.or([.not(elsewhere), high]), false, ["AuthLevelConditionAdvice"]),
        (.or([]), false, []),
    ]

    @Test("A condition grants, advises or stays silent as the table says", arguments: table)
    func conditions(condition: PolicyCondition, granted: Bool, advices: [String]) async throws {
        let fixture = try await TransactionFixture()
        let decisions = try await Point.ask(fixture, [try Point.policy("p", ["GET": true], condition)])
        let decision = try #require(decisions.first)
        #expect(decision.actions == (granted ? ["GET": true] : [:]))
        #expect(decision.advices.keys.sorted() == advices)
        let made = try await fixture.database.run(.read("SELECT id FROM transactions")).count
        #expect(made == (advices == ["TransactionConditionAdvice"] ? 1 : 0), "no transaction before all else holds")
    }

    @Test("What the session brings is believed")
    func sessions() async throws {
        let fixture = try await TransactionFixture()
        let strong = try await TransactionFixture.signIn(
            "carl", level: 5,
            properties: JSONObject([
                .init(name: "Service", value: "Login|Strong"), .init(name: "device", value: "KNOWN"),
            ]),
            fixture.context)
        let all = PolicyCondition.and([Self.high, Self.service, Self.silent])
        #expect(
            try await Point.ask(fixture, [try Point.policy("p", ["GET": true], all)], session: strong).first?.actions
                == ["GET": true])
        let exact = PolicyCondition.sessionProperty(["device": ["known"]], ignoreCase: false)
        #expect(
            try await Point.ask(fixture, [try Point.policy("p", ["GET": true], exact)], session: strong).first?.actions
                == [:])
        let more = PolicyCondition.authLevel(6)
        #expect(
            try await Point.ask(fixture, [try Point.policy("p", ["GET": true], more)], session: strong).first?.advices
                == ["AuthLevelConditionAdvice": ["6"]])
    }

    @Test("Policies on one resource: one denial denies, any advice empties the grants")
    func policies() async throws {
        let fixture = try await TransactionFixture()
        func actions(_ policies: Policy...) async throws -> [String: Bool] {
            try await Point.ask(fixture, policies).first?.actions ?? [:]
        }
        let get = try Point.policy("get", ["GET": true])
        let both = try Point.policy("both", ["GET": true, "POST": true])
        let noPost = try Point.policy("noPost", ["POST": false])
        #expect(try await actions(get, both) == ["GET": true, "POST": true])
        #expect(try await actions(both, noPost) == ["GET": true, "POST": false])
        #expect(try await actions(noPost, both) == ["GET": true, "POST": false])
        #expect(try await actions(both, try Point.policy("advised", ["GET": true], Self.high)) == [:])
        #expect(
            try await actions(both, try Point.policy("silent", ["GET": false], Self.silent)) == [
                "GET": true, "POST": true,
            ])
        #expect(
            try await actions(both, try Point.policy("nobody", ["GET": false], subject: .none)) == [
                "GET": true, "POST": true,
            ])
    }

    @Test("A transaction is not made where another policy advises, denies all, or asks for a second transaction")
    func pointlessTransactions() async throws {
        let fixture = try await TransactionFixture()
        let confirm = try Point.policy("confirm", ["GET": true], Point.confirm)
        let advised = try await Point.ask(fixture, [confirm, try Point.policy("level", ["GET": true], Self.high)])
        #expect(advised.first?.advices == ["AuthLevelConditionAdvice": ["5"]])
        let denied = try await Point.ask(fixture, [confirm, try Point.policy("deny", ["GET": false])])
        #expect(denied.first?.actions == ["GET": false] && denied.first?.advices == [:])
        let second = try Point.policy("second", ["GET": true], .transaction(TransactionCondition(specifier: "Other")))
        let several = try await Point.ask(fixture, [confirm, second])
        #expect(several.first?.actions == [:] && several.first?.advices == [:])
        #expect(try await fixture.database.run(.read("SELECT id FROM transactions")).isEmpty)
    }

    @Test("Attributes go with a grant, from the user and fixed ones")
    func attributes() async throws {
        let fixture = try await TransactionFixture()
        let policy = Policy(
            name: "p", resources: [try ResourcePattern("*://*:*/*?*")], actionValues: ["GET": true],
            subject: .authenticatedUsers,
            attributes: [.user(name: "mail"), .user(name: "missing"), .fixed(name: "tier", values: ["gold"])])
        let decision = try #require(try await Point.ask(fixture, [policy]).first)
        #expect(decision.attributes == ["mail": ["ana@bank.example"], "tier": ["gold"]])
        #expect(decision.ttl == .max)
        #expect(decision.ttl == 9_223_372_036_854_775_807)
    }

    @Test("An address counts when an enforcement point tells it, and not when users tell their own")
    func addresses() async throws {
        let fixture = try await TransactionFixture()
        let range = PolicyCondition.address(.ipv4, [.prefix(try #require(NetworkPrefix("10.0.0.0/24")))])
        let policy = try Point.policy("p", ["GET": true], range)
        func granted(_ address: String, caller: LiveSession) async throws -> Bool {
            try await fixture.settlement([policy]).settle(
                EvaluateRequest(
                    realm: "/alpha", policySet: "bank", resources: [Point.resource],
                    subject: .session(PresentedSession(fixture.ana)), environment: ["IP": [address]]), caller: caller
            ).first?.actions["GET"] == true
        }
        #expect(try await granted("10.0.0.7", caller: fixture.gateway))
        #expect(try await !granted("10.0.1.0", caller: fixture.gateway))
        #expect(try await !granted("010.0.0.7", caller: fixture.gateway))
        #expect(try await !granted("10.0.0.7", caller: fixture.ana))
    }

    @Test("An inactive policy says nothing, and a session of another realm is nobody's")
    func inactiveAndForeign() async throws {
        let fixture = try await TransactionFixture()
        let policy = try Point.policy("p", ["GET": true])
        let inactive = Policy(
            name: "off", isActive: false, resources: policy.resources, actionValues: ["GET": false],
            subject: .authenticatedUsers)
        #expect(try await Point.ask(fixture, [policy, inactive]).first?.actions == ["GET": true])

        let begun = try await Sessions(fixture.context).begin(
            userID: fixture.ana.user.id, realm: "/beta", limits: SessionLimits())
        let foreign = try #require(try await Sessions(fixture.context).live(token: begun.token))
        #expect(try await Point.ask(fixture, [policy], session: foreign).first?.actions == [:])
        let confirm = try Point.policy("p", ["GET": true], subject: .not(.none), Point.confirm)
        #expect(try await Point.ask(fixture, [confirm], session: foreign).first?.advices == [:])
    }

    @Test("The opposite of a subject is somebody else who has signed in, never nobody")
    func opposites() async throws {
        let fixture = try await TransactionFixture()
        let ana = fixture.ana
        for subject: PolicySubject in [
            .not(.none), .not(.identity(["id=eve,ou=user,o=alpha"])), .not(.not(.authenticatedUsers)),
            .or([.none, .not(.none)]), .and([.not(.none)]),
        ] {
            #expect(subject.matches(ana.user))
            #expect(!subject.matches(nil))
        }
        #expect(!PolicySubject.not(.authenticatedUsers).matches(nil))
    }
}
