import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite("An advice's journey, for an app that sends its calls by another way") struct AdviceJourneyTests {
    private static let am = "https://am.example.com/am"

    private let servers = Servers()
    /// The session with which journeys end; `nil` for the one that there is.
    private let next = Locked<String?>(nil)

    private func assent() throws -> Assent {
        try servers.assent {
            let inner = $0.transport
            $0.transport = InMemoryTransport { [next] exchange in
                let isAnswer = exchange.request.url?.contains("/authenticate") == true && exchange.text != "{}"
                if isAnswer, let token = next.withLock({ $0 }) {
                    return .json(200, ["tokenId": .string(token), "successUrl": "/", "realm": "/alpha"])
                }
                return try await inner?.send(HTTPCall(exchange.request, body: HTTPBody(exchange.body)))
                    ?? .json(500, [:])
            }
        }
    }

    private func answer(_ step: inout JourneyStep) -> StepAction {
        step[NameCallback.self]?.name = "ana"
        return .next
    }

    private func stored(_ assent: Assent) async throws -> Secret? { try await assent.user()?.session?.token }

    private func challenge(_ server: String) throws -> Advice {
        let field = try Advice(transactionID: "tx-1").challengeFieldValue(server: server, realm: "/alpha")
        return try #require(try Advice(challenge: field))
    }

    @Test("It is walked on top of the user's session, which stays")
    func approved() async throws {
        let assent = try assent()
        try await assent.journey("Login", handler: answer)
        let before = servers.sent("/authenticate").count
        var asked = 0
        let advice = try challenge(Self.am)
        let session = try await assent.journey(advice: advice) { step in
            asked += 1
            return answer(&step)
        }
        #expect(session.token == Secret("SESS") && asked == 1)
        #expect(try await stored(assent) == Secret("SESS"))
        let begun = try #require(servers.sent("/authenticate").dropFirst(before).first)
        let url = try #require(begun.request.url as String?)
        #expect(url.contains("authIndexType=composite_advice") && url.contains("tx-1"))
        let field = try #require(HTTPField.Name("iPlanetDirectoryPro"))
        #expect(begun.request.headerFields[field] == "SESS")
    }

    @Test(
        "An advice that names another server than the configured one is refused, and nothing is sent",
        arguments: [
            "https://evil.example/am", "http://am.example.com/am", "https://am.example.com:8443/am",
            "https://am.example.com/other", "https://am.example.com/ambush", "https://am.example.com.evil.example/am",
        ])
    func foreign(server: String) async throws {
        let assent = try assent()
        try await assent.journey("Login", handler: answer)
        let before = servers.exchanges.withLock { $0.count }
        let location = try Advice(transactionID: "tx-1").redirectLocation(
            server: server, goto: "https://api.bank.example/x", realm: "/alpha")
        for advice in [try challenge(server), try #require(try Advice(location: location))] {
            await #expect(throws: AuthorizationError(.untrustedAdvice, "")) {
                try await assent.journey(advice: advice) { _ in
                    Issue.record("nobody should be asked")
                    return .decline
                }
            }
        }
        #expect(servers.exchanges.withLock { $0.count } == before)
        #expect(try await stored(assent) == Secret("SESS"))
    }

    @Test("Who has no session cannot follow one, and nothing is sent")
    func noSession() async throws {
        let assent = try assent()
        let advice = try challenge(Self.am)
        await #expect(throws: AuthorizationError(.noSession, "")) {
            try await assent.journey(advice: advice, handler: answer)
        }
        #expect(servers.sent("/authenticate").isEmpty)
    }

    @Test("A transaction's journey that ends with another session approves nothing, and that session is not kept")
    func otherSession() async throws {
        let assent = try assent()
        try await assent.journey("Login", handler: answer)
        next.withLock { $0 = "OTHER" }
        let advice = try challenge(Self.am)
        await #expect(throws: AuthorizationError(.sessionChanged, "")) {
            try await assent.journey(advice: advice, handler: answer)
        }
        #expect(try await stored(assent) == Secret("SESS"))
    }

    @Test("A stronger session that comes after somebody has signed out is not kept, and the server ends it")
    func signedOutMeanwhile() async throws {
        let assent = try assent()
        try await assent.journey("Login", handler: answer)
        next.withLock { $0 = "STRONG" }
        let service = try Advice(tree: "Strong", realm: "/alpha")
        await #expect(throws: AuthorizationError(.sessionChanged, "")) {
            try await assent.journey(advice: service) { step in
                await assent.signOut()
                return answer(&step)
            }
        }
        #expect(try await assent.user() == nil)
        #expect(servers.sent("/sessions?_action=logout").last?.text == #"{"tokenId":"STRONG"}"#)
    }

    @Test("A stronger session is kept where the task is cancelled while the server gives it: the old one has ended")
    func cancelled() async throws {
        let assent = try assent()
        try await assent.journey("Login", handler: answer)
        next.withLock { $0 = "STRONG" }
        let service = try Advice(tree: "Strong", realm: "/alpha")
        let walking = Task {
            try await assent.journey(advice: service) { step in
                withUnsafeCurrentTask { $0?.cancel() }
                return answer(&step)
            }
        }
        #expect(try await walking.value.token == Secret("STRONG"))
        #expect(try await stored(assent) == Secret("STRONG"))
    }

    @Test("A stronger session that a journey ends with is kept, also where a transaction is wanted behind it")
    func stronger() async throws {
        let assent = try assent()
        try await assent.journey("Login", handler: answer)
        next.withLock { $0 = "STRONG" }
        let service = try Advice(tree: "Strong", realm: "/alpha")
        let strong = try await assent.journey(advice: service, handler: answer)
        #expect(strong.token == Secret("STRONG"))
        #expect(try await stored(assent) == Secret("STRONG"))
        next.withLock { $0 = "STRONGER" }
        let both = try Advice(service.entries + Advice(transactionID: "tx-1").entries)
        let stronger = try await assent.journey(advice: both, handler: answer)
        #expect(stronger.token == Secret("STRONGER"))
        let begun: String = try #require(servers.sent("/authenticate").last?.request.url)
        #expect(begun.contains("Strong") && !begun.contains("tx-1"))
        #expect(try await stored(assent) == Secret("STRONGER"))
    }
}
