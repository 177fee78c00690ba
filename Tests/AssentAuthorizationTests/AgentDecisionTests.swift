import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import HTTPTypes
import Testing

@Suite struct AgentDecisionTests {
    private static let resource = "https://app-backend.example.com:8000/protected/feature/"
    private static let evaluate = "\(am)/json/realms/root/policies?_action=evaluate"

    /// AM, which wants the transaction and then allows POST and GET, as the vendor's guide shows it.
    private static func answer(_ exchange: Exchange) throws -> HTTPReply {
        let isApproved = try JSONValue.parse(exchange.body)["environment"] != nil
        let advices: JSONValue = isApproved ? [:] : ["TransactionConditionAdvice": [.string(txid)]]
        let actions: JSONValue = isApproved ? ["POST": true, "GET": true] : [:]
        return .json(
            200,
            [
                [
                    "resource": .string(resource), "actions": actions, "attributes": [:], "advices": advices,
                    "ttl": 0,
                ]
            ])
    }

    private func client(
        _ world: World, answer: @escaping @Sendable (Exchange) throws -> HTTPReply
    ) async throws -> AuthorizedClient {
        world.change { $0.decision = answer }
        return try await world.client()
    }

    @Test("AM is asked, the user approves, AM is asked again with the id; requests and replies are the guide's")
    func approved() async throws {
        let world = World()
        world.change { $0.states = false }
        let client = try await client(world, answer: Self.answer)
        var urls: [String] = []
        let decision = try await client.decision(on: Self.resource) { approval in
            urls.append(approval.url)
            #expect(approval.transactionID == txid)
            return agree(&approval)
        }
        #expect(decision.actions == ["POST": true, "GET": true] && decision.attributes.isEmpty)
        #expect(decision.resource == Self.resource && decision.timeToLive == 0)
        #expect(decision.allows("POST") && !decision.allows("DELETE"))
        #expect(urls == [Self.resource])
        let sent = world.decisions
        let first =
            #"{"resources":["\#(Self.resource)"],"application":"iPlanetAMWebAgentService","subject":{"ssoToken":"SESS"}"#
        #expect(sent.map(\.text) == [first + "}", first + #","environment":{"TxId":["\#(txid)"]}}"#])
        for exchange in sent {
            #expect(exchange.request.method == .post && exchange.url == Self.evaluate)
            #expect(exchange.field("iPlanetDirectoryPro") == "SESS")
            #expect(exchange.field("Content-Type") == "application/json")
            #expect(exchange.field("Accept-API-Version") == "resource=2.0, protocol=1.0")
        }
    }

    @Test("Another policy set is named; what is allowed at once asks nobody")
    func application() async throws {
        let world = World()
        let client = try await client(world) { _ in
            .json(
                200,
                [
                    [
                        "resource": .string(Self.resource), "actions": ["GET": true, "POST": false],
                        "attributes": ["cn": ["Ana"]], "advices": [:], "ttl": 9_223_372_036_854_775_807,
                    ]
                ])
        }
        let decision = try await client.decision(on: Self.resource, application: "bank") { _ in
            Issue.record("nobody should be asked")
            return .decline
        }
        #expect(decision.allows("GET") && !decision.allows("POST") && decision.attributes == ["cn": ["Ana"]])
        #expect(decision.timeToLive == .max)
        #expect(world.decisions.first?.text.contains(#""application":"bank""#) == true)
    }

    @Test("AM that asks again for what was just done is refused, and asked no third time")
    func endless() async throws {
        let world = World()
        world.change { $0.states = false }
        let client = try await client(world) { _ in
            .json(
                200,
                [["resource": .string(Self.resource), "advices": ["TransactionConditionAdvice": [.string(txid)]]]])
        }
        await #expect(throws: AuthorizationError.like(.refused)) {
            try await client.decision(on: Self.resource, approve: agree)
        }
        #expect(world.decisions.count == 2)
    }

    @Test("When the second answer is lost nothing was allowed, and the next question makes another transaction")
    func lostAnswer() async throws {
        let world = World()
        world.change { $0.states = false }
        let client = try await client(world) { exchange in
            guard try JSONValue.parse(exchange.body)["environment"] != nil else { return try Self.answer(exchange) }
            throw HTTPTransportError(.connectionClosed, "cut off", mayHaveHadEffect: true)
        }
        await #expect(throws: JourneyFailure.self) { try await client.decision(on: Self.resource, approve: agree) }
        // It is not asked a third time by itself: the id may be used up.
        #expect(world.decisions.count == 2 && world.steps.count == 2)
        world.change { $0.decision = Self.answer }
        var asked = 0
        let decision = try await client.decision(on: Self.resource) { approval in
            asked += 1
            return agree(&approval)
        }
        #expect(decision.allows("POST") && asked == 1)
        let third = try JSONValue.parse(try #require(world.decisions.dropFirst(2).first).body)
        #expect(third["environment"] == nil && world.decisions.count == 4)
    }

    @Test(
        "A statement about a request with a method or content is not one about this decision",
        arguments: [
            ("method", "POST"), ("contentType", "application/json"),
            ("bodySHA256", "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"),
        ])
    func statedRequest(_ name: String, _ value: String) async throws {
        let world = World()
        world.change {
            $0.journey = { exchange in
                guard exchange.text == "{}" else { return nil }
                var stated: JSONObject = [
                    "_type": "AssentTransaction", "transactionId": .string(txid),
                    "resource": .string(Self.resource),
                ]
                stated[name] = .string(value)
                return .json(
                    200,
                    world.step(["type": "MetadataCallback", "output": [["name": "data", "value": .object(stated)]]]))
            }
        }
        let client = try await client(world, answer: Self.answer)
        await #expect(throws: AuthorizationError.like(.approvalForAnotherRequest)) {
            try await client.decision(on: Self.resource, approve: agree)
        }
    }

    @Test(
        "An answer about another resource, about two, or of another shape allows nothing",
        arguments: [
            [["resource": "https://other.example/", "actions": ["GET": true]]], [],
            [["resource": .string(resource)], ["resource": .string(resource)]],
            ["resource": .string(resource), "actions": ["GET": true]],
            [["resource": .string(resource), "actions": ["GET": "true"]]],
            [["resource": .string(resource), "actions": []]],
            [["resource": .string(resource), "advices": ["TransactionConditionAdvice": 1]]],
        ] as [JSONValue])
    func malformed(answer: JSONValue) async throws {
        let client = try await client(World()) { _ in .json(200, answer) }
        let error = await #expect(throws: JourneyFailure.self) {
            try await client.decision(on: Self.resource, approve: agree)
        }
        #expect(error?.code == .malformedReply)
    }

    @Test("Where AM lets its users not ask, its refusal comes out")
    func forbidden() async throws {
        let client = try await client(World()) { _ in
            .json(403, ["code": 403, "reason": "Forbidden", "message": "The user has insufficient privileges"])
        }
        let error = await #expect(throws: JourneyError.self) {
            try await client.decision(on: Self.resource, approve: agree)
        }
        #expect(error?.status == 403)
    }
}
