import AssentCore
import AssentSigning
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("What the fence of a restored backup leaves as it is")
struct FenceBoundTests {
    @Test("Transactions that were used, declined or over stay so, and what is known of their requests stays known")
    func transactions() async throws {
        let fixture = try await TransactionFixture()
        let transactions = fixture.transactions
        func taken(_ maker: TransactionMaker = .gateway) async throws -> String {
            let binding = try fixture.binding(maker: maker)
            let id = try await fixture.approved(binding)
            try #require(try await transactions.take(id: id, binding: binding).isTaken)
            return id
        }
        func outcome(_ id: String) async throws -> UpstreamOutcome? {
            try await transactions.outcome(id: id, session: fixture.ana)?.outcome
        }
        let (answered, forwarded, overREST) = (try await taken(), try await taken(), try await taken(.caller("p")))
        #expect(try await transactions.recordForwarding(id: answered))
        try await transactions.recordOutcome(id: answered, .answered(status: 201))
        let unsent = try await taken()
        try await transactions.recordOutcome(id: unsent, .notForwarded)
        fixture.clock.advance(by: 10)
        #expect(try await transactions.recordForwarding(id: forwarded))
        let declined = try await fixture.create().id
        #expect(try await transactions.decline(id: declined, session: fixture.ana))
        let created = try await fixture.create().id
        let running = try await fixture.create().id
        _ = try await transactions.start(id: running, session: fixture.ana)
        let approved = try await fixture.approved()

        let counts = try await RestoredDatabase(fixture.context).fence(keepingSessions: true).counts
        #expect(counts[.transactions] == 3 && counts[.lostOutcomes] == nil)
        // The session of its approval is kept, so that nothing else ends it.
        #expect(!(try await transactions.take(id: approved, binding: try fixture.binding()).isTaken))
        for id in [created, running, approved] { #expect(try await fixture.state(id) == "EXPIRED") }
        #expect(try await fixture.state(declined) == "DECLINED")
        for id in [answered, forwarded, overREST, unsent] { #expect(try await fixture.state(id) == "TAKEN") }
        #expect(try await outcome(answered) == .answered(status: 201))
        #expect(try await outcome(unsent) == .notForwarded)
        #expect(try await outcome(overREST) == .taken, "what the enforcement point did with it is not known here")
        #expect(try await outcome(forwarded) == .forwarded)
        let row = try await fixture.database.run(
            .read("SELECT forwarded_at FROM transactions WHERE id = \(forwarded)")
        ).first
        #expect(try row?.integer("forwarded_at") == fixture.clock.epochSeconds)
    }

    @Test("One-time passwords are spent that a node could have taken whose clock is a minute ahead, and no later ones")
    func oneTimePasswords() async throws {
        let fixture = try await JourneyFixture()
        let ahead = Double(NodeClocks.difference)
        func check(_ code: String) async throws -> OneTimePasswords.Check {
            try await fixture.oneTimePasswords.verify(code, user: fixture.ana)
        }
        fixture.clock.advance(by: ahead)
        let latest = try fixture.code(stepsAhead: 1)
        #expect(try await check(latest) == .accepted)
        // The backup is older.
        _ = try await fixture.database.run(SQLStatement("UPDATE totp_credentials SET last_step = NULL"))
        fixture.clock.advance(by: -ahead)
        _ = try await RestoredDatabase(fixture.context).fence(keepingSessions: true)
        fixture.clock.advance(by: ahead)
        #expect(try await check(latest) == .replayed)
        fixture.clock.advance(by: 60)
        #expect(try await check(try fixture.code()) == .accepted)
    }

    @Test("A device's codes by time are spent that a node could have taken whose clock is ahead, and no later ones")
    func deviceCodes() async throws {
        let world = try await SigningWorld {
            $0.oneTimeKeys = [OneTimeKeySettings(label: "timed", kind: .time(period: 30))]
        }
        let sdk = try SDKWorld(world)
        let container = try await sdk.enrolled(sdk.device())
        let ahead = Double(NodeClocks.difference)
        func code() async throws -> String { try await container.oneTimeCode(label: "timed").code.reveal() }
        func check(_ code: String) async throws -> OneTimePasswords.Check {
            try await world.provider.codes.verify(code, label: "timed", user: world.base.ana.user)
        }
        // Of a device whose clock is ahead of that node's.
        sdk.clock.advance(by: ahead + 30)
        let latest = try await code()
        sdk.clock.advance(by: -30)
        #expect(try await check(latest) == .accepted)
        _ = try await world.base.database.run(SQLStatement("UPDATE signing_otp_keys SET counter = 0"))
        sdk.clock.advance(by: -ahead)
        _ = try await RestoredDatabase(world.base.context).fence(keepingSessions: true)
        sdk.clock.advance(by: ahead)
        #expect(try await check(latest) == .replayed)
        sdk.clock.advance(by: 60)
        let next = try await code()
        #expect(try await check(next) == .accepted)
    }

    @Test("A device's nonces are refused that may be from before the restore by some node's clock, and no later ones")
    func nonces() async throws {
        let fixture = try await TransactionFixture()
        let now = fixture.clock.epochSeconds
        _ = try await fixture.database.run(SigningNonces.refusingEarlier(at: now))
        for (madeAt, isRefused) in [(now - 1, true), (now, true), (now + 60, true), (now + 61, false)] {
            let found = try await fixture.database.run(.read(SigningNonces.restore(after: madeAt)))
            #expect(found.isEmpty == !isRefused, "made at \(madeAt - now) s")
        }
    }

    @Test(
        "Sessions, grants, consents and keys are kept where the operator says so; what is used once ends in any case",
        arguments: [true, false])
    func sessions(areKept: Bool) async throws {
        let fixture = try await ProviderFixture()
        let grants = fixture.grants
        let consent = try ProviderFixture.authorization([
            "client_id": "back end", "redirect_uri": "https://backend.example/cb?tenant=1",
        ])
        _ = try await AuthorizationEndpoint(grants).answer(consent, session: fixture.session, decision: .allow)
        let code = try await fixture.code()
        let (live, ended) = (try await fixture.tokens(), try await fixture.tokens())
        try await grants.revoke(
            try ProviderFixture.parameters(["client_id": "bank-app", "token": ended.refreshToken?.reveal() ?? ""]))
        let before = try await fixture.count("grants", where: "revoked_at IS NULL")

        let counts = try await RestoredDatabase(fixture.context).fence(keepingSessions: areKept).counts
        #expect(try await fixture.count("oauth_codes") == 0)
        #expect(try await fixture.count("refresh_tokens") == 0)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code) }
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(live.refreshToken) }
        #expect(try await (Sessions(fixture.context).live(token: fixture.sessionToken) != nil) == areKept)
        #expect(try await fixture.count("consents") == (areKept ? 1 : 0))
        #expect(try await fixture.count("grants", where: "revoked_at IS NULL") == (areKept ? before : 0))
        #expect(try await fixture.count("grants", where: "revoked_because = 'refresh_token'") == 1)
        #expect(try await (fixture.count("server_keys") > 0) == areKept)
        #expect(try await fixture.isLive(live) == areKept)
        #expect((counts[.codes] ?? 0) > 0 && (counts[.refreshTokens] ?? 0) > 0)
        #expect(counts[.grants] == (areKept ? nil : before))
        for kind in [FencedKind.sessions, .consents, .tokenKeys] {
            #expect((counts[kind] == nil) == areKept, "\(kind)")
        }
        let records = try await fixture.audit(.databaseRestore)
        #expect(records.map(\.outcome) == [.success])
        #expect(records.first?.detail["keepsSessions"] == .bool(areKept))
    }

    @Test("A bootstrap token that was used is on record after the fence, and one that was not is gone")
    func bootstrap() async throws {
        let fixture = try await ProviderFixture()
        let administration = Administration(fixture.context)
        let unused = try #require(try await administration.bootstrapToken())
        _ = try await RestoredDatabase(fixture.context).fence(keepingSessions: true)
        await #expect(throws: EngineError.self) {
            try await administration.bootstrap(unused, session: fixture.session)
        }
        let used = try #require(try await administration.bootstrapToken())
        try await administration.bootstrap(used, session: fixture.session)
        _ = try await RestoredDatabase(fixture.context).fence(keepingSessions: true)
        #expect(try await fixture.count("bootstrap_tokens", where: "used_at IS NOT NULL") == 1)
        await #expect(throws: EngineError.self) { try await administration.bootstrap(used, session: fixture.session) }
    }
}
