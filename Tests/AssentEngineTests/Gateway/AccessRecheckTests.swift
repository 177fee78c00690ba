import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Looking up the caller of a connection that stays open")
struct AccessRecheckTests {
    private static func access(_ fixture: TransactionFixture, _ policies: [Policy]) throws -> GatewayAccess {
        GatewayAccess(
            callers: Callers(
                sessions: Sessions(fixture.context), providers: [:], proofs: SenderProofs(fixture.context)),
            settlement: try fixture.settlement(policies), keys: ServerKeys(fixture.context))
    }

    private static func inquiry(_ method: String, isApproved: Bool = false) throws -> GatewayInquiry {
        var inquiry = GatewayInquiry(
            realm: "/alpha", policySet: "bank", method: method,
            resource: try CanonicalResource("https://api.bank.example/transfers"), credentials: PresentedCredentials(),
            accessToken: AccessTokenRequirement(scopes: [], audience: [], includesIssuer: true))
        inquiry.isApproved = isApproved
        return inquiry
    }

    private static func transactions(_ fixture: TransactionFixture) async throws -> Int64 {
        let rows = try await fixture.database.run(.read("SELECT count(*) AS n FROM transactions"))
        return try #require(rows.first).integer("n")
    }

    @Test("What a transaction has opened goes on while one would be asked for again, and none is made or taken")
    func approved() async throws {
        let fixture = try await TransactionFixture()
        let access = try Self.access(fixture, try GatewayDecisionTests.policies())
        let ana = Caller.session(fixture.ana, .field)
        let inquiry = try Self.inquiry("POST", isApproved: true)
        let (plain, read) = (try Self.inquiry("POST"), try Self.inquiry("GET"))
        let unheard = try Self.inquiry("PUT", isApproved: true)
        for _ in 1...3 { #expect(await access.isStillGranted(inquiry, to: ana, clientAddress: nil)) }
        #expect(try await Self.transactions(fixture) == 0)
        // Nobody had one for a method that no policy speaks of, and without one nothing is open.
        #expect(await !access.isStillGranted(unheard, to: ana, clientAddress: nil))
        #expect(await !access.isStillGranted(plain, to: ana, clientAddress: nil))
        #expect(await access.isStillGranted(read, to: ana, clientAddress: nil))
        #expect(await !access.isStillGranted(inquiry, to: .anonymous, clientAddress: nil))
        _ = try await Sessions(fixture.context).end(id: fixture.ana.id)
        #expect(await !access.isStillGranted(inquiry, to: ana, clientAddress: nil))
        #expect(await !access.isStillGranted(read, to: ana, clientAddress: nil))
        #expect(try await Self.transactions(fixture) == 0)
    }

    @Test("Who is let in without a transaction, where another one would be asked for one, stays as long as that is so")
    func unneeded() async throws {
        let fixture = try await TransactionFixture()
        let young = PolicyCondition.or([
            .sessionAge(minutes: 10), .transaction(TransactionCondition(specifier: "Confirm")),
        ])
        let access = try Self.access(fixture, [try TransactionFixture.policy(condition: young)])
        let ana = Caller.session(fixture.ana, .field)
        let inquiry = try Self.inquiry("POST")
        #expect(await access.isStillGranted(inquiry, to: ana, clientAddress: nil))
        fixture.clock.advance(by: 601)
        #expect(await !access.isStillGranted(inquiry, to: ana, clientAddress: nil))
        #expect(try await Self.transactions(fixture) == 0)
    }

    @Test("An access token is held against the route's requirement each time, not only found to be valid")
    func requirement() async throws {
        let fixture = try await ProviderFixture()
        let callers = Callers(
            sessions: Sessions(fixture.context), providers: ["/alpha": fixture.grants],
            proofs: SenderProofs(fixture.context))
        let access = GatewayAccess(
            callers: callers,
            settlement: AccessSettlement(
                fixture.context,
                decisions: PolicyDecisionPoint(
                    policySets: [try TransactionFixture.policySet(try GatewayDecisionTests.policies())]),
                transactions: Transactions(fixture.context)),
            keys: ServerKeys(fixture.context))
        let token = try await fixture.tokens(["scope": "openid accounts"]).accessToken
        let credentials = PresentedCredentials(accessToken: .token(token, .bearer))
        let caller = try await callers.caller(withToken: credentials, realm: "/alpha")
        func goesOn(
            _ scopes: [String], audience: [String] = ["https://api.bank.example"], isSenderConstrained: Bool = false
        ) async throws -> Bool {
            let inquiry = GatewayInquiry(
                realm: "/alpha", policySet: "bank", method: "GET",
                resource: try CanonicalResource("https://api.bank.example/transfers"), credentials: credentials,
                accessToken: AccessTokenRequirement(
                    scopes: scopes, audience: audience, includesIssuer: false,
                    isSenderConstrained: isSenderConstrained))
            return await access.isStillGranted(inquiry, to: caller, clientAddress: nil)
        }
        #expect(try await goesOn(["accounts"]))
        #expect(try await !goesOn(["accounts", "payments"]))
        #expect(try await !goesOn(["accounts"], audience: ["https://other.bank.example"]))
        #expect(try await !goesOn(["accounts"], isSenderConstrained: true))
        #expect(try await goesOn([]))
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        #expect(try await !goesOn([]))
    }

    @Test("A condition that no longer holds closes it, whatever was approved")
    func conditions() async throws {
        let fixture = try await TransactionFixture()
        let inside = PolicyCondition.and([
            .sessionAge(minutes: 10), .transaction(TransactionCondition(specifier: "Confirm")),
        ])
        let access = try Self.access(fixture, [try TransactionFixture.policy(condition: inside)])
        let ana = Caller.session(fixture.ana, .field)
        let inquiry = try Self.inquiry("POST", isApproved: true)
        #expect(await access.isStillGranted(inquiry, to: ana, clientAddress: nil))
        fixture.clock.advance(by: 601)
        #expect(await !access.isStillGranted(inquiry, to: ana, clientAddress: nil))
    }
}
