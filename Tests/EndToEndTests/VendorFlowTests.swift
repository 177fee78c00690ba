import AssentCore
import AssentServer
import AssentURLSession
import Foundation
import HTTPTypes
import Testing

@testable import Assent
@testable import AssentDemo

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What the vendor's page about transactional authorization shows for Android, for iOS and over REST, one step after
/// the other, against the real server and its gateway.
@Suite("The vendor's flows of transactional authorization, step by step")
struct VendorFlowTests {
    // MARK: REST

    /// The page's resource.
    private static let feature = "https://app-backend.example.com:8000/protected/feature/"

    /// The example's file with a policy for that resource in the set of AM's agents.
    private static func withFeature(_ file: String) -> String {
        let journey = """
                  ConfirmAccess:
                    entry: approve
                    transactionalOnly: true
                    nodes:
                      approve: {type: TransactionApprovalNode, outcomes: {approve: success, decline: failure}}

            """
        let set = """
                  iPlanetAMWebAgentService:
                    policies:
                      - name: feature
                        resources: ["\(feature)"]
                        actionValues: {GET: true, POST: true}
                        subject: {type: AuthenticatedUsers}
                        condition: {type: Transaction, strategySpecifier: ConfirmAccess, ttl: 180}
                        bind: [query]

            """
        return file.replacing("\n    journeys:\n", with: "\n    journeys:\n" + journey)
            .replacing("\n    policySets:\n", with: "\n    policySets:\n" + set)
    }

    /// The page's question, with this session and this transaction in the place of its own.
    private static func question(_ session: String, _ transaction: String?) -> JSONValue {
        var question: JSONObject = [
            "resources": [.string(feature)], "application": "iPlanetAMWebAgentService",
            "subject": ["ssoToken": .string(session)],
        ]
        if let transaction { question["environment"] = ["TxId": [.string(transaction)]] }
        return .object(question)
    }

    /// The page's answer: an advice with this transaction, or what is allowed. AM and this server put it into a list.
    private static func answer(_ transaction: String?) -> JSONValue {
        var actions: JSONValue = ["GET": true, "POST": true]
        var advices: JSONValue = [:]
        if let transaction {
            actions = [:]
            advices = ["TransactionConditionAdvice": [.string(transaction)]]
        }
        return [["resource": .string(feature), "actions": actions, "attributes": [:], "advices": advices, "ttl": 0]]
    }

    /// What the policies were asked, and have answered.
    private struct Questions: Sendable {
        private let kept = Locked<[(asked: JSONValue, told: JSONValue)]>([])

        var all: [(asked: JSONValue, told: JSONValue)] { kept.withLock { $0 } }

        func watching(_ transport: any HTTPTransport) -> any HTTPTransport {
            Watched(questions: self, transport: transport)
        }

        private struct Watched: HTTPTransport {
            let questions: Questions
            let transport: any HTTPTransport

