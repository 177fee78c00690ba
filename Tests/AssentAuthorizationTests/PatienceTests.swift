import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

@Suite struct PatienceTests {
    private func policy(
        _ patience: Duration = .seconds(300), _ approve: @escaping AuthorizationPolicy.Handler
    ) throws -> AuthorizationPolicy {
        var policy = try AuthorizationPolicy("\(api)/", approve: approve)
        policy.patience = patience
        return policy
    }

    @Test("When the patience is over while the user types, the policy's handler is cancelled and nothing is approved")
    func typing() async throws {
        let world = World()
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let client = try await world.client(policies: [
            policy { approval in
                ask.yield()
                defer { end.yield() }
                try await world.clock.sleep(until: .distantFuture)
                return agree(&approval)
            }
        ])
        let call = Task { try await client.send(try post()) }
        for await _ in asked { break }
        while world.clock.sleeperCount < 2 { await Task.yield() }
        world.clock.advance(by: 301)
        await #expect(throws: AuthorizationError.like(.timedOut)) { try await call.value }
        for await _ in ended { break }
        #expect(world.calls.count == 1 && world.steps.count == 1)
    }

    @Test("An answer of a call's own handler that comes too late is dropped")
    func late() async throws {
        let world = World()
        let client = try await world.client(policies: [policy { _ in .decline }])
        await #expect(throws: AuthorizationError.like(.timedOut)) {
            try await client.send(try post()) { approval in
                world.clock.advance(by: 301)
                return agree(&approval)
            }
        }
        #expect(world.calls.count == 1 && world.steps.count == 1)
    }

    @Test("A call that waits while the user is asked something else has patience of its own")
    func waiting() async throws {
        let world = World()
        world.change { $0.states = false }
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (agreed, agreeing) = AsyncStream.makeStream(of: Void.self)
        let client = try await world.client(policies: [policy(.seconds(60)) { agree(&$0) }])
        // It brings its own handler, so the time is only looked at when it answers.
        let first = Task {
            try await client.send(try post()) { approval in
                ask.yield()
                for await _ in agreed { break }
                return agree(&approval)
            }
        }
        for await _ in asked { break }
        let second = Task { try await client.send(try post("/other")) }
        while world.clock.sleeperCount == 0 { await Task.yield() }
        world.clock.advance(by: 61)
        await #expect(throws: AuthorizationError.like(.timedOut)) { try await second.value }
        agreeing.finish()
        await #expect(throws: AuthorizationError.like(.timedOut)) { try await first.value }
        #expect(world.calls.count == 2 && world.steps.count == 1)
        #expect(try await client.send(try post()).status == 201)
    }

    /// A call that waits for its turn behind another one ends with `sessionChanged` once `change` is done.
    private func refusesWaiting(
        _ client: AuthorizedClient, _ world: World, after change: () async throws -> Void
    ) async throws {
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (changed, ended) = AsyncStream.makeStream(of: Void.self)
        let first = Task {
            try await client.send(try post()) { _ in
                ask.yield()
                for await _ in changed { break }
                return .decline
            }
        }
        for await _ in asked { break }
        let second = Task { try await client.send(try post("/other")) }
        while world.clock.sleeperCount == 0 { await Task.yield() }
        try await change()
        ended.finish()
        await #expect(throws: AuthorizationError.like(.declined)) { try await first.value }
        await #expect(throws: AuthorizationError.like(.sessionChanged)) { try await second.value }
        #expect(world.calls.count == 2 && world.steps.count == 2)
    }

    @Test("Who has signed in while a call waited for its turn is not asked about it")
    func anotherUser() async throws {
        let world = World()
        world.change { $0.states = false }
        let tokens = try world.tokens()
        let client = try await world.client(policies: [policy(.seconds(60)) { agree(&$0) }], of: tokens)
        try await refusesWaiting(client, world) { try await tokens.install(Session(token: Secret("BOB"))) }
        // Who comes after them is asked.
        world.change { $0.resultToken = "BOB" }
        #expect(try await client.send(try post()).status == 201)
    }

    @Test("What came of a user's question is not told to a call of who has signed in since, which wants the same")
    func sameQuestion() async throws {
        let world = World()
        let strong = World.header(advices: ["AuthenticateToServiceConditionAdvice": ["/:Strong"]])
        world.change {
            $0.states = false
            $0.resultToken = "BOB"
            $0.gateway = { [calls = Locked(0)] exchange in
                guard exchange.field("iPlanetDirectoryPro") == "BOB" else { return strong }
                let count = calls.withLock { calls -> Int in
                    calls += 1
                    return calls
                }
                return count == 1 ? strong : .json(200, [:])
            }
        }
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (changed, ended) = AsyncStream.makeStream(of: Void.self)
        let tokens = try world.tokens()
        let client = try await world.client(of: tokens)
        let first = Task {
            try await client.send(try get()) { _ in
                ask.yield()
                for await _ in changed { break }
                return .decline
            }
        }
        for await _ in asked { break }
        try await tokens.install(Session(token: Secret("BOB")))
        let second = Task { try await client.send(try get()) { agree(&$0) } }
        await client.waits(1)
        ended.finish()
        await #expect(throws: AuthorizationError.like(.declined)) { try await first.value }
        #expect(try await second.value.status == 200)
    }

    @Test("Where the user has signed out while a call waited for its turn, nobody is asked to sign in for it")
    func signedOut() async throws {
        let world = World()
        world.change {
            $0.states = false
            $0.gateway = { exchange in
                guard exchange.url.hasSuffix("/other") else { return nil }
                return World.header(advices: ["AuthenticateToServiceConditionAdvice": ["/:Strong"]])
            }
        }
        let tokens = try world.tokens()
        let client = try await world.client(policies: [policy(.seconds(60)) { agree(&$0) }], of: tokens)
        try await refusesWaiting(client, world) {
            let signedOut = await tokens.signOut()
            #expect(signedOut.isComplete)
        }
        #expect(try await tokens.session() == nil)
    }

    @Test("One whose id expired while it waited sends its call once more, and once only", arguments: [1, 2])
    func expiredWhileWaiting(times: Int) async throws {
        let world = World()
        world.change { $0.states = false }
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (agreed, agreeing) = AsyncStream.makeStream(of: Void.self)
        let client = try await world.client()
        let handler: @Sendable (inout Approval) async throws -> StepAction = { approval in
            ask.yield()
            for await _ in agreed { break }
            return agree(&approval)
        }
        let first = Task { try await client.send(try post(), approve: handler).status }
        for await _ in asked { break }
        let second = Task { try await client.send(try post("/other"), approve: handler).status }
        await client.waits(1)
        // The server has forgotten as many ids as `times` says.
        let forgotten = Locked(times)
        world.change {
            $0.journey = { exchange in
                guard exchange.text == "{}" else { return nil }
                let isForgotten = forgotten.withLock { left in
                    guard left > 0 else { return false }
                    left -= 1
                    return true
                }
                return isForgotten ? .json(401, ["code": 401, "detail": ["errorCode": "128"]]) : nil
            }
        }
        agreeing.finish()
        #expect(try await first.value == 201)
        let others = { world.calls.filter { $0.url.hasPrefix("\(api)/other") } }
        if times == 1 {
            #expect(try await second.value == 201)
            #expect(others().map(\.url) == ["\(api)/other", "\(api)/other", "\(api)/other?_txid=\(txid)"])
            #expect(Set(others().map { $0.field("Idempotency-Key") }).count == 1)
        } else {
            // It did not wait the second time, so the server's no is final.
            let error = await #expect(throws: JourneyError.self) { try await second.value }
            #expect(error?.code == .transactionUnknown)
            #expect(others().map(\.url) == ["\(api)/other", "\(api)/other"])
        }
    }

    @Test("A thousand calls with ten ids: ten questions, never two at once")
    func many() async throws {
        let world = World()
        world.change {
            $0.states = false
            $0.gateway = { exchange in
                let id = exchange.url.split(separator: "/").last.map(String.init) ?? ""
                return exchange.url.contains("_txid=") ? .json(201, [:]) : World.header("id-\(id)")
            }
        }
        let open = Locked((now: 0, most: 0, all: 0))
        let client = try await world.client(policies: [
            policy { approval in
                open.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1), $0.all + 1) }
                await Task.yield()
                defer { open.withLock { $0.now -= 1 } }
                return agree(&approval)
            }
        ])
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        world.change {
            $0.journey = { exchange in
                if exchange.text == "{}" { for await _ in gate { break } }
                return nil
            }
        }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<1_000 { group.addTask { try await client.send(try post("/\(number % 10)")).status } }
            // The first question opens when all others wait in line, each by a timer.
            while world.clock.sleeperCount < 999 { await Task.yield() }
            opening.finish()
            for try await status in group { #expect(status == 201) }
        }
        #expect(open.withLock { $0.most } == 1)
        #expect(open.withLock { $0.all } == 10)
        #expect(world.calls.count == 2_000)
    }

    @Test("Cancelling a call that waits takes it out of the line")
    func cancelledInLine() async throws {
        let world = World()
        world.change { $0.states = false }
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (agreed, agreeing) = AsyncStream.makeStream(of: Void.self)
        let client = try await world.client()
        let first = Task {
            try await client.send(try post()) { approval in
                ask.yield()
                for await _ in agreed { break }
                return agree(&approval)
            }
        }
        for await _ in asked { break }
        let second = Task { try await client.send(try post("/other"), approve: agree) }
        await client.waits(1)
        second.cancel()
        await #expect(throws: AuthorizationError.like(.cancelled)) { try await second.value }
        agreeing.finish()
        #expect(try await first.value.status == 201)
        #expect(world.calls.count == 3)
    }

    @Test("A call from a handler that wants an approval itself fails, and what the handler leaves behind may ask")
    func nested() async throws {
        let world = World()
        world.change { $0.states = false }
        let client = try await world.client(policies: [policy { agree(&$0) }])
        let left = Locked<Task<Int, any Error>?>(nil)
        let (returned, returning) = AsyncStream.makeStream(of: Void.self)
        let reply = try await client.send(try post()) { approval in
            await #expect(throws: AuthorizationError.like(.nestedApproval)) {
                try await client.send(try post("/other"))
            }
            let task = Task {
                for await _ in returned { break }
                return try await client.send(try post("/later")).status
            }
            left.withLock { $0 = task }
            return agree(&approval)
        }
        returning.finish()
        #expect(reply.status == 201)
        #expect(try await left.withLock { $0 }?.value == 201)
        #expect(world.calls.filter { $0.url.hasPrefix("\(api)/other") }.count == 1)
    }

    @Test("An approval that the server refuses after it has expired is called expired")
    func expired() async throws {
        let world = World()
        world.change {
            $0.journey = { exchange in
                exchange.text == "{}" ? nil : .json(401, ["code": 401, "detail": ["errorCode": "110"]])
            }
        }
        let client = try await world.client()
        await #expect(throws: AuthorizationError.like(.expired)) {
            try await client.send(try post()) { approval in
                world.clock.advance(by: 200)
                return agree(&approval)
            }
        }
        #expect(world.calls.count == 1)
    }
}
