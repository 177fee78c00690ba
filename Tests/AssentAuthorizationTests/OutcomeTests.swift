import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

@Suite struct OutcomeTests {
    private func world(_ retry: @escaping @Sendable (Exchange) async throws -> HTTPReply) -> World {
        let world = World()
        world.change { $0.gateway = { $0.url.contains("_txid") ? try await retry($0) : nil } }
        return world
    }

    @Test(
        "After the id was sent, whatever is no answer ends as an unknown outcome with the id, never as a second prompt",
        arguments: [
            { World.header("another") }, { try World.redirect("another") },
            { World.header("another", server: "https://evil.example") },
            { throw HTTPTransportError(.connectionClosed, "cut off", mayHaveHadEffect: true) },
            { throw HTTPTransportError(.timedOut, "slow", mayHaveHadEffect: true) }, { throw CancellationError() },
            { .json(504, ["forwarded": "unknown"]) },
            {
                HTTPReply(
                    HTTPResponse(status: .created),
                    body: HTTPBody(length: 100, isReplayable: false) {
                        { throw HTTPTransportError(.connectionClosed, "cut off") }
                    })
            },
        ] as [@Sendable () throws -> HTTPReply])
    func unknown(reply: @escaping @Sendable () throws -> HTTPReply) async throws {
        let world = world { _ in try reply() }
        var asked = 0
        let error = await #expect(throws: AuthorizationError.self) {
            try await world.client().send(try post()) { approval in
                asked += 1
                return agree(&approval)
            }
        }
        #expect(error?.code == .outcomeUnknown && error?.pending?.transactionID == txid && asked == 1)
        #expect(error?.pending?.idempotencyKey == world.calls[0].field("Idempotency-Key"))
        #expect(world.calls.count == 2)
    }

    @Test("For a request without effect a second advice is a refusal")
    func safe() async throws {
        let world = world { _ in World.header("another") }
        world.change { $0.statement = { $0["contentType"] = nil } }
        await #expect(throws: AuthorizationError.like(.refused)) {
            try await world.client().send(try get(), approve: agree)
        }
        #expect(world.calls.count == 2 && world.calls.allSatisfy { $0.field("Idempotency-Key") == nil })
    }

    @Test("An approved request that never left can be sent later, with the same ids and without asking again")
    func notSent() async throws {
        let offline = Locked(true)
        let world = world { _ in
            if offline.withLock({ $0 }) { throw HTTPTransportError(.connectFailed, "offline") }
            return .json(201, [:])
        }
        let client = try await world.client()
        let error = await #expect(throws: AuthorizationError.self) { try await client.send(try post(), approve: agree) }
        #expect(error?.code == .notSent)
        let pending = try #require(error?.pending)
        offline.withLock { $0 = false }
        #expect(try await client.ask(try post(), about: pending).status == 201)
        #expect(Set(world.calls.map { $0.field("Idempotency-Key") }).count == 1)
        #expect(world.calls.map(\.url).suffix(2) == Array(repeating: "\(api)/transfers?_txid=\(txid)", count: 2))
        #expect(world.steps.count == 2)
    }

    @Test("Asking for an outcome gets what the gateway recorded, or a refusal when it knows nothing")
    func ask() async throws {
        let world = world { _ in .json(409, ["outcome": ["state": "answered", "status": 201]]) }
        let client = try await world.client()
        let pending = PendingRequest(transactionID: txid, idempotencyKey: "k")
        let reply = try await client.ask(try post(), about: pending)
        #expect(reply.status == 409 && world.calls.last?.field("Idempotency-Key") == "k")
        world.change { $0.gateway = { _ in World.header("another") } }
        await #expect(throws: AuthorizationError.like(.refused)) { try await client.ask(try post(), about: pending) }
        #expect(world.steps.isEmpty)
        let foreign = HTTPCall(try HTTPRequest(.get, url: "https://evil.example/"))
        await #expect(throws: AuthorizationError.like(.invalidRequest)) {
            try await client.ask(foreign, about: pending)
        }
    }

    @Test(
        "Plain refusals of the repeated request come back as they are", arguments: [400, 403, 409, 422, 500, 502, 503])
    func plain(status: Int) async throws {
        let world = world { _ in .json(status, ["x": 1]) }
        let reply = try await world.client().send(try post(), approve: agree)
        #expect(reply.status == status)
        #expect(try await reply.body.collect(upTo: 100) == Array(#"{"x":1}"#.utf8))
    }

    @Test("The app's own idempotency key is kept")
    func ownKey() async throws {
        let world = World()
        var call = try post()
        call.request.headerFields[try #require(HTTPField.Name("Idempotency-Key"))] = "mine"
        _ = try await world.client().send(call, approve: agree)
        #expect(world.calls.map { $0.field("Idempotency-Key") } == ["mine", "mine"])
    }

    @Test(
        "Equal requests with the same advice ask the user once; a different one asks when they are done")
    func concurrent() async throws {
        let world = World()
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (agreed, agreeing) = AsyncStream.makeStream(of: Void.self)
        let prompts = Locked(0)
        let client = try await world.client()
        let handler: @Sendable (inout Approval) async throws -> StepAction = { approval in
            prompts.withLock { $0 += 1 }
            ask.yield()
            for await _ in agreed { break }
            return agree(&approval)
        }
        let first = Task { try await client.send(try post(), approve: handler).status }
        for await _ in asked { break }
        let others = (0..<5).map { _ in Task { try await client.send(try post(), approve: handler).status } }
        await client.waits(5)
        world.change { $0.states = false }
        let different = Task { try await client.send(try post("/transfers", "{}"), approve: handler).status }
        await client.waits(6)
        #expect(prompts.withLock { $0 } == 1)
        agreeing.finish()
        #expect(try await first.value == 201)
        for other in others { #expect(try await other.value == 201) }
        #expect(try await different.value == 201)
        #expect(prompts.withLock { $0 } == 2)
    }

    @Test("Cancelling while the user is asked sends nothing more")
    func cancelled() async throws {
        let world = World()
        let client = try await world.client()
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            try await client.send(try post()) { approval in
                ask.yield()
                try await world.clock.sleep(until: .distantFuture)
                return agree(&approval)
            }
        }
        for await _ in asked { break }
        task.cancel()
        await #expect(throws: AuthorizationError.like(.cancelled)) { try await task.value }
        #expect(world.calls.count == 1)
    }

    @Test("A stronger session is kept where the call is cancelled while the server gives it, and nothing more is sent")
    func cancelledAtTheEnd() async throws {
        let world = World()
        world.change {
            $0.states = false
            $0.resultToken = "STRONG"
            $0.gateway = { _ in World.header(advices: ["AuthenticateToServiceConditionAdvice": ["/:Strong"]]) }
        }
        let tokens = try world.tokens()
        let client = try await world.client(of: tokens)
        let task = Task {
            try await client.send(try get()) { approval in
                withUnsafeCurrentTask { $0?.cancel() }
                return agree(&approval)
            }
        }
        await #expect(throws: AuthorizationError.like(.cancelled)) { try await task.value }
        #expect(try await tokens.session()?.token == Secret("STRONG"))
        #expect(world.calls.count == 1)
    }

    @Test(
        "When the call that asks is cancelled, another one that waits for the same approval asks")
    func leaderCancelled() async throws {
        let world = World()
        let client = try await world.client()
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let leader = Task {
            try await client.send(try post()) { approval in
                ask.yield()
                try await world.clock.sleep(until: .distantFuture)
                return agree(&approval)
            }
        }
        for await _ in asked { break }
        let follower = Task { try await client.send(try post(), approve: agree) }
        await client.waits(1)
        leader.cancel()
        await #expect(throws: AuthorizationError.like(.cancelled)) { try await leader.value }
        #expect(try await follower.value.status == 201)
    }
}
