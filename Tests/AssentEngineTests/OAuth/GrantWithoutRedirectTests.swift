import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Grants without a redirect")
struct GrantWithoutRedirectTests {
    @Test("The tokens say how and when the user has signed in, and hang on the session")
    func tokens() async throws {
        let world = try await TokenlessFixture()
        let fixture = world.fixture
        let reply = try await world.tokens(client: "back end", of: world.signIn(secondsAgo: 40))
        let row = try #require(await world.rows().first)
        let claims = try jwtClaims(reply.idToken)
        #expect(claims.sub == fixture.user.id)
        #expect(try claims["sid"] == .string(row.text("audit_id")))
        #expect(claims["acr"] == "urn:bank:device" && claims["amr"] == ["pop", "pin"])
        #expect(claims["auth_time"] == .integer(fixture.clock.epochSeconds - 40))
        let access = try #require(await fixture.grants.access(token: reply.accessToken))
        #expect(try access.owner?.session?.id == row.text("id") && access.owner?.session?.authLevel == 3)
        #expect(access.owner?.amr == ["pop", "pin"] && access.acr == "urn:bank:device" && !access.isOffline)
        let form = try ProviderFixture.parameters(
            ["token": reply.accessToken.reveal()], TokenlessFixture.credentials("back end"))
        let told = try await TokenIntrospection(fixture.grants).answer(form)
        #expect(told["amr"] == ["pop", "pin"] && told["auth_level"] == 3 && told["acr"] == "urn:bank:device")
        let next = try await fixture.refresh(reply.refreshToken, TokenlessFixture.credentials("back end"))
        #expect(try jwtClaims(next.idToken)["amr"] == ["pop", "pin"])
        let ordinary = try await fixture.tokens()
        #expect(try jwtClaims(ordinary.idToken)["amr"] == nil, "a grant of a journey's session is as it was")
    }

    /// What ends a session without a token, and what is left of its grant then.
    @Test("Where a client needs consent, it is remembered, and the user can withdraw it with the grant")
    func consent() async throws {
        var bank = ProviderFixture.bank
        bank.consentImplied = false
        let world = TokenlessFixture(try await ProviderFixture(clients: [bank]))
        let fixture = world.fixture
        let tokens = try await world.tokens()
        #expect(try await fixture.grants.consents(of: fixture.session).map(\.scopes) == [["openid", "accounts"]])
        #expect(try await fixture.grants.withdrawConsent(to: bank.id, by: fixture.session))
        #expect(try await !fixture.isLive(tokens))
        #expect(try await world.rows().isEmpty)
    }

    @Test("A session without a token is deleted with its grant when nothing of that is valid any more")
    func purged() async throws {
        var bank = ProviderFixture.bank
        bank.grantTypes = [.authorizationCode]
        let world = TokenlessFixture(try await ProviderFixture(clients: [bank]))
        _ = try await world.tokens()
        world.fixture.clock.advance(by: Double(bank.accessTokenLifetime) - 1)
        _ = try await world.fixture.grants.purge()
        #expect(try await world.rows().count == 1)
        world.fixture.clock.advance(by: 1)
        _ = try await world.fixture.grants.purge()
        #expect(try await world.rows().isEmpty)
        #expect(try await world.sessions.live(token: world.fixture.sessionToken) != nil)
    }

    enum End: String, CaseIterable, CustomTestStringConvertible {
        case idTokenHint, administrator, consent, revocation, lock, idle

        var testDescription: String { rawValue }

        /// Whether a grant with `offline_access` goes on.
        var leavesOfflineGrants: Bool { [.idTokenHint, .administrator, .idle].contains(self) }

        func run(_ world: TokenlessFixture, _ tokens: IssuedTokens) async throws {
            let fixture = world.fixture
            let grants = fixture.grants
            switch self {
            case .idTokenHint:
                let hint = try #require(tokens.idToken).reveal()
                _ = try await EndSessionEndpoint(grants).answer(try ProviderFixture.parameters(["id_token_hint": hint]))
            case .administrator:
                let users = try await UserSessionsTests.World(fixture)
                let listed = try await users.administration.sessions(of: "ana", by: users.admin)
                let session = try #require(listed.first { !$0.hasToken })
                try await users.administration.endSession(session.auditID, of: "ana", by: users.admin)
            case .consent:
                let (user, now) = (fixture.user.id, fixture.clock.epochSeconds)
                _ = try await fixture.database.run(
                    SQLStatement(
                        """
                        INSERT INTO consents (user_id, client_id, realm, scope, granted_at, used_at, expires_at)
                        VALUES (\(user), 'bank-app', '/alpha', 'openid', \(now), \(now), \(now + 60))
                        """))
                #expect(try await grants.consents(of: fixture.session).map(\.clientID) == ["bank-app"])
                #expect(try await grants.withdrawConsent(to: "bank-app", by: fixture.session))
            case .revocation:
                try await grants.revoke(
                    try ProviderFixture.parameters([
                        "client_id": "bank-app", "token": try #require(tokens.refreshToken).reveal(),
                    ]))
            case .lock:
                let users = try await UserSessionsTests.World(fixture)
                try await Administration(fixture.context).setActive(false, of: "ana", by: users.admin)
                try await Administration(fixture.context).setActive(true, of: "ana", by: users.admin)
            case .idle: fixture.clock.advance(by: 1800)
            }
        }
    }

