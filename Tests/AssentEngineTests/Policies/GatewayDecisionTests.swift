import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("The gateway's decisions")
struct GatewayDecisionTests {
    static func request(
        _ fixture: TransactionFixture, id: String? = nil, method: String = "POST", path: String = "/transfers"
    ) throws -> SentRequest {
        SentRequest(
            session: PresentedSession(fixture.ana, grantID: "g1"), method: method,
            resource: try CanonicalResource("https://api.bank.example" + path), mediaType: "application/json",
            body: TransactionFixture.body, transactionID: id)
    }

    static func policies() throws -> [Policy] {
        [
            try TransactionFixture.policy(),
            try TransactionFixture.policy("list", actions: ["GET": true], condition: nil, bind: [], display: []),
        ]
    }

    /// The advice of the standard request, approved.
    static func approved(_ point: AccessSettlement, _ fixture: TransactionFixture) async throws -> String {
        try await fixture.giveGrant("g1")
        guard case .advised(let advice, let record) = await point.settle(try request(fixture)),
            let id = advice.transactionID
        else { throw EngineError.internalFailure("an advice was expected") }
        #expect(record?.id == id)
        #expect(advice.entries.count == 1)
        try await fixture.approve(id)
        return id
    }

    @Test("Advice, approval, one access, and then what is known of it")
    func goldenPath() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement(try Self.policies())
        let id = try await Self.approved(point, fixture)
        guard case .granted(let taken) = await point.settle(try Self.request(fixture, id: id)) else {
            Issue.record("the approved request must pass")
            return
        }
        #expect(taken?.id == id)
        #expect(try await fixture.transactions.recordForwarding(id: id))
        try await fixture.transactions.recordOutcome(id: id, .answered(status: 201))
        guard case .alreadyTaken(let record) = await point.settle(try Self.request(fixture, id: id)) else {
            Issue.record("the same request again must be answered with what is known")
            return
        }
        #expect(record.outcome == .answered(status: 201))
    }

    /// A wildcard that lets everybody post below `/transfers` without an approval.
    private static func below(_ subject: PolicySubject = .authenticatedUsers) throws -> Policy {
        try TransactionFixture.policy(
            "below", resources: ["https://api.bank.example:443/transfers/*"], subject: subject, condition: nil,
            bind: [], display: [])
    }

    @Test("A slash at the path's end evades no approval that a wildcard beside it does not ask for")
    func lastSlash() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement([try TransactionFixture.policy(), try Self.below()])
        try await fixture.giveGrant("g1")
        for path in ["/transfers/", "/transfers//", "/TRANSFERS/", "/%74ransfers/"] {
            guard case .advised = await point.settle(try Self.request(fixture, path: path)) else {
                Issue.record("an advice was expected for \(path)")
                return
            }
        }
        guard case .advised(let advice, _) = await point.settle(try Self.request(fixture, path: "/transfers/")),
            let id = advice.transactionID
        else {
            Issue.record("an advice was expected")
            return
        }
        try await fixture.approve(id)
        // What was approved is the path with the slash.
        #expect(await point.settle(try Self.request(fixture, id: id)) == .denied(.transaction(.resource)))
        guard case .granted(let taken) = await point.settle(try Self.request(fixture, id: id, path: "/transfers/"))
        else {
            Issue.record("the approved request must pass")
            return
        }
        #expect(taken?.id == id)
        #expect(await point.settle(try Self.request(fixture, path: "/transfers/1")) == .granted(taken: nil))
        #expect(await point.settle(try Self.request(fixture, path: "/transfers/1/")) == .granted(taken: nil))
    }

    @Test("Where policies are about both spellings of a path, both must be granted; a slash alone grants nothing")
    func bothSpellings() async throws {
        let fixture = try await TransactionFixture()
        func decision(_ path: String, _ policies: Policy...) async throws -> AccessDecision {
            let point = try fixture.settlement(policies)
            return await point.settle(try Self.request(fixture, path: path))
        }
        let bens = try TransactionFixture.policy(
            "bens", subject: .identity(["id=ben,ou=user,o=alpha"]), condition: nil, bind: [], display: [])
        let open = try TransactionFixture.policy("open", condition: nil, bind: [], display: [])
        let denying = try TransactionFixture.policy(
            "denying", actions: ["POST": false], condition: nil, bind: [], display: [])
        #expect(try await decision("/transfers/", bens, try Self.below()) == .denied(.noPolicy))
        #expect(try await decision("/transfers/", denying, try Self.below()) == .denied(.notPermitted))
        #expect(try await decision("/transfers/", open, try Self.below()) == .granted(taken: nil))
        let foreign = try Self.below(.identity(["id=ben,ou=user,o=alpha"]))
        #expect(try await decision("/transfers/", open, foreign) == .denied(.noPolicy))
        #expect(try await decision("/transfers/", open) == .denied(.noPolicy))
        #expect(try await decision("/transfers", open, foreign) == .granted(taken: nil))
    }

    @Test("An id that is of no use is a refusal, never a second advice")
    func uselessIDs() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement(try Self.policies())
        let id = try await Self.approved(point, fixture)
        var altered: [(TransactionRefusal, SentRequest)] = []
        var request = try Self.request(fixture, id: id)
        request.body = Array(#"{"to":"Bob","amount":"900.00","currency":"EUR"}"#.utf8)
        altered.append((.body, request))
        request = try Self.request(fixture, id: id, path: "/transfers?a=1")
        altered.append((.query, request))
        request = try Self.request(fixture, id: id)
        request.session = PresentedSession(fixture.anaElsewhere, grantID: "g1")
        altered.append((.session, request))
        request.session = PresentedSession(fixture.ana, grantID: "g2")
        altered.append((.grant, request))
        request.session = PresentedSession(fixture.ben, grantID: "g1")
        altered.append((.subject, request))
        request = try Self.request(fixture, id: id)
        request.mediaType = "application/merge-patch+json"
        altered.append((.mediaType, request))
        for (reason, request) in altered {
            #expect(await point.settle(request) == .denied(.transaction(reason)))
        }
        #expect(
            try await fixture.audited(.transactionTake, id).sorted()
                == altered.map { "refused \($0.0.rawValue)" }.sorted())
        #expect(await point.settle(try Self.request(fixture, id: "nonsense")) == .denied(.transaction(.unknown)))
        #expect(try await fixture.database.run(.read("SELECT id FROM transactions")).count == 1)

        let changed = try fixture.settlement([
            try TransactionFixture.policy(display: [DisplayRule(label: "To", field: "to")])
        ])
        #expect(await changed.settle(try Self.request(fixture, id: id)) == .denied(.transaction(.policyRevision)))
        fixture.clock.advance(by: 181)
        #expect(await point.settle(try Self.request(fixture, id: id)) == .denied(.transaction(.expired)))
    }

    @Test("An access token that is revoked by itself while its request is read spends nothing; its grant's next may")
    func revokedToken() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement(try Self.policies())
        let id = try await Self.approved(point, fixture)
        _ = try await fixture.database.run(
            SQLStatement(
                """
                INSERT INTO revoked_access_tokens (id, grant_id, expires_at)
                VALUES ('t', 'g1', \(fixture.clock.epochSeconds + 3600))
                """))
        #expect(await point.settle(try Self.request(fixture, id: id)) == .denied(.transaction(.sessionEnded)))
        #expect(try await fixture.audited(.transactionTake, id) == ["refused sessionEnded"])
        #expect(try await fixture.state(id) == "COMPLETED")
        // The control: the same request by another token of the grant.
        var request = try Self.request(fixture, id: id)
        request.session = PresentedSession(fixture.ana, grantID: "g1", tokenID: "t2")
        guard case .granted(let taken) = await point.settle(request) else {
            Issue.record("a token that is valid must pass")
            return
        }
        #expect(taken?.id == id)
    }

    @Test("Of 50 parallel retries one passes")
    func parallel() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement(try Self.policies())
        let id = try await Self.approved(point, fixture)
        let request = try Self.request(fixture, id: id)
        let decisions = await withTaskGroup(of: AccessDecision.self) { group in
            for _ in 0..<50 { group.addTask { await point.settle(request) } }
            return await group.reduce(into: [AccessDecision]()) { $0.append($1) }
        }
        var allowed = 0
        for decision in decisions {
            switch decision {
            case .granted: allowed += 1
            case .alreadyTaken: continue
            default: Issue.record("\(decision)")
            }
        }
        #expect(allowed == 1)
    }

    @Test("Only the policies that speak of the method count")
    func methods() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement(try Self.policies())
        #expect(await point.settle(try Self.request(fixture, method: "GET")) == .granted(taken: nil))
        #expect(await point.settle(try Self.request(fixture, method: "DELETE")) == .denied(.noPolicy))
        #expect(await point.settle(try Self.request(fixture, method: "post")) == .denied(.noPolicy))
        #expect(await point.settle(try Self.request(fixture, method: "GET", path: "/other")) == .denied(.noPolicy))
        let resource = try CanonicalResource("https://api.bank.example/transfers")
        let set = try #require(point.decisions.policySet("bank", realm: "/alpha"))
        #expect(point.decisions.match(set, resource: resource, action: "POST").bindsBody)
        #expect(!point.decisions.match(set, resource: resource, action: "GET").bindsBody)
        #expect(point.decisions.policySet("shop", realm: "/alpha") == nil)
    }

    @Test("Without a live session there is no access and no transaction")
    func noSession() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement(try Self.policies())
        var request = try Self.request(fixture)
        request.session = nil
        #expect(await point.settle(request) == .denied(.noSession))
        request.method = "GET"
        #expect(await point.settle(request) == .denied(.noSession))

        _ = try await Sessions(fixture.context).end(id: fixture.ana.id)
        #expect(await point.settle(try Self.request(fixture)) == .denied(.noSession), "it ended after it was looked up")
        #expect(try await fixture.database.run(.read("SELECT id FROM transactions")).isEmpty)
    }

    @Test("A denial, a missing body, too many transactions and an unknown policy set are refusals of their own kind")
    func denials() async throws {
        let fixture = try await TransactionFixture(limits: TransactionLimits(creations: 1))
        let point = try fixture.settlement(try Self.policies())
        var request = try Self.request(fixture)
        request.body = nil
        #expect(await point.settle(request) == .denied(.unboundContent))
        _ = await point.settle(try Self.request(fixture))
        var second = try Self.request(fixture)
        second.idempotencyKey = "another"
        guard case .denied(.refused(let error)) = await point.settle(second) else {
            Issue.record("the second transaction was over the limit")
            return
        }
        #expect(error.code == .tooManyRequests)
        request.policySet = "shop"
        #expect(await point.settle(request) == .denied(.unavailable))
        let denying = try fixture.settlement(
            try Self.policies() + [
                try TransactionFixture.policy("never", actions: ["POST": false], condition: nil, bind: [], display: [])
            ])
        #expect(await denying.settle(try Self.request(fixture)) == .denied(.notPermitted))
    }

    @Test("A session that is too weak is advised to become stronger, before any transaction")
    func weakSession() async throws {
        let fixture = try await TransactionFixture()
        let condition = PolicyCondition.and([.transaction(TransactionCondition(specifier: "Confirm")), .authLevel(2)])
        let point = try fixture.settlement([try TransactionFixture.policy(condition: condition)])
        guard case .advised(let advice, let record) = await point.settle(try Self.request(fixture)) else {
            Issue.record("an advice was expected")
            return
        }
        #expect(record == nil)
        #expect(advice.entries == [Advice.Entry(.authLevel, ["2"])])
    }
}
