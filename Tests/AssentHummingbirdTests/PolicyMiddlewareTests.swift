import AssentCore
import AssentEnforcement
import AssentHummingbird
import AssentTesting
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Testing

@Suite("A route that the policies protect")
struct PolicyMiddlewareTests {
    private static let allowed: JSONObject = ["actions": ["POST": true], "attributes": ["mail": ["ana@bank.example"]]]
    private static let spent: JSONObject = ["actions": ["POST": true], "ttl": 0]

    @Test("A request that is allowed reaches its handler with user, claims and whole body; the Host is not believed")
    func permitted() async throws {
        let double = PolicyServerDouble(Self.allowed)
        let reply = try await double.post(
            "/payments", PolicyServerDouble.json + [("Host", "evil.example"), ("X-Forwarded-Host", "evil.example")])
        #expect(reply.status == .created)
        let calls = double.calls.withLock { $0 }
        #expect(calls.map(\.body) == [#"{"to":"Bob"}"#])
        #expect(
            calls.first?.access
                == EnforcedAccess(
                    user: EnforcedUser(name: "ana", realm: "/alpha"), claims: ["mail": ["ana@bank.example"]]))
        let question = try #require(double.questions.withLock { $0 }.first)
        #expect(question.contains(#""resources":["https://pay.example:443/payments"]"#))
        #expect(question.contains(#""method":["POST"],"contentType":["application/json"],"body":["eyJ0byI6IkJvYiJ9"]"#))
        #expect(double.reports.withLock { $0 } == [])
    }

    @Test("A request that needs an approval gets the gateway's 401 and challenge, and its handler nothing")
    func advised() async throws {
        let advices: JSONValue = ["TransactionConditionAdvice": ["t-1"]]
        let double = PolicyServerDouble(["advices": advices, "ttl": 0])
        let reply = try await double.post()
        #expect(reply.status == .unauthorized)
        #expect(reply.headers[.contentType] == "application/problem+json")
        #expect(
            reply.text
                == #"{"type":"about:blank","title":"Unauthorized","status":401,"detail":"The user must do something first: see WWW-Authenticate."}"#
        )
        let challenge = try #require(reply.headers[.wwwAuthenticate])
        let advice = try #require(try Advice(challenge: challenge))
        #expect(advice.transactionID == "t-1" && advice.server == "https://am.example/am")
        #expect(challenge.hasPrefix(#"SSOADVICE realm="/alpha",advices=""#))
        #expect(double.calls.withLock { $0.isEmpty })
    }

    @Test(
        "A repeated request names its transaction in either place, and the outcome is reported",
        arguments: ["/payments?_txid=t-1", "/payments?_txid=t-1&_idtoken=a.b.c", "/payments"])
    func repeated(_ target: String) async throws {
        let double = PolicyServerDouble(Self.spent)
        let fields = target.contains("?") ? [] : [("X-TxID", "t-1")]
        let reply = try await double.post(target, PolicyServerDouble.json + fields)
        #expect(reply.status == .created)
        #expect(double.calls.withLock { $0.map(\.access.transactionID) } == ["t-1"])
        let question = try #require(double.questions.withLock { $0 }.first)
        #expect(question.contains(#""TxId":["t-1"]"#))
        #expect(question.contains(#""resources":["https://pay.example:443/payments"]"#))
        #expect(
            double.reports.withLock { $0 }
                == [#"{"transaction":"t-1","outcome":{"state":"answered","status":201}}"#])
    }

    @Test("A transaction that was used gets the gateway's 409 with the outcome, and the handler nothing")
    func used() async throws {
        let used: JSONValue = ["id": "t-1", "outcome": ["state": "answered", "status": 201]]
        let double = PolicyServerDouble(["transaction": used, "ttl": 0])
        let reply = try await double.post("/payments?_txid=t-1")
        #expect(reply.status == .conflict)
        #expect(
            reply.text
                == #"{"type":"about:blank","title":"Conflict","status":409,"detail":"This transaction was used before. Nothing was carried out now.","transaction":"t-1","outcome":{"state":"answered","status":201}}"#
        )
        #expect(double.calls.withLock { $0.isEmpty } && double.reports.withLock { $0.isEmpty })
    }

    @Test("What is denied, and a transaction that does not help, is 403 and reaches no handler")
    func denied() async throws {
        let advices: JSONValue = ["TransactionConditionAdvice": ["t-2"]]
        for (members, target) in [([:], "/payments"), (["advices": advices, "ttl": 0], "/payments?_txid=t-1")]
            as [(JSONObject, String)]
        {
            let double = PolicyServerDouble(members)
            let reply = try await double.post(target)
            #expect(reply.status == .forbidden && reply.text.contains(#""detail":"Access is denied.""#))
            #expect(reply.headers[.wwwAuthenticate] == nil && double.calls.withLock { $0.isEmpty })
        }
    }

    @Test(
        "Nobody, somebody who is signed out, and a session in a cookie are to sign in first; no policy is asked",
        arguments: [[], [("iPlanetDirectoryPro", "gone")], [("Cookie", "iPlanetDirectoryPro=user-session")]]
            as [[(String, String)]])
    func signInFirst(_ fields: [(String, String)]) async throws {
        let double = PolicyServerDouble(Self.allowed)
        let reply = try await double.post("/payments", fields + [("Content-Type", "application/json")])
        #expect(reply.status == .unauthorized)
        #expect(reply.headers[.wwwAuthenticate] == #"SSOADVICE realm="/alpha",am_uri="https://am.example/am""#)
        #expect(double.questions.withLock { $0.isEmpty } && double.calls.withLock { $0.isEmpty })
    }

    @Test("What is answered to HEAD has no body, which would be taken for the beginning of the next reply")
    func head() async throws {
        let double = PolicyServerDouble()
        let name = try #require(HTTPField.Name("iPlanetDirectoryPro"))
        let bare = try await double.head()
        let denied = try await double.head([name: PolicyServerDouble.session])
        #expect(bare.status == .unauthorized && denied.status == .forbidden)
        for reply in [bare, denied] {
            #expect(reply.text.isEmpty && reply.headers[.contentType] == "application/problem+json")
        }
        double.decision.withLock { $0 = { _ in throw HTTPTransportError(.connectFailed, "Nobody listens.") } }
        let away = try await double.head([name: PolicyServerDouble.session])
        #expect(away.status == .serviceUnavailable && away.text.isEmpty)
    }

    @Test("Each request is two questions: a changed policy and an ended session are seen by the next one")
    func notKept() async throws {
        let double = PolicyServerDouble(Self.allowed)
        for _ in 0..<2 { #expect(try await double.post().status == .created) }
        #expect(double.lookUps.withLock { $0 } == 2 && double.questions.withLock { $0.count } == 2)
        double.decision.withLock { $0 = { @Sendable _ in PolicyServerDouble.decision([:]) } }
        #expect(try await double.post().status == .forbidden)
        double.isAlive.withLock { $0 = false }
        #expect(try await double.post().status == .unauthorized)
        #expect(double.lookUps.withLock { $0 } == 4 && double.questions.withLock { $0.count } == 3)
        #expect(double.calls.withLock { $0.count } == 2)
    }

    @Test("When the policies cannot be asked nothing is carried out, and the answer says so")
    func away() async throws {
        let double = PolicyServerDouble(Self.allowed)
        double.decision.withLock { $0 = { _ in throw HTTPTransportError(.connectFailed, "Nobody listens.") } }
        let reply = try await double.post()
        #expect(reply.status == .serviceUnavailable && reply.headers[.retryAfter] == "1")
        #expect(reply.text.contains(#""forwarded":"no""#) && !reply.text.contains("listens"))

        double.decision.withLock {
            $0 = { _ in throw HTTPTransportError(.connectionClosed, "Cut.", mayHaveHadEffect: true) }
        }
        let lost = try await double.post("/payments?_txid=t-1")
        #expect(lost.status == .serviceUnavailable)
        #expect(lost.text.contains(#""code":"outcomeUnknown","forwarded":"no""#))
        #expect(double.reports.withLock { $0 } == [#"{"transaction":"t-1","outcome":{"state":"unknown"}}"#])

        for status in [401, 403, 404, 500] {
            double.decision.withLock { $0 = { _ in .json(status, ["message": "internal matters"]) } }
            let refused = try await double.post()
            #expect(refused.status == .serviceUnavailable && !refused.text.contains("internal"))
        }
        #expect(double.calls.withLock { $0.isEmpty })
    }

    @Test("What the server says is wrong with a request is said to its client")
    func refused() async throws {
        let double = PolicyServerDouble()
        double.decision.withLock { $0 = { _ in .json(400, ["message": "The member iban is not shown."]) } }
        let reply = try await double.post()
        #expect(reply.status == .badRequest && reply.text.contains("The member iban is not shown."))
        #expect(double.calls.withLock { $0.isEmpty })
    }

    @Test(
        "Content that cannot be bound is refused before a policy is asked",
        arguments: [
            ([("Content-Type", "application/json"), ("Content-Type", "text/plain")], "{}", 400),
            ([("Content-Type", "application/json"), ("Content-Encoding", "gzip")], "{}", 415),
            ([("Content-Type", "application/json"), ("Content-Range", "bytes 0-1/9")], "{}", 400),
            ([("Content-Type", "text/plain")], "{}", 415),
            ([("Content-Type", "application/json; charset=utf-16")], "{}", 415),
            ([], "{}", 415),
            ([("Content-Type", "application/json")], #"{"to":"a","to":"b"}"#, 400),
            ([("Content-Type", "application/json")], "{", 400),
            ([("Content-Type", "application/json")], #"{"to":"\#(String(repeating: "a", count: 64))"}"#, 413),
        ] as [([(String, String)], String, Int)])
    func content(_ fields: [(String, String)], _ body: String, _ status: Int) async throws {
        let double = PolicyServerDouble(Self.allowed)
        let session = [("iPlanetDirectoryPro", PolicyServerDouble.session)]
        let reply = try await double.post(
            "/payments", session + fields, body: body, binding: BoundContent("application/json", limit: 64))
        #expect(reply.status.code == status)
        #expect(double.questions.withLock { $0.isEmpty } && double.calls.withLock { $0.isEmpty })
    }

    @Test("The Idempotency-Key is part of the question, and two of them, or one without end, are refused")
    func idempotency() async throws {
        let double = PolicyServerDouble(Self.allowed)
        let key = [("Idempotency-Key", "k-1")]
        #expect(try await double.post("/payments", PolicyServerDouble.json + key).status == .created)
        #expect(double.questions.withLock { $0.first?.contains(#""idempotencyKey":["k-1"]"#) } == true)
        for keys in [key + [("Idempotency-Key", "k-2")], [("Idempotency-Key", String(repeating: "k", count: 1025))]] {
            #expect(try await double.post("/payments", PolicyServerDouble.json + keys).status == .badRequest)
        }
        #expect(double.questions.withLock { $0.count } == 1)
    }

    @Test("Where AM's question is asked an access token is nobody, with a proof or without, and the client is told")
    func accessTokens() async throws {
        let double = PolicyServerDouble(Self.allowed)
        for (fields, isToken) in [
            ([("Authorization", "Bearer a.b.c")], true), ([("Authorization", "DPoP a.b.c"), ("DPoP", "d.e.f")], true),
            ([("Authorization", "Bearer \(PolicyServerDouble.session)")], true),
            ([("Cookie", "iPlanetDirectoryPro=\(PolicyServerDouble.session)")], false),
        ] {
            let reply = try await double.post("/payments", [("Content-Type", "application/json")] + fields)
            #expect(reply.status == .unauthorized && reply.headers[.wwwAuthenticate]?.hasPrefix("SSOADVICE") == true)
            #expect(reply.text.contains("takes no access token") == isToken)
        }
        #expect(double.questions.withLock { $0.isEmpty } && double.calls.withLock { $0.isEmpty })
        #expect(try await double.post().status == .created)
    }

    @Test("A request that names two transactions or two sessions is refused")
    func twice() async throws {
        let double = PolicyServerDouble(Self.spent)
        let json = PolicyServerDouble.json
        for (target, fields) in [
            ("/payments?_txid=a&_txid=b", json), ("/payments?_txid=a&_txid=a", json),
            ("/payments?_txid=a", json + [("X-TxID", "b")]),
            ("/payments", json + [("iPlanetDirectoryPro", "another")]),
            ("/payments?_txid=\(String(repeating: "a", count: 257))", json),
        ] {
            let reply = try await double.post(target, fields)
            #expect(reply.status == .badRequest, "\(target)")
        }
        #expect(double.questions.withLock { $0.isEmpty } && double.calls.withLock { $0.isEmpty })
    }

    @Test(
        "A header field that is slow to compare is compared with nothing, also when nobody is signed in",
        arguments: ["X-TxID", "Content-Encoding", "Idempotency-Key", "iPlanetDirectoryPro"])
    func marks(_ name: String) async throws {
        let double = PolicyServerDouble(Self.allowed)
        let value = "t" + String(repeating: "\u{301}", count: MarksInARow.limit + 1)
        let reply = try await double.post("/payments", [("Content-Type", "application/json"), (name, value)])
        #expect(reply.status == .badRequest)
        #expect(double.lookUps.withLock { $0 } == 0 && double.questions.withLock { $0.isEmpty })
    }

    @Test(
        "A path that the router takes for another one is refused before a policy is asked",
        arguments: ["/payments/", "/payments//", "/payments/?_txid=t-1"])
    func slash(_ target: String) async throws {
        // All of it is allowed, as by a policy about everything but the payments themselves.
        let double = PolicyServerDouble()
        double.decision.withLock {
            $0 = { exchange in
                let path = exchange.text.contains("/payments/") ? "/payments/" : "/payments"
                return PolicyServerDouble.decision([
                    "resource": .string("https://pay.example:443" + path), "actions": ["POST": true],
                ])
            }
        }
        #expect(try await double.post(target).status == .badRequest)
        #expect(double.questions.withLock { $0.isEmpty } && double.calls.withLock { $0.isEmpty })
        #expect(try await double.post("/payments").status == .created)
        #expect(double.calls.withLock { $0.count } == 1)
    }

    private struct Failure: Error {}

    @Test("What becomes of an approved request is reported as it was: refused by its handler, or unknown")
    func outcomes() async throws {
        let double = PolicyServerDouble(Self.spent)
        double.handler.withLock { $0 = { _, _ in throw HTTPError(.unprocessableContent) } }
        #expect(try await double.post("/payments?_txid=t-1").status == .unprocessableContent)
        double.handler.withLock { $0 = { _, _ in throw Failure() } }
        let reply = try await double.post("/payments?_txid=t-1")
        #expect(reply.status == .gatewayTimeout)
        #expect(reply.text.contains(#""forwarded":"unknown","transaction":"t-1""#))
        #expect(
            double.reports.withLock { $0 } == [
                #"{"transaction":"t-1","outcome":{"state":"answered","status":422}}"#,
                #"{"transaction":"t-1","outcome":{"state":"unknown"}}"#,
            ])
    }

    @Test("A handler's own error is not taken for one of the policies, and a route that nothing protects has no access")
    func handlers() async throws {
        let double = PolicyServerDouble(Self.allowed)
        double.handler.withLock { $0 = { _, _ in throw EnforcementError(.refused, "elsewhere", status: 400) } }
        #expect(try await double.post().status == .internalServerError)
        #expect(try await double.post("/open").status == .internalServerError)
    }

    @Test("A service whose origin is none is refused")
    func origin() throws {
        let policies = PolicyClient(
            try PolicyServer("https://am.example/am", realm: "alpha"), policySet: "payments",
            credentials: GivenSession(Secret("pep")), transport: InMemoryTransport { _ in .json(200, []) })
        #expect(throws: EnforcementError(.invalidConfiguration, "")) {
            try PolicyMiddleware<BasicEnforcedContext>(policies, origin: "pay.example")
        }
    }
}