            @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
                var reply = try await transport.send(call)
                guard call.request.path?.contains("/policies?_action=evaluate") == true else { return reply }
                let content = try await call.body?.collect(upTo: 1 << 16) ?? []
                let bytes = try await reply.body.collect(upTo: 1 << 16)
                let (asked, told) = (try JSONValue.parse(content), try JSONValue.parse(bytes))
                questions.kept.withLock { $0.append((asked, told)) }
                reply.body = HTTPBody(bytes)
                return reply
            }
        }
    }

    @Test("REST: both questions and both answers are the page's, whole; what was approved is allowed once")
    func rest() async throws {
        let questions = Questions()
        try await World.run(
            logger: CollectingLog().logger, watching: questions.watching, editing: Self.withFeature
        ) { story in
            let assent = try story.makeAssent()
            try await story.signIn(assent, forcing: false)
            let session = try #require(try await assent.tokens.session()).token.reveal()
            let decision = try await assent.decision(on: Self.feature) { try story.answer(&$0) }
            #expect(decision.actions == ["GET": true, "POST": true] && decision.allows("POST"))
            let all = questions.all
            try #require(all.count == 2)
            let id = try #require(Self.transaction(all[0].told))
            #expect(all.map(\.asked) == [Self.question(session, nil), Self.question(session, id)])
            #expect(all.map(\.told) == [Self.answer(id), Self.answer(nil)])

            let declined = await #expect(throws: AuthorizationError.self) {
                try await assent.decision(on: Self.feature) { _ in .decline }
            }
            #expect(declined?.code == .declined)
            let later = questions.all.dropFirst(2)
            #expect(later.map(\.asked) == [Self.question(session, nil)])
            let next = later.first.flatMap { Self.transaction($0.told) }
            #expect(next != nil && next != id)
            await assent.shutdown()
        }
    }

    private static func transaction(_ answer: JSONValue) -> String? {
        answer.array?.first?["advices"]?["TransactionConditionAdvice"]?.array?.first?.string
    }

    // MARK: Android

    @Test("Android: the advice is read from the reply's field, its journey is walked, and the request is sent again")
    func android() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let assent = try story.makeAssent()
            try await story.signIn(assent, forcing: false)
            let before = try #require(try await assent.tokens.session()).token
            // With x-authenticate-response, as in the page's request.
            let refused = try await story.raw(assent, Story.transfer, id: nil)
            #expect(refused.status == 401)
            let field = try #require(refused.response.headerFields[.wwwAuthenticate])
            let advice = try #require(try Advice(challenge: field), "\(field)")
            let id = try #require(advice.transactionID)
            let early = try await story.raw(assent, Story.transfer, id: id)
            #expect(early.status == 403)

            let session = try await assent.journey(advice: advice) { step in
                if let options = step[ConfirmationCallback.self]?.options {
                    step[ConfirmationCallback.self]?.selectedValue = options.first?.value
                }
                if step[TextInputCallback.self] != nil {
                    let code = try story.freshCode()
                    step[TextInputCallback.self]?.text = code
                }
                return .next
            }
            #expect(session.token == before)
            #expect(try await story.balance(assent) == "1000.00")
            #expect(try await story.raw(assent, Story.transfer, id: id).status == 201)
            #expect(try await story.raw(assent, Story.transfer, id: id).status == 409)
            #expect(try await story.balance(assent) == "800.00")
            await assent.shutdown()
        }
    }

    // MARK: iOS

    @Test("iOS: a data task of an app's own session has the user asked, and gets the reply to the approved request")
    func ios() async throws {
        let wire = Locked<[HTTPRequest]>([])
        try await World.run(
            logger: CollectingLog().logger, watching: { Seen(requests: wire, transport: $0) }
        ) { story in
            // Step 1, with the optional one that says where the transaction's id stands.
            let shown = Locked<[String]>([])
            var policy = try AuthorizationPolicy(story.transfers) { approval in
                let lines = approval.display.map { "\($0.label): \($0.value)" }
                if approval.isFirstStep { shown.withLock { $0 = lines } }
                return try story.answer(&approval)
            }
            policy.decorate = { call, id in call.request.headerFields[.transactionID] = id }
            let policies = [policy]
            let assent = try story.makeAssent { configuration, _ in configuration.policies = policies }
            try await story.signIn(assent, forcing: false)

            // Steps 2 to 4.
            FlowProtocol.chosen.withLock { $0 = assent.authorizedClient }
            defer { FlowProtocol.chosen.withLock { $0 = nil } }
            let configuration = URLSessionConfiguration.ephemeral
            configuration.protocolClasses = [FlowProtocol.self]
            let session = URLSession(configuration: configuration)
            var request = URLRequest(url: try #require(URL(string: story.transfers)))
            request.httpMethod = "POST"
            request.httpBody = Data(Story.transfer.serializedBytes())
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.setValue("header", forHTTPHeaderField: "x-authenticate-response")
            let (content, response) = try await session.data(for: request)
            session.finishTasksAndInvalidate()

            let reply = try #require(response as? HTTPURLResponse)
            #expect(reply.statusCode == 201)
            #expect(try JSONValue.parse(Array(content))["amount"] == "200.00")
            #expect(shown.withLock { $0 } == ["Amount: 200.00 EUR", "To: Bob"])
            let sent = wire.withLock { $0 }.filter { $0.path == "/transfers" }
            #expect(sent.count == 2 && sent.first?.headerFields[.transactionID] == nil)
            #expect(sent.last?.headerFields[.transactionID]?.isEmpty == false)
            #expect(try await story.balance(assent) == "800.00")
            await assent.shutdown()
        }
    }

    /// Notes what is sent.
    private struct Seen: HTTPTransport {
        let requests: Locked<[HTTPRequest]>
        let transport: any HTTPTransport

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            requests.withLock { $0.append(call.request) }
            return try await transport.send(call)
        }
    }
}

/// The class of the app, whose client a test chooses.
private final class FlowProtocol: AssentURLProtocol {
    static let chosen = Locked<AuthorizedClient?>(nil)

    override class var client: AuthorizedClient? { chosen.withLock { $0 } }
}
