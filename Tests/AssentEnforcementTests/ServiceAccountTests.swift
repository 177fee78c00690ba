import AssentCore
import AssentEnforcement
import AssentTesting
import HTTPTypes
import Testing

@Suite("A service's own user")
struct ServiceAccountTests {
    /// A server whose sessions are `s1`, `s2`, …, of which only the last is alive.
    private final class Sessions: Sendable {
        let count = Locked(0)
        let isAlive = Locked(true)

        func answer(_ exchange: InMemoryTransport.Exchange) -> HTTPReply {
            guard exchange.request.path?.contains("/authenticate") == true else {
                let present = "s\(count.withLock { $0 })"
                let named = HTTPField.Name("iPlanetDirectoryPro").flatMap { exchange.request.headerFields[$0] }
                guard named == present, isAlive.withLock({ $0 }) else {
                    return .json(401, ["message": "Access Denied"])
                }
                return .json(200, ["valid": false])
            }
            if exchange.request.path?.contains("authIndexValue") == true { return .json(200, Self.step) }
            guard exchange.text.contains(#""value":"payments""#), exchange.text.contains(#""value":"pass word""#),
                exchange.text.contains(#""authId":"a-1""#)
            else { return .json(401, ["message": "Login failure"]) }
            let number = count.withLock { count -> Int in
                count += 1
                return count
            }
            return .json(200, ["tokenId": .string("s\(number)")])
        }

        static let step: JSONValue = [
            "authId": "a-1",
            "callbacks": [
                ["type": "NameCallback", "input": [["name": "IDToken1", "value": ""]]],
                ["type": "PasswordCallback", "input": [["name": "IDToken2", "value": ""]]],
            ],
        ]
    }

    private func account(
        _ transport: any HTTPTransport, password: String = "pass word", clock: ManualClock = ManualClock()
    ) throws -> ServiceAccount {
        ServiceAccount(
            try PolicyServer(PolicyDesk.server, realm: "alpha"), journey: "Service & Co", username: "payments",
            password: Secret(password), transport: transport, clock: clock)
    }

    private func client(_ transport: InMemoryTransport) throws -> PolicyClient {
        PolicyClient(
            try PolicyServer(PolicyDesk.server, realm: "alpha"), policySet: "payments",
            credentials: try account(transport), transport: transport)
    }

    @Test("It signs in by its journey once, for all questions")
    func signsIn() async throws {
        let sessions = Sessions()
        let transport = InMemoryTransport { sessions.answer($0) }
        let client = try client(transport)
        for _ in 0..<3 { #expect(try await client.user(of: Secret("user")) == nil) }
        #expect(sessions.count.withLock { $0 } == 1)
        #expect(
            transport.exchanges.first?.request.path
                == "/am/json/realms/root/realms/alpha/authenticate?authIndexType=service&authIndexValue=Service%20%26%20Co"
        )
        let paths = transport.exchanges.map { $0.request.path ?? "" }
        #expect(paths.count { $0.contains("/authenticate") } == 2)
    }

    @Test("When its session has ended it signs in again, and the question is sent once more")
    func renews() async throws {
        let sessions = Sessions()
        let transport = InMemoryTransport { sessions.answer($0) }
        let client = try client(transport)
        _ = try await client.user(of: Secret("user"))
        // Somebody else has signed in meanwhile, and ended this session by it.
        sessions.count.withLock { $0 += 1 }
        let before = transport.exchanges.count
        #expect(try await client.user(of: Secret("user")) == nil)
        #expect(sessions.count.withLock { $0 } == 3)
        #expect(transport.exchanges.count == before + 4)
    }

    @Test("A server that accepts no session of it is asked twice, and not for ever")
    func refusedForGood() async throws {
        let sessions = Sessions()
        sessions.isAlive.withLock { $0 = false }
        let transport = InMemoryTransport { sessions.answer($0) }
        let client = try client(transport)
        await #expect(throws: EnforcementError(.notSignedIn, "")) { try await client.user(of: Secret("user")) }
        #expect(sessions.count.withLock { $0 } == 2)
        #expect(transport.exchanges.count == 6)
    }

    @Test("A hundred questions at once share one sign-in")
    func shares() async throws {
        let sessions = Sessions()
        let transport = InMemoryTransport { sessions.answer($0) }
        let account = try account(transport)
        try await withThrowingTaskGroup(of: Secret.self) { group in
            for _ in 0..<100 { group.addTask { try await account.session(replacing: nil) } }
            for try await token in group { #expect(token == Secret("s1")) }
        }
        #expect(sessions.count.withLock { $0 } == 1)
    }

    @Test("A session that is refused at once is given to nobody again who waited for the same sign-in")
    func refusedAtOnce() async throws {
        for _ in 0..<20 {
            let sessions = Sessions()
            let transport = InMemoryTransport { sessions.answer($0) }
            let account = try account(transport)
            try await withThrowingTaskGroup(of: Bool.self) { group in
                // The one that begins the sign-in goes on last.
                for index in 0..<50 {
                    group.addTask(priority: index == 0 ? .background : .high) {
                        let token = try await account.session(replacing: nil)
                        return try await account.session(replacing: token) != token
                    }
                }
                for try await isAnother in group { #expect(isAnother) }
            }
        }
    }

    @Test("A wrong password is not tried again before a pause is over")
    func pauses() async throws {
        let sessions = Sessions()
        let transport = InMemoryTransport { sessions.answer($0) }
        let clock = ManualClock()
        let account = try account(transport, password: "wrong", clock: clock)
        for _ in 0..<10 {
            let error = await #expect(throws: EnforcementError.self) { try await account.session(replacing: nil) }
            #expect(error?.code == .notSignedIn && error.map { "\($0)" }?.contains("wrong") == false)
        }
        #expect(transport.exchanges.count == 2)
        clock.advance(by: 6)
        await #expect(throws: EnforcementError.self) { try await account.session(replacing: nil) }
        #expect(transport.exchanges.count == 4)
    }

    @Test("A clock that is set back makes the pause no longer")
    func setBack() async throws {
        let sessions = Sessions()
        let transport = InMemoryTransport { sessions.answer($0) }
        let clock = ManualClock()
        let account = try account(transport, password: "wrong", clock: clock)
        for count in [2, 4] {
            await #expect(throws: EnforcementError.self) { try await account.session(replacing: nil) }
            #expect(transport.exchanges.count == count)
            clock.advance(by: -3600)
        }
    }

    @Test("A journey that asks for more, for nothing, or for ever ends in an error")
    func journeys() async throws {
        let more: JSONValue = ["callbacks": [["type": "TextInputCallback", "input": [["name": "a", "value": ""]]]]]
        let broken: JSONValue = ["callbacks": [["type": "NameCallback"]]]
        let cases: [(JSONValue, EnforcementError.Code, Int)] = [
            (more, .notSignedIn, 1), (["callbacks": []], .malformedReply, 1), ([:], .malformedReply, 1),
            (broken, .malformedReply, 1), (Sessions.step, .notSignedIn, 4),
        ]
        for (step, code, count) in cases {
            let transport = InMemoryTransport { _ in .json(200, step) }
            let account = try account(transport)
            let error = await #expect(throws: EnforcementError.self) { try await account.session(replacing: nil) }
            #expect(error?.code == code)
            #expect(transport.exchanges.count == count)
        }
    }

    @Test("A session that was given is not given again when it was refused")
    func given() async throws {
        let given = GivenSession(Secret("one"))
        #expect(try await given.session(replacing: nil) == Secret("one"))
        #expect(try await given.session(replacing: Secret("other")) == Secret("one"))
        await #expect(throws: EnforcementError(.notSignedIn, "")) {
            try await given.session(replacing: Secret("one"))
        }
    }
}
