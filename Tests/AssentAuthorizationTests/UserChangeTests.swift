import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import Testing

/// The user's tokens, before which something happens each time.
private struct WaitingSource: AccessTokenSource {
    let manager: TokenManager
    let before: @Sendable () async throws -> Void

    var kind: CallKind { .user }
    var user: TokenManager? { manager }

    func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        try await before()
        return try await manager.token(rejecting: rejected)
    }
}

@Suite("Calls whose token is waited for while somebody signs in") struct UserChangeTests {
    @Test(
        "A call is not sent in the name of who has signed in while it waited for its token, approved or not",
        arguments: [1, 2])
    func waiting(attempt: Int) async throws {
        let world = World()
        let tokens = try world.tokens()
        try await tokens.install(Session(token: Secret("SESS")))
        let asked = Locked(0)
        let source = WaitingSource(manager: tokens) {
            let count = asked.withLock { count in
                count += 1
                return count
            }
            if count == attempt { try await tokens.install(Session(token: Secret("BOB"))) }
        }
        let client = try AuthorizedClient(
            configuration: AuthorizationConfiguration(resources: [api: .accessToken]),
            journeys: JourneyClient(
                configuration: try JourneyConfiguration(server: am), transport: world.transport, clock: world.clock),
            source: source, transport: world.transport, clock: world.clock, random: SeededRandom(seed: 2))
        await #expect(throws: AuthorizationError.like(.sessionChanged)) {
            try await client.send(try post(), approve: agree)
        }
        #expect(asked.withLock { $0 } == attempt && world.calls.count == attempt - 1)
    }

    @Test("What was decided of one user is not told to who has signed in meanwhile")
    func decision() async throws {
        let world = World()
        let tokens = try world.tokens()
        let client = try await world.client(of: tokens)
        world.change {
            $0.beforeDecision = { try await tokens.install(Session(token: Secret("BOB"))) }
            $0.decision = { _ in
                .json(200, [["resource": "https://bank.example/see", "actions": ["GET": true], "ttl": 3600]])
            }
        }
        await #expect(throws: AuthorizationError.like(.sessionChanged)) {
            try await client.decision(on: "https://bank.example/see", approve: agree)
        }
        #expect(world.decisions.count == 1)
        #expect(try await client.decision(on: "https://bank.example/see", approve: agree).allows("GET"))
    }

    @Test("What became of a user's request is not asked by sending it as who has signed in since; kept ids still are")
    func outcome() async throws {
        let world = World()
        world.change { $0.gateway = { $0.url.contains("_txid") ? .json(504, ["forwarded": "unknown"]) : nil } }
        let tokens = try world.tokens()
        let client = try await world.client(of: tokens)
        let error = await #expect(throws: AuthorizationError.self) { try await client.send(try post(), approve: agree) }
        let pending = try #require(error?.pending)
        world.change { $0.gateway = { _ in .json(201, [:]) } }
        try await tokens.install(Session(token: Secret("BOB")))
        let count = world.calls.count
        await #expect(throws: AuthorizationError.like(.sessionChanged)) {
            try await client.ask(try post(), about: pending)
        }
        #expect(world.calls.count == count)
        let kept = PendingRequest(transactionID: pending.transactionID, idempotencyKey: pending.idempotencyKey)
        #expect(kept == pending)
        #expect(try await client.ask(try post(), about: kept).status == 201)
    }
}