    @Test("It ends as others do, and its grant with it, unless that outlives its session", arguments: End.allCases)
    func ends(by end: End) async throws {
        for scopes in [["openid", "accounts"], ["openid", "offline_access"]] {
            let world = try await TokenlessFixture()
            let fixture = world.fixture
            let tokens = try await world.tokens(scopes)
            let id = try #require(await world.rows().first).text("id")
            #expect(try await fixture.isLive(tokens))
            try await end.run(world, tokens)
            #expect(try await world.sessions.live(id: id) == nil)
            let browser = try await world.sessions.live(token: fixture.sessionToken)
            #expect((browser == nil) == (end == .lock))
            let goesOn = scopes.contains("offline_access") && end.leavesOfflineGrants
            #expect(try await (fixture.grants.check(accessToken: tokens.accessToken).isGranted) == goesOn)
            if goesOn {
                _ = try await fixture.refresh(tokens.refreshToken)
            } else {
                await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(tokens.refreshToken) }
            }
        }
    }

    @Test("A session that has a token does not end with a grant")
    func ordinarySession() async throws {
        let fixture = try await ProviderFixture()
        let tokens = try await fixture.tokens()
        try await fixture.grants.revoke(
            try ProviderFixture.parameters([
                "client_id": "bank-app", "token": try #require(tokens.refreshToken).reveal(),
            ]))
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) != nil)
    }

    private static func ticket(_ fixture: ProviderFixture) async throws -> SQLStatement {
        _ = try await fixture.database.run(
            SQLStatement("INSERT INTO attempts (counter, window_start, count) VALUES ('ticket', 1, 1)"))
        return SQLStatement("DELETE FROM attempts WHERE counter = 'ticket'", expecting: .exactly(1))
    }

    @Test("Of many that show the same proof of a sign-in at once, one gets tokens, and there is one session")
    func race() async throws {
        let world = try await TokenlessFixture()
        let nodes = [
            world.grants, GrantWithoutRedirect(try await world.fixture.secondNode()),
        ]
        let ticket = try await Self.ticket(world.fixture)
        let caller = try await world.caller("bank-app")
        let winners = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<12 {
                group.addTask {
                    let reply = try? await nodes[index % 2].tokens(
                        for: world.signIn(), scopes: ["openid"], to: caller, keyThumbprint: nil, spending: [ticket],
                        claimingProof: {})
                    return reply != nil
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(winners == 1)
        #expect(try await world.rows().count == 1)
        #expect(try await world.fixture.count("grants") == 1)
        await #expect(throws: OAuthError.invalidGrant) { try await world.tokens(spending: [ticket]) }
    }

    @Test("A sign-in that is worthless by now gives nothing, spends nothing and leaves nothing")
    func worthless() async throws {
        let world = try await TokenlessFixture()
        let fixture = world.fixture
        let ticket = try await Self.ticket(fixture)
        let users = Users(fixture.context)
        let old = fixture.user
        let elsewhere = try #require(await users.create(username: "ana", realm: "/beta", passwordHash: nil))
        _ = try await fixture.database.run(SQLStatement("UPDATE users SET epoch = epoch + 1 WHERE id = \(old.id)"))
        let current = try #require(await users.find(id: old.id))
        try await users.setActive(false, userID: old.id)
        let locked = try #require(await users.find(id: old.id))
        try await users.setActive(true, userID: old.id)
        for signIn in [
            world.signIn(user: old), world.signIn(user: elsewhere), world.signIn(user: locked),
            world.signIn(secondsAgo: 7200, user: current), world.signIn(secondsAgo: .max / 2, user: current),
        ] {
            await #expect(throws: OAuthError.invalidGrant) {
                try await world.tokens(of: signIn, spending: [ticket])
            }
            #expect(try await world.isUntouched())
        }
        _ = try await world.tokens(of: world.signIn(secondsAgo: 7199, user: current), spending: [ticket])
    }

    @Test("What the client may not have is left out, and a sign-in gives nothing to a client that has none of it")
    func scopes() async throws {
        let world = try await TokenlessFixture()
        let reply = try await world.tokens(["accounts", "payments"])
        #expect(reply.scopes == ["accounts"] && reply.idToken == nil)
        await #expect(throws: OAuthError.expected("invalid_scope")) { try await world.tokens(["payments"]) }
        #expect(try await world.rows().count == 1)
    }

    @Test("The grant of a public client belongs to the key of the proof, and its session to none")
    func key() async throws {
        let world = try await TokenlessFixture()
        let key = Base64URL.encode([UInt8](repeating: 1, count: 32))
        let reply = try await world.tokens(key: key)
        #expect(reply.tokenType == "DPoP")
        #expect(try #require(await world.rows().first).sender() == nil)
        await #expect(throws: OAuthError.invalidGrant) { try await world.fixture.refresh(reply.refreshToken) }
        #expect(try await world.fixture.refresh(reply.refreshToken, keyThumbprint: key).tokenType == "DPoP")
    }

    @Test("A client whose tokens all belong to a key gets none without a proof; a proof that was used gives nothing")
    func proofs() async throws {
        var client = ProviderFixture.bank
        client.requiresProof = true
        let world = TokenlessFixture(try await ProviderFixture(clients: [client]))
        await #expect(throws: OAuthError.expected("invalid_dpop_proof")) { try await world.tokens() }
        await #expect(throws: SenderProofRefusal.self) {
            try await world.grants.tokens(
                for: world.signIn(), scopes: ["openid"], to: try await world.caller("bank-app"), keyThumbprint: "k",
                spending: [], claimingProof: { throw SenderProofRefusal(.invalidProof, "used") })
        }
        #expect(try await world.isUntouched())
    }
}

extension AccessCheck {
    fileprivate var isGranted: Bool { if case .granted = self { true } else { false } }
}
