import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Sessions")
struct SessionsTests {
    @Test("A session idles away at the second", arguments: [(1799, true), (1800, false)])
    func idle(age: Int, isLive: Bool) async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let sessions = Sessions(fixture.context)
        #expect(fixture.session.idleExpiresAt == fixture.clock.epochSeconds + 1800)
        fixture.clock.advance(by: Double(age))
        #expect(try await (sessions.live(token: fixture.sessionToken) != nil) == isLive)
        #expect(try await sessions.purge() == (isLive ? 0 : 1))
    }

    @Test("However much it is used, a session ends at its maximum", arguments: [(7199, true), (7200, false)])
    func maximum(age: Int64, isLive: Bool) async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let sessions = Sessions(fixture.context)
        let start = fixture.clock.epochSeconds
        while fixture.clock.epochSeconds - start < age {
            let session = try #require(await sessions.live(token: fixture.sessionToken))
            try await sessions.touch(session)
            fixture.clock.advance(by: Double(min(600, age - (fixture.clock.epochSeconds - start))))
        }
        #expect(try await (sessions.live(token: fixture.sessionToken) != nil) == isLive)
        #expect(try await sessions.purge() == (isLive ? 0 : 1))
    }

    @Test(
        "A time that no clock shows, and that somebody has written into the database, is an error",
        arguments: [("created_at", .min), ("created_at", .max), ("expires_at", .max)] as [(String, Int64)])
    func rewritten(column: String, value: Int64) async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let sessions = Sessions(fixture.context)
        _ = try await fixture.context.database.run(
            SQLStatement("UPDATE sessions SET \(SQL(verbatim: column)) = \(value) WHERE id = \(fixture.session.id)"))
        await #expect(throws: StoreError(.corrupt, "")) {
            // The age of such a session is a number that does not fit, and Swift ends the process there.
            _ = try await sessions.live(token: fixture.sessionToken).map { fixture.clock.epochSeconds - $0.createdAt }
        }
    }

    @Test("Use is noted at most once a minute", arguments: [(59, 0), (60, 60), (61, 61)])
    func touch(age: Int64, noted: Int64) async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let sessions = Sessions(fixture.context)
        fixture.clock.advance(by: Double(age))
        try await sessions.touch(try #require(await sessions.live(token: fixture.sessionToken)))
        let session = try #require(await sessions.live(token: fixture.sessionToken))
        #expect(session.latestAccess == fixture.session.latestAccess + noted)
    }

    @Test("A late touch does not set the time back")
    func lateTouch() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let sessions = Sessions(fixture.context)
        let old = try #require(await sessions.live(token: fixture.sessionToken))
        fixture.clock.advance(by: 600)
        try await sessions.touch(old)
        fixture.clock.advance(by: -300)
        try await sessions.touch(old)
        #expect(try await sessions.live(token: fixture.sessionToken)?.latestAccess == old.latestAccess + 600)
    }

    @Test("A touch does not bring an ended session back")
    func touchAfterEnd() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let sessions = Sessions(fixture.context)
        fixture.clock.advance(by: 120)
        let session = try #require(await sessions.live(token: fixture.sessionToken))
        #expect(try await sessions.end(id: session.id))
        try await sessions.touch(session)
        #expect(try await sessions.live(token: fixture.sessionToken) == nil)
    }

    @Test("A user who may not sign in has no session until they may again")
    func deactivated() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let users = Users(fixture.context)
        try await users.setActive(false, userID: fixture.user.id)
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) == nil)
        try await users.setActive(true, userID: fixture.user.id)
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) != nil)
    }

    @Test("Of fifty that end one session at once, one has ended it")
    func parallelEnd() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let ended = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                group.addTask { try await Sessions(fixture.context).end(id: fixture.session.id) }
            }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(ended == 1)
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) == nil)
    }

    @Test("Ending all of a user leaves the others'")
    func endAll() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let sessions = Sessions(fixture.context)
        let bob = try #require(await Users(fixture.context).create(username: "bob", realm: "/alpha", passwordHash: nil))
        let other = try await sessions.begin(userID: bob.id, realm: "/alpha", limits: SessionLimits()).token
        _ = try await sessions.begin(userID: fixture.user.id, realm: "/alpha", limits: SessionLimits())
        #expect(try await sessions.endAll(userID: fixture.user.id) == 2)
        #expect(try await sessions.live(token: other)?.user.username == "bob")
    }

    @Test("A session begins together with what accompanies it, or not at all")
    func accompanying() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let impossible = SQLStatement("UPDATE users SET active = 1 WHERE id = 'nobody'", expecting: .exactly(1))
        await #expect(throws: StoreError(.unexpectedCount, "")) {
            try await Sessions(fixture.context).begin(
                userID: fixture.user.id, realm: "/alpha", limits: SessionLimits(), accompanying: [impossible])
        }
        #expect(try await fixture.count("sessions") == 1)
    }

    @Test("The text of a look-up is the one that is put together from its parts, whatever the apps are called")
    func lookUps() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let shop = ProviderFixture.pay { app in
            app.client.id = "session"
            app.allowsStateless = true
        }
        let files: [[String: [OAuthApp]]?] = [nil, [:], ["/alpha": [ProviderFixture.pay(), shop], "/beta": [shop]]]
        for apps in files {
            let lookUp = Sessions(fixture.context, apps: apps).lookUp(token: fixture.sessionToken, keyThumbprint: nil)
            let composed = lookUp.composed()
            #expect(lookUp.reading == composed.reading)
            for sign in ["?", "$"] as [Unicode.Scalar] {
                #expect(lookUp.reading.sql.text(parameter: sign) == composed.reading.sql.text(parameter: sign))
            }
            #expect(try await fixture.context.database.run(lookUp.reading).count == 1)
        }
    }

    @Test("Neither the hash of a token nor another text is a token")
    func notTokens() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        for text in [fixture.session.id, fixture.session.auditID, "", "x", fixture.sessionToken.reveal() + "A"] {
            #expect(try await Sessions(fixture.context).live(token: Secret(text)) == nil)
        }
    }
}
