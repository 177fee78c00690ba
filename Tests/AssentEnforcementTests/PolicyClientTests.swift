import AssentCore
import AssentEnforcement
import AssentTesting
import HTTPTypes
import Testing

@Suite("A service's questions to the policies")
struct PolicyClientTests {
    @Test("A question has AM's form, names the user beside the service, and has our four parts of the request")
    func question() async throws {
        let desk = try PolicyDesk(deciding: ["actions": ["POST": true], "ttl": 0])
        var request = PolicyDesk.payment("t-1")
        request.clientAddress = "192.0.2.7"
        request.idempotencyKey = "k-1"
        let decision = try await desk.client.decide(request)
        #expect(decision == .permitted(EnforcementPermit(transactionID: "t-1")))
        let sent = try #require(desk.transport.exchanges.first)
        #expect(desk.transport.exchanges.count == 1)
        #expect(sent.request.path == PolicyDesk.evaluate && sent.request.method == .post)
        #expect(sent.request.headerFields[HTTPField.Name("iPlanetDirectoryPro") ?? .accept] == "pep-session")
        #expect(
            sent.text
                == #"{"resources":["https://pay.example:443/payments"],"application":"payments","subject":{"ssoToken":"user-session"},"environment":{"method":["POST"],"contentType":["application/json"],"body":["eyJ0byI6IkJvYiJ9"],"idempotencyKey":["k-1"],"TxId":["t-1"],"IP":["192.0.2.7"],"report":["outcome"]}}"#
        )
    }

    @Test("An ID token is asked about as one, and AM is not asked to tell outcomes")
    func idToken() async throws {
        let desk = try PolicyDesk(deciding: ["actions": ["GET": true]])
        var client = desk.client
        client.reportsOutcomes = false
        let request = EnforcedRequest(
            "GET", "https://pay.example:443/payments", subject: .idToken(Secret("a.b.c")))
        #expect(try await client.decide(request) == .permitted(EnforcementPermit()))
        let text = try #require(desk.transport.exchanges.first?.text)
        #expect(text.contains(#""subject":{"jwt":"a.b.c"},"environment":{"method":["GET"]}"#))
    }

    @Test("A permit without a transaction, with what the policies say of the user, spends none that was named")
    func permit() async throws {
        let desk = try PolicyDesk(deciding: ["actions": ["POST": true, "GET": false], "attributes": ["mail": ["a@b"]]])
        #expect(
            try await desk.client.decide(PolicyDesk.payment("t-1"))
                == .permitted(EnforcementPermit(attributes: ["mail": ["a@b"]])))
    }

    @Test(
        "What does not say that this method is allowed denies it",
        arguments: [
            [:], ["actions": ["GET": true]], ["actions": ["POST": false]], ["actions": ["post": true]],
        ] as [JSONObject])
    func denied(_ members: JSONObject) async throws {
        let desk = try PolicyDesk(deciding: members)
        #expect(try await desk.client.decide(PolicyDesk.payment()) == .denied)
    }

    @Test("An advice is one also beside an action that is allowed")
    func advised() async throws {
        let advices: JSONValue = ["TransactionConditionAdvice": ["t-2"]]
        let desk = try PolicyDesk(deciding: ["actions": ["POST": true], "advices": advices, "ttl": 0])
        #expect(try await desk.client.decide(PolicyDesk.payment()) == .advised(try Advice(transactionID: "t-2")))
    }

    @Test("A transaction that was used is told apart, with its outcome, and allows nothing")
    func used() async throws {
        let used: JSONValue = ["id": "t-1", "outcome": ["state": "answered", "status": 201]]
        let desk = try PolicyDesk(deciding: ["actions": ["POST": true], "transaction": used, "ttl": 0])
        #expect(
            try await desk.client.decide(PolicyDesk.payment("t-1"))
                == .used(transactionID: "t-1", .answered(status: 201)))
        await #expect(throws: EnforcementError(.malformedReply, "")) {
            try await desk.client.decide(PolicyDesk.payment())
        }
    }

    @Test(
        "A reply that is no decision on this request allows nothing",
        arguments: [
            "[]", "{}", "null", "", "[1]", "[{}]", #"[{"resource":"https://pay.example:443/other"}]"#,
            #"[{"resource":"https://pay.example:443/payments","actions":{"POST":"true"},"ttl":1}]"#,
            #"[{"resource":"https://pay.example:443/payments","actions":{"POST":true}}]"#,
            #"[{"resource":"https://pay.example:443/payments","actions":[],"ttl":1}]"#,
            #"[{"resource":"https://pay.example:443/payments","actions":{"POST":true},"advices":{"a":"b"},"ttl":1}]"#,
            #"[{"resource":"https://pay.example:443/payments","actions":{"POST":true},"attributes":{"a":1},"ttl":1}]"#,
            #"[{"resource":"https://pay.example:443/payments","resource":"https://pay.example:443/payments"}]"#,
            #"[{"resource":"https://pay.example:443/payments","actions":{"POST":true},"ttl":1},{}]"#,
        ])
    func malformed(_ text: String) async throws {
        let desk = try PolicyDesk { _ in HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(text)) }
        await #expect(throws: EnforcementError(.malformedReply, "")) {
            try await desk.client.decide(PolicyDesk.payment())
        }
        // The same about a transaction: nobody knows whether that is used up.
        await #expect(throws: EnforcementError(.outcomeUnknown, "")) {
            try await desk.client.decide(PolicyDesk.payment("t-1"))
        }
    }

    @Test(
        "A server that refuses says what is wrong, and whose fault it is",
        arguments: [
            (400, EnforcementError.Code.refused), (413, .refused), (415, .refused), (429, .refused),
            (403, .forbidden), (404, .unknownPolicySet), (500, .unavailable), (503, .unavailable),
            (302, .unavailable),
        ])
    func refused(_ status: Int, _ code: EnforcementError.Code) async throws {
        let desk = try PolicyDesk { _ in .json(status, ["message": "No member\u{7} iban."]) }
        let error = await #expect(throws: EnforcementError.self) {
            try await desk.client.decide(PolicyDesk.payment())
        }
        #expect(error?.code == code)
        #expect(error?.status == (code == .refused ? status : nil))
        #expect((error?.detail == "No member  iban.") == (code == .refused))
    }

    @Test("A question whose reply is lost is not sent again, and a transaction in it may be used up")
    func lost() async throws {
        let desk = try PolicyDesk { _ in
            throw HTTPTransportError(.connectionClosed, "The connection ended.", mayHaveHadEffect: true)
        }
        let plain = await #expect(throws: EnforcementError.self) { try await desk.client.decide(PolicyDesk.payment()) }
        #expect(plain?.code == .unavailable && plain?.isTransient == true)
        let named = await #expect(throws: EnforcementError.self) {
            try await desk.client.decide(PolicyDesk.payment("t-1"))
        }
        #expect(named?.code == .outcomeUnknown && named?.isTransient == false)
        #expect(desk.transport.exchanges.count { $0.request.path == PolicyDesk.evaluate } == 2)
    }

    @Test("The outcome of a transaction whose reply is lost is reported as unknown, where outcomes are reported")
    func lostOutcome() async throws {
        let desk = try PolicyDesk { exchange in
            guard exchange.request.path == PolicyDesk.evaluate else { return .json(200, [:]) }
            throw HTTPTransportError(.connectionClosed, "The connection ended.", mayHaveHadEffect: true)
        }
        var silent = desk.client
        silent.reportsOutcomes = false
        for (client, id) in [(silent, "t-1"), (desk.client, nil)] as [(PolicyClient, String?)] {
            await #expect(throws: EnforcementError.self) { try await client.decide(PolicyDesk.payment(id)) }
        }
        #expect(desk.transport.exchanges.count == 2)
        await #expect(throws: EnforcementError(.outcomeUnknown, "")) {
            try await desk.client.decide(PolicyDesk.payment("t-1"))
        }
        #expect(desk.transport.exchanges.count == 4)
        let report = try #require(desk.transport.exchanges.last)
        #expect(report.request.path?.hasSuffix("/policies?_action=report") == true)
        #expect(report.text == #"{"transaction":"t-1","outcome":{"state":"unknown"}}"#)
    }

    @Test("A question that did not leave has used up nothing")
    func away() async throws {
        let desk = try PolicyDesk { _ in throw HTTPTransportError(.connectFailed, "Nobody listens.") }
        await #expect(throws: EnforcementError(.unavailable, "")) {
            try await desk.client.decide(PolicyDesk.payment("t-1"))
        }
    }

    @Test("A reply of more than the limit is not read")
    func bounded() async throws {
        let desk = try PolicyDesk { _ in
            HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(String(repeating: " ", count: (256 << 10) + 1)))
        }
        await #expect(throws: EnforcementError(.unavailable, "")) {
            try await desk.client.decide(PolicyDesk.payment())
        }
        await #expect(throws: EnforcementError(.outcomeUnknown, "")) {
            try await desk.client.decide(PolicyDesk.payment("t-1"))
        }
    }

    @Test("No error shows a credential")
    func secrecy() async throws {
        for status in [400, 401, 403, 500] {
            let desk = try PolicyDesk { _ in .json(status, ["message": "refused"]) }
            let error = await #expect(throws: EnforcementError.self) {
                try await desk.client.decide(PolicyDesk.payment())
            }
            let text = try #require(error).description
            #expect(!text.contains("user-session") && !text.contains("pep-session"))
        }
    }

    @Test("A session's user is told, without lengthening the session; a dead one and a key's have none")
    func user() async throws {
        let replies = Locked<[HTTPReply]>([
            .json(200, ["valid": true, "sessionUid": "s", "uid": "ana", "realm": "/alpha"]),
            .json(200, ["valid": false]),
            .json(401, [:], headers: [.wwwAuthenticate: #"DPoP error="invalid_dpop_proof""#]),
            .json(200, ["uid": "ana", "realm": "/alpha"]),
            .json(200, ["valid": true, "uid": "", "realm": "/alpha"]),
        ])
        let desk = try PolicyDesk { _ in replies.withLock { $0.removeFirst() } }
        #expect(try await desk.client.user(of: Secret("user")) == EnforcedUser(name: "ana", realm: "/alpha"))
        #expect(try await desk.client.user(of: Secret("user")) == nil)
        #expect(try await desk.client.user(of: Secret("user")) == nil)
        for _ in 0..<2 {
            await #expect(throws: EnforcementError(.malformedReply, "")) {
                try await desk.client.user(of: Secret("user"))
            }
        }
        let sent = try #require(desk.transport.exchanges.first)
        #expect(sent.request.path == "/am/json/realms/root/realms/alpha/sessions?_action=validate&refresh=false")
        #expect(sent.text == #"{"tokenId":"user"}"#)
    }

    @Test("A session of another realm has no user here, whatever its user is called there")
    func otherRealm() async throws {
        for realm in ["/beta", "/", "/alpha/sub", "alpha", "/Alpha"] {
            let desk = try PolicyDesk { _ in .json(200, ["valid": true, "uid": "ana", "realm": .string(realm)]) }
            #expect(try await desk.client.user(of: Secret("user")) == nil, "\(realm)")
        }
    }

    @Test("An empty credential is nobody's: the server is not asked, which would answer about the service itself")
    func nobody() async throws {
        let desk = try PolicyDesk { exchange in
            let decision: JSONObject = [
                "resource": "https://pay.example:443/payments", "actions": ["POST": true], "ttl": 1,
            ]
            let isDecision = exchange.request.path == PolicyDesk.evaluate
            return .json(
                200,
                isDecision
                    ? .array([.object(decision)]) : ["valid": true, "uid": "payments", "realm": "/alpha"])
        }
        #expect(try await desk.client.user(of: Secret("")) == nil)
        for subject in [EnforcedRequest.Subject.session(Secret("")), .idToken(Secret(""))] {
            let request = EnforcedRequest("POST", "https://pay.example:443/payments", subject: subject)
            #expect(try await desk.client.decide(request) == .denied)
        }
        #expect(desk.transport.exchanges.isEmpty)
    }

    @Test("An outcome is reported in our form")
    func report() async throws {
        let desk = try PolicyDesk { _ in .json(200, [:]) }
        try await desk.client.report(.answered(status: 201), ofTransaction: "t-1")
        let sent = try #require(desk.transport.exchanges.first)
        #expect(sent.request.path == "/am/json/realms/root/realms/alpha/policies?_action=report")
        #expect(sent.text == #"{"transaction":"t-1","outcome":{"state":"answered","status":201}}"#)
    }

    @Test(
        "A server that cannot be named is refused",
        arguments: [
            ("am.example", "alpha"), ("https://am.example/am?x", "alpha"), ("https://am.example/am#x", "alpha"),
            ("https://am.example/am", ".."), ("https://am.example/am", "a/./b"), ("https://am.example/am", "a\"b"),
            ("https://am.example/am", "a,b"), ("https://am.example/am", "a\nb"),
        ])
    func servers(_ url: String, _ realm: String) {
        #expect(throws: EnforcementError(.invalidConfiguration, "")) { try PolicyServer(url, realm: realm) }
    }

    @Test("What to do about a service's credentials is said for a user and for a client")
    func advice() {
        for code in [EnforcementError.Code.notSignedIn, .forbidden] {
            let advice = EnforcementError(code, "").suggestion ?? ""
            #expect(advice.contains("user") && advice.contains("client"), "\(code)")
        }
    }

    @Test("A realm is written as AM names it", arguments: [("/", "/"), ("alpha", "/alpha"), ("/a/b", "/a/b")])
    func realms(_ text: String, _ realm: String) throws {
        #expect(try PolicyServer("https://am.example/am/", realm: text).realm == realm)
    }
}
