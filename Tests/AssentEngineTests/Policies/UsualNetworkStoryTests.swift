import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Usual networks, from the sign-in to the access")
struct UsualNetworkStoryTests {
    private static let home = "192.0.2.7"
    private static let besideHome = "192.0.2.250"
    private static let away = "198.51.100.1"

    /// Users who sign in from somewhere, and a policy that asks them unless they were there before.
    private struct World {
        let fixture: JourneyFixture

        init() async throws {
            fixture = try await JourneyFixture(more: [
                JourneyDefinition(
                    name: "Strong", entry: "credentials", nodes: JourneyFixture.byPassword.nodes, authLevel: 5),
                JourneyDefinition(
                    name: "StrongConfirm", entry: "otp", nodes: ["otp": JourneyFixture.otp],
                    transactionalOnly: true, authLevel: 5),
            ])
        }

        func send(
            _ answer: PageAnswer? = nil, type: String? = nil, value: String? = nil, session: Secret? = nil,
            from address: String?
        ) async throws -> AuthenticateReply {
            var request = AuthenticateRequest(
                realm: "/alpha", authIndexType: type, authIndexValue: value, sessionToken: session, answer: answer)
            request.clientIP = address.flatMap(IPAddress.init)
            return try await fixture.authentication.authenticate(request)
        }

        func begin(_ journey: String, session: Secret? = nil, from address: String?) async throws -> Page {
            try Page(await send(type: "service", value: journey, session: session, from: address))
        }

        func signIn(
            _ name: String = "ana", _ journey: String = "Password", session: Secret? = nil, from address: String?
        ) async throws -> Secret {
            let page = try await begin(journey, session: session, from: address)
            let answer = page.answered([.string(name), .string(JourneyFixture.password)])
            return try await send(answer, session: session, from: address).token()
        }

        /// Approves by a nod.
        func approve(_ id: String, session: Secret, from address: String?) async throws {
            let page = try Page(await send(type: "transaction", value: id, session: session, from: address))
            let token = try await send(page.answered([nil, nil, 0]), session: session, from: address).token()
            #expect(token == session)
        }

        func ask(
            _ session: Secret, from address: String?, days: Int64 = 30, level: Int = 0, id: String? = nil,
            journey: String = "Lenient", body: [UInt8] = TransactionFixture.body, in context: EngineContext? = nil
        ) async throws -> AccessDecision {
            let context = context ?? fixture.context
            let policy = try TransactionFixture.policy(
                condition: .or([
                    .usualNetwork(days: days, level: level),
                    .transaction(TransactionCondition(specifier: journey)),
                ]))
            let point = AccessSettlement(
                context, decisions: PolicyDecisionPoint(policySets: [try TransactionFixture.policySet([policy])]),
                transactions: Transactions(context))
            let live = try #require(try await fixture.sessions.live(token: session))
            var request = SentRequest(
                session: PresentedSession(live), method: "POST",
                resource: try CanonicalResource("https://api.bank.example/transfers"), mediaType: "application/json",
                body: body, transactionID: id)
            request.clientAddress = address.flatMap(IPAddress.init)
            return await point.settle(request)
        }

        /// The transaction that the user is asked to approve.
        func advised(
            _ session: Secret, from address: String, level: Int = 0, journey: String = "Lenient"
        ) async throws -> String {
            let decision = try await ask(session, from: address, level: level, journey: journey)
            guard case .advised(let advice, .some) = decision else {
                throw EngineError.internalFailure("an advice was expected")
            }
            return try #require(advice.transactionID)
        }

        /// Whether the access is granted without a question.
        func isUsual(
            _ session: Secret, from address: String?, days: Int64 = 30, level: Int = 0,
            in context: EngineContext? = nil
        ) async throws -> Bool {
            let decision = try await ask(session, from: address, days: days, level: level, in: context)
            if case .advised(_, .some) = decision { return false }
            #expect(decision == .granted(taken: nil))
            return decision == .granted(taken: nil)
        }

