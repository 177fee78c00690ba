import AssentCore
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Sessions without a token")
struct TokenlessSessionTests {
    @Test("A session without a token has what its user has proved, when that was, and the realm's lifetimes")
    func row() async throws {
        let world = try await TokenlessFixture()
        _ = try await world.tokens(of: world.signIn(secondsAgo: 100))
        let now = world.fixture.clock.epochSeconds
        let row = try #require(await world.rows().first)
        #expect(try row.text("user_id") == world.fixture.user.id && row.text("realm") == "/alpha")
        #expect(try row.integer("auth_level") == 3)
        #expect(try row.text("acr") == "urn:bank:device" && row.text("amr") == "pop pin")
        #expect(try row.integer("created_at") == now - 100 && row.integer("latest_access") == now)
        #expect(try row.integer("max_idle") == 1800 && row.integer("expires_at") == now - 100 + 7200)
        #expect(try row.sender() == nil)
        let live = try #require(await world.sessions.live(id: try row.text("id")))
        #expect(!live.hasToken && world.fixture.session.hasToken && live.user == world.fixture.user)
    }

    @Test("Whatever is presented as its token finds no session: nothing, its ids, its grant's tokens, their hashes")
    func nobodyPresentsIt() async throws {
        let world = try await TokenlessFixture()
        let fixture = world.fixture
        let tokens = try await world.tokens()
        let row = try #require(await world.rows().first)
        let (id, auditID) = (try row.text("id"), try row.text("audit_id"))
        let live = try #require(await world.sessions.live(id: id))
        let parts = [
            "", " ", "\u{0}", "NULL", "null", "nil", id, String(id.dropFirst(TokenlessSession.idPrefix.count)),
            TokenlessSession.idPrefix, auditID, fixture.user.id, tokens.accessToken.reveal(),
            try #require(tokens.refreshToken).reveal(), try #require(tokens.idToken).reveal(), "' OR '1'='1", "%",
        ]
        let callers = Callers(
            sessions: world.sessions, providers: ["/alpha": fixture.grants], proofs: SenderProofs(fixture.context))
        func isFound(_ token: Secret) async throws -> [Bool] {
            let credentials = PresentedCredentials(session: SessionCredential(token: token, carrier: .field))
            let caller = try await callers.caller(withSession: credentials, realm: "/alpha")
            return [
                try await world.sessions.live(token: token) != nil, try await callers.hasLiveSession(credentials),
                caller.presented != nil, caller.user != nil, AuthorizationEndpoint.isCSRFToken(token, of: live),
            ]
        }
        for text in parts + parts.map({ TokenHash.of(Secret($0)) }) {
            #expect(try await isFound(Secret(text)) == [false, false, false, false, false], "\(text.debugDescription)")
        }
        let own = try await isFound(fixture.sessionToken)
        #expect(own == [true, true, true, true, false], "the control")
        #expect(AuthorizationEndpoint.isCSRFToken(fixture.sessionToken, of: fixture.session))
    }

    @Test("No token's hash can stand where a session without a token has its id")
    func noHash() async throws {
        let world = try await TokenlessFixture()
        for _ in 0..<2 { _ = try await world.tokens() }
        let ids = try await world.rows().map { try $0.text("id") }
        #expect(Set(ids).count == 2 && ids.allSatisfy { $0.hasPrefix("no-token:") })
        for text in ids + ["", "a", "no-token:"] + (0..<100).map({ _ in SystemRandom().token() }) {
            // A SHA-256 in base64url, which has no colon, and is shorter than each id.
            let hash = TokenHash.of(Secret(text))
            #expect(hash.utf8.count == 43 && !hash.contains(":"))
        }
        #expect(ids.allSatisfy { $0.utf8.count != 43 })
    }

    @Test("The database says which sessions have no token as the engine does")
    func sameRule() async throws {
        let world = try await TokenlessFixture()
        _ = try await world.tokens()
        let found = try await world.fixture.database.run(
            .read("SELECT id FROM sessions WHERE \(TokenlessSession.isMeant(by: "id"))")
        ).map { try $0.text("id") }
        #expect(try await found == world.rows().map { try $0.text("id") } && found.count == 1)
    }

    @Test("It idles away at the second, unless it is used; its longest life begins with the sign-in")
    func lifetimes() async throws {
        for (age, isLive) in [(1799, true), (1800, false)] {
            let world = try await TokenlessFixture()
            _ = try await world.tokens()
            let id = try #require(await world.rows().first).text("id")
            world.fixture.clock.advance(by: Double(age))
            #expect(try await (world.sessions.live(id: id) != nil) == isLive)
            #expect(try await world.sessions.purge() == (isLive ? 0 : 1))
        }
        let world = try await TokenlessFixture()
        var tokens = try await world.tokens(of: world.signIn(secondsAgo: 7200 - 1500))
        world.fixture.clock.advance(by: 1499)
        tokens = try await world.fixture.refresh(tokens.refreshToken)
        world.fixture.clock.advance(by: 1)
        await #expect(throws: OAuthError.invalidGrant) { try await world.fixture.refresh(tokens.refreshToken) }
    }

    @Test("A sign-in that has yet to come is one of now")
    func future() async throws {
        let world = try await TokenlessFixture()
        _ = try await world.tokens(of: world.signIn(secondsAgo: -3600))
        let row = try #require(await world.rows().first)
        #expect(try row.integer("created_at") == world.fixture.clock.epochSeconds)
    }
}
