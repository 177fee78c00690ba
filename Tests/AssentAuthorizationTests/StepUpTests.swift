import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite struct StepUpTests {
    @Test("A payment is approved and repeated as it was, with the transaction's id, once")
    func payment() async throws {
        let world = World()
        let client = try await world.client()
        var shown: [DisplayField] = []
        let reply = try await client.send(try post("/transfers?x=1")) { approval in
            shown = approval.display
            #expect(approval.binding == .stated(Set(ApprovalBinding.Part.allCases)))
            #expect(approval.transactionID == txid && approval.method == "POST")
            #expect(approval.url == "\(api)/transfers?x=1")
            #expect(approval.expiresAt == world.clock.now.addingTimeInterval(180))
            return agree(&approval)
        }
        #expect(reply.status == 201 && shown == [DisplayField(label: "Amount", value: "200.00 EUR")])
        let calls = world.calls
        #expect(calls.map(\.url) == ["\(api)/transfers?x=1", "\(api)/transfers?x=1&_txid=\(txid)"])
        #expect(calls.map(\.text) == [transfer, transfer])
        #expect(calls.allSatisfy { $0.field("x-authenticate-response") == "header" })
        #expect(calls.allSatisfy { $0.field("Cookie") == "iPlanetDirectoryPro=SESS" })
        #expect(calls.allSatisfy { $0.field("iPlanetDirectoryPro") == "SESS" && $0.field("Authorization") == nil })
        let keys = Set(calls.map { $0.field("Idempotency-Key") })
        #expect(keys.count == 1 && keys.first??.utf8.count == 36)
        #expect(world.steps.count == 2)
        #expect(
            world.steps[0].url.hasPrefix("\(authenticate)?authIndexType=composite_advice&authIndexValue=%3CAdvices"))
        #expect(world.steps[1].url == authenticate)
        #expect(world.steps.allSatisfy { $0.field("iPlanetDirectoryPro") == "SESS" })
        #expect(world.steps[1].callback(1) == "123456" && world.steps[1].callback(2) == 0)
    }

    @Test("Nothing that was approved is kept: the same call is asked about anew, and so is the same question to AM")
    func notKept() async throws {
        let world = World()
        let client = try await world.client()
        for _ in 0..<2 { #expect(try await client.send(try post(), approve: agree).status == 201) }
        #expect(world.calls.count == 4 && world.steps.count == 4)
        world.change {
            $0.decision = { _ in
                .json(200, [["resource": "https://bank.example/see", "actions": ["GET": true], "ttl": 3600]])
            }
        }
        for _ in 0..<2 {
            let decision = try await client.decision(on: "https://bank.example/see", approve: agree)
            #expect(decision.allows("GET") && decision.timeToLive == 3600)
        }
        #expect(world.decisions.count == 2)
    }

    @Test("Each of the three forms of an advice is understood")
    func forms() async throws {
        let decision: JSONValue = [
            "resource": "x", "actions": [:], "attributes": [:], "ttl": 0,
            "advices": ["TransactionConditionAdvice": [.string(txid)]],
        ]
        for (reply, access) in [
            (World.header(txid), ResourceAccess.session), (World.header(txid, server: am + "/"), .session),
            (try World.redirect(txid), .session), (try World.redirect(txid, server: am + "/XUI"), .session),
            (.json(200, decision), .session.acceptingDecisions()),
            (.json(403, [decision]), .session.acceptingDecisions(transactionInHeader: false)),
            (.json(401, ["TransactionConditionAdvice": [.string(txid)]]), .session.acceptingDecisions()),
        ] {
            let world = World()
            world.change {
                $0.gateway = { exchange in
                    exchange.url.contains("_txid") || exchange.field("X-TxID") != nil ? .json(201, [:]) : reply
                }
            }
            #expect(try await world.client(access).send(try post(), approve: agree).status == 201)
            let last = try #require(world.calls.last)
            #expect((last.field("X-TxID") == txid) == access.sendsTransactionInHeader)
            #expect((last.url == "\(api)/transfers?_txid=\(txid)") != access.sendsTransactionInHeader)
        }
    }

    @Test(
        "A reply that is no advice, or an unreadable one, comes back as it is and asks nobody",
        arguments: [
            { .json(401, ["TransactionConditionAdvice": ["x"]]) },
            { .json(200, ["advices": ["TransactionConditionAdvice": ["x"]]]) },
            {
                HTTPReply(
                    HTTPResponse(
                        status: .unauthorized, headerFields: [.wwwAuthenticate: "SSOADVICE realm=\"/\",advices=\"%%\""])
                )
            },
            { HTTPReply(HTTPResponse(status: .unauthorized, headerFields: [.wwwAuthenticate: "Basic realm=\"x\""])) },
            {
                HTTPReply(
                    HTTPResponse(
                        status: .unauthorized,
                        headerFields: [.wwwAuthenticate: "SSOADVICE realm=\"/\",am_uri=\"https://am.example.com/am\""]))
            },
            {
                HTTPReply(
                    HTTPResponse(status: .temporaryRedirect, headerFields: [.location: "https://elsewhere.example/"]))
            },
            {
                HTTPReply(
                    HTTPResponse(
                        status: .temporaryRedirect,
                        headerFields: [
                            .location: "https://am.example.com/am/?authIndexType=composite_advice&authIndexValue=%3CAdv"
                        ]))
            },
            {
                HTTPReply(
                    HTTPResponse(status: .forbidden, headerFields: [.wwwAuthenticate: "SSOADVICE advices=\"e30\""]))
            },
        ] as [@Sendable () -> HTTPReply])
    func noAdvice(reply: @escaping @Sendable () -> HTTPReply) async throws {
        let world = World()
        world.change { $0.gateway = { _ in reply() } }
        let got = try await world.client().send(try post()) { _ in
            Issue.record("nobody should be asked")
            return .decline
        }
        #expect(got.status == reply().status && world.calls.count == 1 && world.steps.isEmpty)
        #expect(got.response.headerFields == reply().response.headerFields)
    }

    @Test("A challenge among others, in one field or in several, is found; two advices are ambiguous")
    func challenges() async throws {
        let advice =
            #"SSOADVICE realm="/", advices="\#(Base64URL.encode(Array(#"{"TransactionConditionAdvice":["\#(txid)"]}"#.utf8)))""#
        for fields in [
            [#"Bearer error="x", \#(advice)"#], [#"Basic realm="a, b""#, advice], [advice, "Negotiate abc=="],
        ] {
            let world = World()
            world.change {
                $0.gateway = { exchange in
                    guard !exchange.url.contains("_txid") else { return nil }
                    var response = HTTPResponse(status: .unauthorized)
                    response.headerFields[values: .wwwAuthenticate] = fields
                    return HTTPReply(response)
                }
            }
            #expect(try await world.client().send(try post(), approve: agree).status == 201)
        }
        let world = World()
        world.change {
            $0.gateway = { _ in
                var response = HTTPResponse(status: .unauthorized)
                response.headerFields[values: .wwwAuthenticate] = [advice, advice]
                return HTTPReply(response)
            }
        }
        #expect(try await world.client().send(try post(), approve: agree).status == 401)
        #expect(world.steps.isEmpty)
    }

    @Test(
        "A resource that names another server is not believed",
        arguments: [
            "https://evil.example/am", "https://am.example.com/evil", "https://am.example.com/am2",
            "https://am.example.com", "http://am.example.com/am", "https://am.example.com:8443/am",
            "https://am.example.com.evil.example/am", "https://am.example.com/am/../evil",
        ])
    func otherServer(server: String) async throws {
        for reply in [World.header(txid, server: server), try World.redirect(txid, server: server)] {
            let world = World()
            world.change { $0.gateway = { _ in reply } }
            await #expect(throws: AuthorizationError.like(.untrustedAdvice)) {
                try await world.client().send(try post(), approve: agree)
            }
            #expect(world.calls.count == 1 && world.steps.isEmpty)
        }
    }

    @Test("An origin that is not listed gets nothing and cannot ask for anything")
    func foreignOrigin() async throws {
        let seen = Locked<[Exchange]>([])
        let transport = InMemoryTransport { exchange in
            seen.withLock { $0.append(exchange) }
            return World.header(txid)
        }
        let world = World()
        let tokens = try world.tokens()
        try await tokens.install(Session(token: Secret("SESS")))
        let client = try AuthorizedClient(
            configuration: AuthorizationConfiguration(resources: [api: ResourceAccess.both.acceptingDecisions()]),
            journeys: JourneyClient(configuration: try JourneyConfiguration(server: am), transport: transport),
            source: tokens, transport: transport)
        for url in [
            "https://evil.example/transfers", "http://api.bank.example/", "https://api.bank.example:8443/",
            "https://api.bank.example.evil.example/", am,
        ] {
            let call = HTTPCall(try HTTPRequest(.post, url: url), body: HTTPBody(transfer))
            #expect(try await client.send(call, approve: agree).status == 401)
        }
        let exchanges = seen.withLock { $0 }
        #expect(exchanges.count == 5)
        for exchange in exchanges {
            for name in ["Authorization", "Cookie", "iPlanetDirectoryPro", "x-authenticate-response"] {
                #expect(exchange.field(name) == nil)
            }
            #expect(exchange.field("Idempotency-Key") != nil)
        }
    }

    @Test(
        "While the answer is given on a device, the app is told what to show, and agreeing does not end the wait")
    func waiting() async throws {
        let world = World()
        let polls = Locked(0)
        world.change {
            $0.journey = { exchange in
                let count = polls.withLock { polls in
                    polls += 1
                    return polls
                }
                guard count < 3 else { return nil }
                let polling: JSONValue = [
                    "type": "PollingWaitCallback",
                    "output": [
                        ["name": "waitTime", "value": "1000"],
                        ["name": "message", "value": "Confirm on your device.\nNumber: 42"],
                        ["name": "number", "value": "42"], ["name": "expiresAt", "value": 1_800_000_000],
                    ],
                ]
                let exit: JSONValue = [
                    "type": "ConfirmationCallback", "output": [["name": "options", "value": ["Exit"]]],
                    "input": [["name": "IDToken2", "value": 100]],
                ]
                return .json(200, ["authId": "A1", "callbacks": [polling, exit]])
            }
        }
        let shown = Locked<[JourneyWait?]>([])
        let client = try await world.client()
        let sending = Task {
            try await client.send(try post()) { approval in
                shown.withLock { $0.append(approval.waiting) }
                approval.agree()
                return .next
            }
        }
        for _ in 0..<2 {
            while world.clock.sleeperCount == 0 { await Task.yield() }
            world.clock.advance(by: 1.1)
        }
        let reply = try await sending.value
        let wait = JourneyWait(
            text: "Confirm on your device.\nNumber: 42", number: "42", until: Date(timeIntervalSince1970: 1_800_000_000)
        )
        #expect(reply.status == 201 && shown.withLock { $0 } == [wait, wait])
        #expect(world.steps.dropFirst().allSatisfy { $0.callback(1) != 0 })
    }

    @Test(
        "A no on the device is the user's no, whatever the journey's status, and nothing is repeated",
        arguments: [
            (
                401,
                [
                    "code": 401, "reason": "Unauthorized", "message": "Login failure",
                    "detail": ["failureUrl": "", "reason": "declined"],
                ]
            ), (200, ["tokenId": "session", "successUrl": "/", "realm": "/alpha", "failure": "declined"]),
        ] as [(Int, JSONValue)])
    func declinedElsewhere(status: Int, body: JSONValue) async throws {
        let world = World()
        world.change {
            $0.journey = { exchange in
                guard exchange.text != "{}" else { return nil }
                return .json(status, body)
            }
        }
        await #expect(throws: AuthorizationError.like(.declined)) {
            try await world.client().send(try post(), approve: agree)
        }
        #expect(world.calls.count == 1)
    }

    @Test("Declining presses the button for it, repeats nothing and says so")
    func decline() async throws {
        let world = World()
        await #expect(throws: AuthorizationError.like(.declined)) {
            try await world.client().send(try post()) { _ in .decline }
        }
        #expect(world.calls.count == 1)
        #expect(world.steps.last?.callback(2) == 1)
    }

    @Test("A button that agrees is pressed only where there is exactly one")
    func agreeing() async throws {
        for (options, value) in [
            (["Approve", "Decline"], 0), (["No", "Yes"], 1), (["Continue"], 0), (["A", "B"], nil),
            (["A", "B", "Cancel"], nil), (["Decline"], nil), ([], nil),
        ] as [([String], Int?)] {
            let world = World()
            let buttons: JSONValue = [
                "type": "ConfirmationCallback", "input": [["name": "IDToken1", "value": 100]],
                "output": [["name": "options", "value": .array(options.map { .string($0) })]],
            ]
            world.change { $0.journey = { _ in .json(200, ["authId": "A", "callbacks": [buttons]]) } }
            var firsts: [Bool] = []
            _ = try? await world.client().send(try post()) { approval in
                firsts.append(approval.isFirstStep)
                approval.agree()
                #expect(approval.step[ConfirmationCallback.self]?.selectedValue == value)
                return firsts.count == 1 ? .nextUnanswered : .decline
            }
            #expect(firsts == [true, false])
        }
    }

    @Test("What the handler throws comes out as it is, and nothing is repeated")
    func handlerThrows() async throws {
        struct Closed: Error {}
        let world = World()
        await #expect(throws: Closed.self) { try await world.client().send(try post()) { _ in throw Closed() } }
        #expect(world.calls.count == 1 && world.steps.count == 1)
    }

    @Test("Without a handler, without a session, or with a body that is spent, nothing begins")
    func cannotBegin() async throws {
        let world = World()
        await #expect(throws: AuthorizationError.like(.approvalNeeded)) { try await world.client().send(try post()) }
        let spent = HTTPBody(length: nil, isReplayable: false) { { nil } }
        let call = HTTPCall(try HTTPRequest(.post, url: "\(api)/transfers"), body: spent)
        await #expect(throws: AuthorizationError.like(.bodyNotReplayable)) {
            try await world.client().send(call, approve: agree)
        }
        #expect(world.steps.isEmpty)
        await #expect(throws: TokenError(.signInNeeded, "")) {
            try await World().client(signedIn: false).send(try post(), approve: agree)
        }
    }

    @Test("Who has a browser's tokens and no session cannot approve, and is told so")
    func tokensWithoutSession() async throws {
        let world = World()
        let client = try await world.client(.accessToken, signedIn: false)
        _ = try await world.tokens().signIn(through: SignedInBrowser())
        await #expect(throws: AuthorizationError.like(.noSession)) {
            try await client.send(try post(), approve: agree)
        }
        #expect(world.steps.isEmpty && world.calls.count == 1)
    }

    @Test("A journey that fails is the server's no")
    func journeyFails() async throws {
        let world = World()
        world.change {
            $0.journey = { _ in .json(401, ["code": 401, "detail": ["errorCode": "128"]]) }
        }
        let error = await #expect(throws: JourneyError.self) {
            try await world.client().send(try post(), approve: agree)
        }
        #expect(error?.code == .transactionUnknown && world.calls.count == 1)
    }

    @Test("A transaction whose journey ends with another session is not used")
    func otherSession() async throws {
        let world = World()
        world.change { $0.resultToken = "OTHER" }
        let client = try await world.client()
        await #expect(throws: AuthorizationError.like(.sessionChanged)) {
            try await client.send(try post(), approve: agree)
        }
        #expect(world.calls.count == 1)
        #expect(try await world.tokens().session()?.token == Secret("SESS"))
        #expect(!world.exchanges.withLock { $0 }.contains { $0.url.contains("logout") })
    }

    @Test(
        "A step-up journey installs the upgraded session before the call is repeated, and may be followed by an approval"
    )
    func upgrade() async throws {
        let world = World()
        let journeys = Locked(0)
        world.change {
            $0.gateway = { exchange in
                if exchange.url.contains("_txid") { return nil }
                return exchange.field("iPlanetDirectoryPro") == "NEW"
                    ? World.header(txid)
                    : World.header(advices: [
                        "TransactionConditionAdvice": ["too-early"],
                        "AuthenticateToServiceConditionAdvice": ["/:Strong"],
                    ])
            }
            $0.journey = { exchange in
                guard exchange.text != "{}" else { return nil }
                return .json(
                    200,
                    [
                        "tokenId": "NEW",
                        "n": .integer(
                            journeys.withLock {
                                $0 += 1; return $0
                            }),
                    ])
            }
        }
        let reply = try await world.client().send(try post(), approve: agree)
        #expect(reply.status == 201)
        #expect(world.calls.map { $0.field("iPlanetDirectoryPro") } == ["SESS", "NEW", "NEW"])
        #expect(world.calls.map { $0.url.contains("_txid") } == [false, false, true])
        #expect(!world.steps[0].url.contains("too-early") && world.steps[0].url.contains("Strong"))
        #expect(try await world.tokens().session()?.token == Secret("NEW"))
    }

    @Test(
        "A step-up that ends after somebody has signed out, or in, brings nobody back, and the call is not repeated",
        arguments: [nil, "BOB"] as [String?])
    func signedOutMeanwhile(next: String?) async throws {
        let world = World()
        world.change {
            $0.gateway = { _ in World.header(advices: ["AuthenticateToServiceConditionAdvice": ["/:Strong"]]) }
            $0.journey = { exchange in
                guard exchange.text != "{}" else { return nil }
                return .json(200, ["tokenId": "NEW"])
            }
        }
        let client = try await world.client()
        let tokens = try world.tokens()
        await #expect(throws: AuthorizationError.like(.sessionChanged)) {
            try await client.send(try post()) { approval in
                _ = await tokens.signOut()
                if let next { try await tokens.install(Session(token: Secret(next))) }
                return agree(&approval)
            }
        }
        #expect(world.calls.count == 1)
        #expect(try await world.tokens().session()?.token == next.map { Secret($0) })
    }

    @Test("What one user has approved is not sent for another who has signed in meanwhile")
    func anotherUserMeanwhile() async throws {
        let world = World()
        let tokens = try world.tokens()
        let client = try await world.client(of: tokens)
        await #expect(throws: AuthorizationError.like(.sessionChanged)) {
            try await client.send(try post()) { approval in
                try await tokens.install(Session(token: Secret("BOB")))
                return agree(&approval)
            }
        }
        #expect(world.calls.count == 1)
    }

    @Test("What one user has approved is not sent for another who has signed in while its content was read again")
    func anotherUserAtTheEnd() async throws {
        let world = World()
        let tokens = try world.tokens()
        let client = try await world.client(of: tokens)
        let isApproved = Locked(false)
        let body = HTTPBody(length: nil, isReplayable: true) {
            let rest = Locked<[UInt8]?>(Array(transfer.utf8))
            return {
                if isApproved.withLock({ $0 }) { try await tokens.install(Session(token: Secret("BOB"))) }
                return rest.withLock { $0.take() }
            }
        }
        let call = HTTPCall(
            try HTTPRequest(.post, url: "\(api)/transfers", headerFields: [.contentType: "application/json"]),
            body: body)
        await #expect(throws: AuthorizationError.like(.sessionChanged)) {
            try await client.send(call) { approval in
                isApproved.withLock { $0 = true }
                return agree(&approval)
            }
        }
        #expect(world.calls.count == 1)
    }

    @Test("A sign-in that fails, or gives the session that is there, leaves the user's calls alone")
    func sameUserMeanwhile() async throws {
        let world = World()
        let tokens = try world.tokens()
        let client = try await world.client(of: tokens)
        let reply = try await client.send(try post()) { approval in
            // Nobody has the key of this session.
            let foreign = Session(token: Secret("BOB"), keyThumbprint: "none")
            await #expect(throws: TokenError.self) { try await tokens.install(foreign) }
            try await tokens.install(Session(token: Secret("SESS")))
            return agree(&approval)
        }
        #expect(reply.status == 201 && world.calls.count == 2)
    }

    @Test("A server that asks again for the same journey is refused, one that wants something else is named")
    func refusals() async throws {
        let world = World()
        world.change { $0.gateway = { _ in World.header(advices: ["AuthenticateToServiceConditionAdvice": ["T"]]) } }
        await #expect(throws: AuthorizationError.like(.refused)) {
            try await world.client().send(try get(), approve: agree)
        }
        #expect(world.calls.count == 2)
        world.change { $0.gateway = { _ in World.header(advices: ["AuthSchemeConditionAdvice": ["x"]]) } }
        await #expect(throws: AuthorizationError.like(.unsupportedAdvice)) {
            try await world.client().send(try get(), approve: agree)
        }
    }

    @Test("A level that the session lacks is met by the journey that the server chooses")
    func level() async throws {
        let world = World()
        world.change {
            $0.resultToken = "NEW"
            $0.states = false
            $0.gateway = { exchange in
                exchange.field("iPlanetDirectoryPro") == "NEW"
                    ? nil : World.header(advices: ["AuthLevelConditionAdvice": ["5"]])
            }
        }
        let reply = try await world.client().send(try get(), approve: agree)
        #expect(reply.status < 300)
        #expect(world.steps.first?.url.contains("AuthLevelConditionAdvice") == true)
        world.change { $0.gateway = { _ in World.header(advices: ["AuthLevelConditionAdvice": ["5"]]) } }
        await #expect(throws: AuthorizationError.like(.refused)) {
            try await world.client().send(try get(), approve: agree)
        }
    }

    @Test(
        "A resource of another make that wants a stronger sign-in is told to the app, with the values that would do",
        arguments: [
            (
                #"Bearer error="insufficient_user_authentication", acr_values="urn:a urn:b", max_age="5""#,
                ["urn:a", "urn:b"], 5
            ),
            (#"bearer error=insufficient_user_authentication"#, [], nil),
            (
                #"DPoP algs="ES256 PS256", error="insufficient_user_authentication", acr_values="urn:a", max_age="5""#,
                ["urn:a"], 5
            ),
            (
                #"Bearer error="insufficient_user_authentication",max_age=5,"#
                    + #"dpop error="insufficient_user_authentication",max_age=5,algs="ES256""#, [], 5
            ),
            (
                #"Basic realm="x", Bearer error="insufficient_user_authentication",acr_values="c",max_age=-1"#, ["c"],
                nil
            ),
        ] as [(String, [String], Int?)])
    func stronger(field: String, values: [String], maxAge: Int?) async throws {
        let world = World()
        world.change {
            $0.gateway = { _ in
                HTTPReply(HTTPResponse(status: .unauthorized, headerFields: [.wwwAuthenticate: field]))
            }
        }
        let error = await #expect(throws: AuthorizationError.like(.strongerSignInNeeded)) {
            try await world.client().send(try post(), approve: agree)
        }
        #expect(error?.acrValues == values && error?.maxAge == maxAge)
        #expect(world.calls.count == 1 && world.steps.isEmpty)
    }

    @Test("What only looks like that challenge is a reply like any other")
    func notStronger() async throws {
        let world = World()
        for (status, field) in [
            (403, #"Bearer error="insufficient_user_authentication""#),
            (401, #"Basic error="insufficient_user_authentication""#),
            (
                401,
                #"Bearer error="insufficient_user_authentication",max_age=5,"#
                    + #"DPoP error="insufficient_user_authentication",max_age=6"#
            ),
            (401, #"Bearer error="insufficient_scope""#), (401, #"Bearer error="insufficient_user_authentication"#),
        ] {
            world.change {
                $0.gateway = { _ in
                    HTTPReply(HTTPResponse(status: .init(code: status), headerFields: [.wwwAuthenticate: field]))
                }
            }
            #expect(try await world.client().send(try get(), approve: agree).status == status)
        }
    }

    @Test("The handler runs in its caller's isolation")
    @MainActor func isolation() async throws {
        var asked = 0
        _ = try await World().client().send(try post()) { approval in
            MainActor.assertIsolated()
            asked += 1
            return agree(&approval)
        }
        #expect(asked == 1)
    }
}