        /// A session of somebody of whom no network is remembered by it.
        func session(_ name: String = "ana") async throws -> Secret { try await signIn(name, from: nil) }

        var rows: Int64 { get async throws { try await fixture.count("usual_networks") } }
    }

    @Test("From a usual network nothing is asked; from another one the user approves, and then it is usual")
    func story() async throws {
        let world = try await World()
        let session = try await world.signIn(from: Self.home)
        #expect(try await world.ask(session, from: Self.home) == .granted(taken: nil))
        #expect(try await world.ask(session, from: Self.besideHome) == .granted(taken: nil))
        #expect(try await world.fixture.count("transactions") == 0)
        let id = try await world.advised(session, from: Self.away)
        #expect(try await !world.isUsual(session, from: Self.away))
        try await world.approve(id, session: session, from: Self.away)
        #expect(try await world.ask(session, from: Self.away) == .granted(taken: nil))
        #expect(try await world.ask(session, from: "198.51.100.254") == .granted(taken: nil))
        #expect(try await !world.isUsual(session, from: "198.51.101.1"))
    }

    @Test("What was approved happens once, although its network is usual by then", arguments: [away, "203.0.113.9"])
    func once(address: String) async throws {
        let world = try await World()
        let session = try await world.session()
        let id = try await world.advised(session, from: Self.away)
        try await world.approve(id, session: session, from: Self.away)
        // Nothing else happens in its name.
        let altered = Array(#"{"to":"Eve","amount":"200.00","currency":"EUR"}"#.utf8)
        #expect(
            try await world.ask(session, from: address, id: id, body: altered) == .denied(.transaction(.body)))
        guard case .granted(.some(let taken)) = try await world.ask(session, from: address, id: id) else {
            Issue.record("what was approved must be granted")
            return
        }
        #expect(taken.id == id)
        guard case .alreadyTaken(let record) = try await world.ask(session, from: address, id: id) else {
            Issue.record("the same again must be answered with what is known")
            return
        }
        #expect(record.id == id)
        #expect(
            try await world.ask(session, from: address, id: "unknown") == .denied(.transaction(.unknown)))
    }

    @Test("Over REST an id that is not needed is used, and one that does not help takes nothing away")
    func unneededOverREST() async throws {
        let world = try await World()
        let session = try await world.signIn(from: Self.home)
        let live = try #require(try await world.fixture.sessions.live(token: session))
        let gateway = try await TransactionFixture.signIn("gateway", roles: [.pep], world.fixture.context)
        let policy = try TransactionFixture.policy(
            condition: .or([
                .usualNetwork(days: 30, level: 0), .transaction(TransactionCondition(specifier: "Lenient")),
            ]), bind: [.query], display: [])
        let point = AccessSettlement(
            world.fixture.context,
            decisions: PolicyDecisionPoint(policySets: [try TransactionFixture.policySet([policy])]),
            transactions: world.fixture.transactions)
        func decide(_ address: String, _ id: String? = nil) async throws -> PolicyDecision {
            var environment = ["IP": [address]]
            environment["TxId"] = id.map { [$0] }
            let request = EvaluateRequest(
                realm: "/alpha", policySet: "bank", resources: ["https://api.bank.example/transfers"],
                subject: .session(PresentedSession(live)), environment: environment)
            return try #require(try await point.settle(request, caller: gateway).first)
        }
        let id = try #require(try await decide(Self.away).advices["TransactionConditionAdvice"]?.first)
        try await world.approve(id, session: session, from: Self.away)
        let first = try await decide(Self.away, id)
        #expect(first.actions == ["POST": true] && first.ttl == 0)
        #expect(try await world.fixture.state(id) == "TAKEN")
        for useless in [id, "unknown"] {
            let again = try await decide(Self.away, useless)
            #expect(again.actions == ["POST": true] && again.ttl > 0)
        }
    }

    @Test("IPv6 networks have 48 bits, and an IPv4 address is the same by both families")
    func families() async throws {
        let world = try await World()
        let session = try await world.signIn(from: "2001:db8:1::7")
        #expect(try await world.isUsual(session, from: "2001:db8:1:ffff::9"))
        #expect(try await !world.isUsual(session, from: "2001:db8:2::7"))
        _ = try await world.signIn(from: "::ffff:192.0.2.7")
        #expect(try await world.isUsual(session, from: Self.besideHome))
    }

    @Test("After the days it is asked again", arguments: [1, 90] as [Int64])
    func days(days: Int64) async throws {
        let world = try await World()
        _ = try await world.signIn(from: Self.home)
        world.fixture.clock.advance(by: Double(days * 86_400 - 1))
        let session = try await world.session()
        #expect(try await world.isUsual(session, from: Self.home, days: days))
        world.fixture.clock.advance(by: 1)
        #expect(try await !world.isUsual(session, from: Self.home, days: days))
    }

    @Test("A sign-in makes a network usual up to the level of its own journey")
    func levels() async throws {
        let world = try await World()
        let session = try await world.signIn("ana", "Strong", from: Self.home)
        for (level, isUsual) in [(0, true), (5, true), (6, false)] {
            #expect(try await world.isUsual(session, from: Self.home, level: level) == isUsual)
        }
        // A weaker one does not take away what the stronger one has shown.
        _ = try await world.signIn(from: Self.home)
        #expect(try await world.isUsual(session, from: Self.home, level: 5))
        #expect(try await world.rows == 2)
    }

    @Test("Who has taken a strong session away makes no network usual at its level, and by no proof none at all")
    func stolenSession() async throws {
        let world = try await World()
        let session = try await world.signIn("ana", "Strong", from: Self.home)
        let silent = try await world.send(type: "service", value: "Silent", session: session, from: Self.away).token()
        #expect(try await world.rows == 1)
        #expect(try await !world.isUsual(silent, from: Self.away))
        // The session is of level 5 also after a journey of level 0.
        let weak = try await world.signIn("ana", "Password", session: silent, from: Self.away)
        let live = try #require(try await world.fixture.sessions.live(token: weak))
        #expect(live.authLevel >= 5)
        #expect(try await world.isUsual(weak, from: Self.away))
        #expect(try await !world.isUsual(weak, from: Self.away, level: 1))
        // A nod in the approval proves nothing either.
        let id = try await world.advised(weak, from: Self.away, level: 1)
        try await world.approve(id, session: weak, from: Self.away)
        #expect(try await !world.isUsual(weak, from: Self.away, level: 1))
    }

    @Test("An approval that proves who it is has its journey's level")
    func strongApproval() async throws {
        let world = try await World()
        let session = try await world.session()
        let id = try await world.advised(session, from: Self.away, level: 5, journey: "StrongConfirm")
        let page = try Page(
            await world.send(type: "transaction", value: id, session: session, from: Self.away))
        let answer = page.answered([nil, nil, .string(try world.fixture.code())])
        _ = try await world.send(answer, session: session, from: Self.away).token()
        #expect(try await world.isUsual(session, from: Self.away, level: 5))
        #expect(try await !world.isUsual(session, from: Self.away, level: 6))
    }

    @Test("Another user's networks help nobody")
    func otherUser() async throws {
        let world = try await World()
        let ben = try await world.signIn("ben", from: Self.away)
        let ana = try await world.signIn(from: Self.home)
        #expect(try await world.isUsual(ben, from: Self.away))
        #expect(try await !world.isUsual(ana, from: Self.away))
        #expect(try await !world.isUsual(ben, from: Self.home))
    }

    @Test("Failures, declined approvals and answers that come again remember nothing")
    func refused() async throws {
        let world = try await World()
        let page = try await world.begin("Password", from: Self.away)
        await expectError(.loginFailed) {
            try await world.send(page.answered(["ana", "wrong"]), from: Self.away)
        }
        let second = try await world.begin("Password", from: nil)
        let answer = second.answered([.string("ana"), .string(JourneyFixture.password)])
        let session = try await world.send(answer, from: nil).token()
        #expect(try await world.send(answer, from: Self.away).token() == session)
        let id = try await world.fixture.transaction(session, journey: "Lenient")
        let asked = try Page(await world.send(type: "transaction", value: id, session: session, from: Self.away))
        await expectError(.declined) {
            try await world.send(asked.answered([nil, nil, 1]), session: session, from: Self.away)
        }
        #expect(try await world.rows == 0)
        #expect(try await !world.isUsual(session, from: Self.away))
    }

    @Test("Without an address nothing is remembered, and nothing is usual")
    func noAddress() async throws {
        let world = try await World()
        let session = try await world.session()
        #expect(try await world.rows == 0)
        #expect(try await !world.isUsual(session, from: nil))
        // The network of the last answer counts, where the journey succeeds.
        let page = try await world.begin("Password", from: Self.away)
        let answer = page.answered([.string("ana"), .string(JourneyFixture.password)])
        _ = try await world.send(answer, from: Self.home).token()
        #expect(try await world.isUsual(session, from: Self.home))
        #expect(try await !world.isUsual(session, from: Self.away))
    }

    @Test("A lock or another password forgets all networks")
    func epoch() async throws {
        let world = try await World()
        _ = try await world.signIn(from: Self.home)
        let ana = world.fixture.ana.id
        _ = try await world.fixture.database.run(
            SQLStatement("UPDATE users SET epoch = epoch + 1 WHERE id = \(ana)", expecting: .exactly(1)))
        let session = try await world.session()
        #expect(try await !world.isUsual(session, from: Self.home))
        _ = try await world.signIn(from: Self.home)
        #expect(try await world.isUsual(session, from: Self.home))
    }

    @Test("Rows are worth nothing under another master key, and moved to another user")
    func otherKey() async throws {
        let world = try await World()
        let session = try await world.signIn(from: Self.home)
        let ben = try await world.session("ben")
        let other = try TransactionFixture.context(world.fixture.database, clock: world.fixture.clock, seed: 2)
        #expect(try await !world.isUsual(session, from: Self.home, in: other))
        #expect(try await world.isUsual(session, from: Self.home))
        _ = try await world.fixture.database.run(
            SQLStatement("UPDATE usual_networks SET user_id = \(world.fixture.ben.id)", expecting: .exactly(1)))
        #expect(try await !world.isUsual(ben, from: Self.home))
    }

    @Test("An enforcement point's word on the address is believed, and the user's own is not")
    func rest() async throws {
        let world = try await World()
        let session = try await world.signIn(from: Self.home)
        let live = try #require(try await world.fixture.sessions.live(token: session))
        let gateway = try await TransactionFixture.signIn("gateway", roles: [.pep], world.fixture.context)
        let policy = try TransactionFixture.policy(
            condition: .usualNetwork(days: 30, level: 0), bind: [], display: [])
        let point = AccessSettlement(
            world.fixture.context,
            decisions: PolicyDecisionPoint(policySets: [try TransactionFixture.policySet([policy])]),
            transactions: world.fixture.transactions)
        func decide(_ caller: LiveSession, _ address: String) async throws -> PolicyDecision {
            let request = EvaluateRequest(
                realm: "/alpha", policySet: "bank", resources: ["https://api.bank.example/transfers"],
                subject: .session(PresentedSession(live)), environment: ["IP": [address]])
            return try #require(try await point.settle(request, caller: caller).first)
        }
        let now = world.fixture.clock.epochSeconds
        let usual = try await decide(gateway, Self.besideHome)
        #expect(usual.actions == ["POST": true])
        #expect(usual.ttl == (now + 30 * 86_400) * 1000)
        let unusual = try await decide(gateway, Self.away)
        #expect(unusual.actions.isEmpty)
        #expect(unusual.ttl == now * 1000)
        #expect(try await decide(live, Self.home).actions.isEmpty)
    }
}
