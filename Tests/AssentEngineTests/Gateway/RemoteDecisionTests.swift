import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("What a gateway elsewhere is told of a request")
struct RemoteDecisionTests {
    @Test("A group asks only about its policy sets, and speaks only for its origins")
    func groups() throws {
        let group = try RemoteFixture.group()
        try group.check(policySet: "bank", urls: [RemoteFixture.transfers, "https://API.bank.example:443/x"])
        #expect(throws: EnforcementGroup.Fault.policySet) { try group.check(policySet: "other", urls: []) }
        for url in [
            "https://api.bank.example:8443/transfers", "http://api.bank.example/transfers", "https://bank.example/",
            "https://api.bank.example.evil.example/", "https://api.bank.example@evil.example/", "", "api.bank.example",
        ] {
            #expect(throws: EnforcementGroup.Fault.origin, "\(url)") {
                try group.check(policySet: "bank", urls: [RemoteFixture.transfers, url])
            }
        }
    }

    @Test("A body that a policy binds is asked for: all of it to make a transaction, its digest to take one")
    func needsBody() async throws {
        let fixture = try await RemoteFixture()
        var sent = RemoteFixture.Sent()
        #expect(try await fixture.decide(sent).word == "needs whole body")
        sent.content = .digest(SHA2.sha256(RemoteFixture.body))
        #expect(try await fixture.decide(sent).word == "needs whole body")
        sent.transaction = "t"
        #expect(try await fixture.decide(sent).word == "denied: transaction(AssentEngine.TransactionRefusal.unknown)")
        sent.content = .unread
        #expect(try await fixture.decide(sent).word == "needs digest")
        // Nothing binds the body of what no policy is about.
        sent.url = RemoteFixture.origin + "/else"
        #expect(try await fixture.decide(sent).word == "denied: noPolicy")
        // Nobody is asked for a body who has no credentials.
        sent.url = RemoteFixture.transfers
        #expect(try await fixture.decide(sent) { $0.asNobody() }.word == "denied: noSession")
    }

    @Test("Without a body that was read whole nothing is made, even where the question reaches the policies")
    func digestMakesNothing() async throws {
        let fixture = try await RemoteFixture()
        let session = fixture.provider.session
        let settlement = AccessSettlement(
            fixture.provider.context,
            decisions: PolicyDecisionPoint(policySets: [try TransactionFixture.policySet()]),
            transactions: fixture.transactions)
        let matched = settlement.decisions.match(
            try TransactionFixture.policySet(), resource: try CanonicalResource(RemoteFixture.transfers), action: "POST"
        )
        var request = GatewayRequest(
            GatewayAdmission(caller: .session(session, .field), method: "POST", matched: matched),
            mediaType: "application/json")
        request.bodyDigest = SHA2.sha256(RemoteFixture.body)
        #expect(await settlement.settle(request) == .denied(.unboundContent))
        request.bodyDigest = nil
        request.body = RemoteFixture.body
        var isAdvised = false
        if case .advised = await settlement.settle(request) { isAdvised = true }
        #expect(isAdvised)
    }

    @Test("A session that has ended is seen by the next question")
    func endedSession() async throws {
        let fixture = try await RemoteFixture([try Self.reading()])
        var sent = RemoteFixture.Sent()
        sent.method = "GET"
        let before = try await fixture.decide(sent)
        #expect(before.word == "granted")
        #expect(before.caller?.caller.user?.username == "ana")
        #expect(before.caller?.claims(["email", "phone_number"]) == ["email": "ana@example.org"])
        _ = try await Sessions(fixture.provider.context).end(id: fixture.provider.session.id)
        #expect(try await fixture.decide(sent).word == "denied: noSession")
    }

    @Test("The session's cookie is for pages that may use it; a field is not asked where it comes from")
    func cookies() async throws {
        let fixture = try await RemoteFixture([try Self.reading()])
        var sent = RemoteFixture.Sent()
        sent.method = "GET"
        #expect(try await fixture.decide(sent) { $0.asCookie(mayUse: false) }.word == "refused cookie")
        #expect(try await fixture.decide(sent) { $0.asCookie(mayUse: true) }.word == "granted")
        // What is not a session is nobody's, wherever it comes from.
        sent.session = Secret("nobody")
        #expect(try await fixture.decide(sent) { $0.asCookie(mayUse: false) }.word == "denied: noSession")
    }

    @Test("Credentials of a kind that the route does not take are refused by their kind")
    func kinds() async throws {
        let fixture = try await RemoteFixture([try Self.reading()])
        var sent = RemoteFixture.Sent()
        sent.method = "GET"
        sent.kinds = [.client]
        #expect(try await fixture.decide(sent).word == "denied: tokenKind")
        #expect(try await fixture.decide(sent) { $0.isRecheck = true }.word == "denied: noSession")
    }

    @Test("The address of a client is believed of groups that say so")
    func address() async throws {
        let inside = PolicyCondition.address(.ipv4, [.prefix(try #require(NetworkPrefix("192.0.2.0/24")))])
        let fixture = try await RemoteFixture([try Self.reading(inside)])
        var sent = RemoteFixture.Sent()
        sent.method = "GET"
        for (believes, address, word) in [
            (true, "192.0.2.7", "granted"), (true, "198.51.100.1", "denied: noPolicy"),
            (false, "192.0.2.7", "denied: noPolicy"),
        ] {
            let inquiry = try fixture.inquiry(sent)
            var asked = RemoteInquiry(
                inquiry.request, group: try RemoteFixture.group(believesAddress: believes), attempt: inquiry.attempt)
            asked.clientAddress = IPAddress(address)
            #expect(try await fixture.access.decide(asked).word == word, "\(believes), \(address)")
        }
    }

    @Test(
        "A decision may be kept for a minute, not beyond the session or token, and not at all where a proof was spent")
    func keeping() async throws {
        let fixture = try await RemoteFixture([try Self.reading()])
        var sent = RemoteFixture.Sent()
        sent.method = "GET"
        #expect(try await fixture.decide(sent).caller?.keepSeconds == RemoteAccess.longestKeep)
        let begun = try await Sessions(fixture.provider.context).begin(
            userID: fixture.provider.user.id, realm: "/alpha", limits: SessionLimits(maxSession: 25, maxIdle: 600))
        sent.session = begun.token
        #expect(try await fixture.decide(sent).caller?.keepSeconds == 25)
        sent.session = nil
        sent.proof = PresentedProof(fields: ["x"], method: "GET", url: RemoteFixture.transfers, server: .gateway)
        let proved = try await fixture.decide(sent)
        #expect(proved.word == "granted" && proved.caller?.keepSeconds == 0)
    }

    @Test("A decision is kept no longer than until a policy's condition may come out otherwise because time has passed")
    func keepingUntilChange() async throws {
        // It holds on each day. That it will hold in the next minute, too, is not looked at.
        let daily = SimpleTime(minutes: nil, days: SimpleTime.Span(first: 0, last: 6), dates: nil, zone: .greenwich)
        var sent = RemoteFixture.Sent()
        sent.method = "GET"
        for (condition, age, seconds) in [
            (.time(daily), 20, 40), (.time(daily), 59, 1), (.time(daily), 60, 60),
            (.sessionAge(minutes: 2), 60, 60), (.sessionAge(minutes: 2), 90, 30), (.sessionAge(minutes: 2), 119, 1),
            (.and([.time(daily), .sessionAge(minutes: 2)]), 90, 30),
            (.or([.sessionAge(minutes: 2), .time(daily)]), 70, 50), (.not(.not(.time(daily))), 45, 15),
        ] as [(PolicyCondition, Double, Int64)] {
            // The clock begins with a minute, and the session with it.
            let fixture = try await RemoteFixture([try Self.reading(condition)])
            fixture.provider.clock.advance(by: age)
            let decided = try await fixture.decide(sent)
            #expect(decided.word == "granted", "\(condition) after \(age) s")
            #expect(decided.caller?.keepSeconds == seconds, "\(condition) after \(age) s")
        }
    }

    @Test("An open connection is looked at again: nothing is made or noted as used")
    func recheck() async throws {
        let fixture = try await RemoteFixture([try Self.reading(), try TransactionFixture.policy()])
        var sent = RemoteFixture.Sent()
        sent.method = "GET"
        #expect(try await fixture.decide(sent) { $0.isRecheck = true }.word == "granted")
        sent.method = "POST"
        #expect(try await fixture.decide(sent) { $0.isRecheck = true }.word == "denied: notPermitted")
        sent.method = "GET"
        fixture.provider.clock.advance(by: 120)
        _ = try await fixture.decide(sent) { $0.isRecheck = true }
        let id = fixture.provider.session.id
        let sessions = Sessions(fixture.provider.context)
        #expect(try await sessions.live(id: id)?.latestAccess == fixture.provider.session.latestAccess)
        // The control: a question that is not a look notes it.
        _ = try await fixture.decide(sent)
        #expect(try await sessions.live(id: id)?.latestAccess != fixture.provider.session.latestAccess)
        _ = try await sessions.end(id: id)
        #expect(try await fixture.decide(sent) { $0.isRecheck = true }.word == "denied: noSession")
    }

    @Test("A set that the realm has not is a mistake of the configuration, and nothing is granted")
    func unknownSet() async throws {
        let fixture = try await RemoteFixture()
        let inquiry = try fixture.inquiry(RemoteFixture.Sent())
        let request = GatewayInquiry(
            realm: "/beta", policySet: "bank", method: "GET", resource: inquiry.request.resource,
            credentials: inquiry.request.credentials, accessToken: inquiry.request.accessToken)
        let other = RemoteInquiry(request, group: inquiry.group, attempt: inquiry.attempt)
        #expect(try await fixture.access.decide(other).word == "denied: unavailable")
    }

    /// A policy that lets users read.
    static func reading(_ condition: PolicyCondition? = nil) throws -> Policy {
        try TransactionFixture.policy("reading", actions: ["GET": true], condition: condition, bind: [], display: [])
    }
}

extension RemoteInquiry {
    /// The same with the session in the cookie.
    fileprivate mutating func asCookie(mayUse: Bool) {
        mayUseCookie = mayUse
        change { credentials in
            credentials.session = credentials.session.map { SessionCredential(token: $0.token, carrier: .cookie) }
        }
    }

    /// The same of nobody.
    fileprivate mutating func asNobody() {
        change { $0.session = nil }
    }

    private mutating func change(_ body: (inout PresentedCredentials) -> Void) {
        var credentials = request.credentials
        body(&credentials)
        var changed = RemoteInquiry(
            GatewayInquiry(
                realm: request.realm, policySet: request.policySet, method: request.method,
                resource: request.resource, credentials: credentials, accessToken: request.accessToken),
            group: group, attempt: attempt)
        changed.mayUseCookie = mayUseCookie
        changed.mediaType = mediaType
        changed.content = content
        changed.transactionID = transactionID
        changed.isRecheck = isRecheck
        self = changed
    }
}
