import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Authentication: with a session")
struct UpgradeTests {
    private static let credentials: [JSONValue?] = [.string("ana"), .string(JourneyFixture.password)]

    @Test("A session that is enough comes back at once", arguments: [nil, "Password"])
    func enough(journey: String?) async throws {
        let fixture = try await JourneyFixture()
        let token = try await fixture.signIn()
        let reply = try await fixture.send(
            type: journey == nil ? nil : "service", value: journey, session: token
        ).success()
        #expect(reply.token == token)
        #expect(!reply.isNewSession)
        #expect(try await fixture.count("sessions") == 1)
    }

    @Test("ForceAuth, an advice, another journey and one that must run always run")
    func notEnough() async throws {
        let fixture = try await JourneyFixture()
        let token = try await fixture.signIn()
        _ = try Page(await fixture.send(forceAuth: true, session: token))
        _ = try await fixture.start("Password", forceAuth: true, session: token)
        _ = try await fixture.start("Login", session: token)
        _ = try await fixture.start("Message", session: token)
        _ = try Page(
            await fixture.send(type: "composite_advice", value: AdviceXML.service("Password"), session: token))
        _ = try Page(
            await fixture.send(
                type: "composite_advice", value: AdviceXML.make("AuthLevelConditionAdvice", "4"), session: token))
    }

    @Test("A journey that must run is asked for by a client that names none as well, where it is the realm's own")
    func mustRunUnnamed() async throws {
        let fixture = try await JourneyFixture()
        var journey = JourneyFixture.byPassword
        journey.mustRun = true
        let authentication = Authentication(
            fixture.context,
            realms: ["/alpha": try RealmSignIn(journeys: [journey], defaultJourney: journey.name)],
            transactions: fixture.transactions, passwords: fixture.passwords,
            oneTimePasswords: fixture.oneTimePasswords, proofs: SenderProofs(fixture.context))
        let old = try await fixture.signIn()
        for type in [nil, "service"] as [String?] {
            let start = AuthenticateRequest(realm: "/alpha", authIndexType: type, sessionToken: old)
            let page = try Page(await authentication.authenticate(start))
            #expect(page.types == ["NameCallback", "PasswordCallback"])
        }
        let last = try Page(
            await authentication.authenticate(AuthenticateRequest(realm: "/alpha", sessionToken: old)))
        let answer = AuthenticateRequest(
            realm: "/alpha", sessionToken: old, answer: last.answered(Self.credentials))
        let new = try await authentication.authenticate(answer).token()
        #expect(new != old)
        #expect(try await fixture.sessions.live(token: old) == nil)
    }

    @Test("An upgrade gives a new token and ends the old session in the same moment")
    func upgrade() async throws {
        let fixture = try await JourneyFixture()
        let old = try await fixture.signIn()
        let first = try await fixture.start("Login", session: old)
        let second = try Page(await fixture.answer(first, Self.credentials, session: old))
        let success = try await fixture.answer(second, [.string(fixture.code())], session: old).success()
        let token = try #require(success.token)
        #expect(success.isNewSession)
        #expect(token != old)
        #expect(try await fixture.sessions.live(token: old) == nil)
        let session = try #require(try await fixture.sessions.live(token: token))
        #expect(session.properties["Service"]?.string == "Password|Login")
        #expect(session.authLevel == 5)
    }

    @Test("What a session ends with that no journey has made also ends the one that an upgrade makes of it")
    func inherited() async throws {
        let fixture = try await JourneyFixture()
        let (app, old) = (try await fixture.signIn(), try await fixture.signIn())
        let container = SigningID(random: SystemRandom())
        let (appID, now) = (try #require(try await fixture.sessions.live(token: app)).id, fixture.clock.epochSeconds)
        let id = try #require(try await fixture.sessions.live(token: old)).id
        _ = try await fixture.database.run([
            SQLStatement(
                """
                INSERT INTO grants (id, realm, client_id, user_id, session_id, scope, is_offline, created_at, expires_at,
                    epoch)
                VALUES ('grant', '/alpha', 'app', \(fixture.ana.id), \(appID), '', 0, \(now), \(now + 3600),
                    \(fixture.ana.epoch))
                """),
            SQLStatement(
                """
                UPDATE sessions SET did = \(container.text), grant_id = 'grant', is_of_journey = 0 WHERE id = \(id)
                """),
        ])
        let page = try await fixture.start("Password", forceAuth: true, session: old)
        let new = try await fixture.answer(page, Self.credentials, session: old).token()
        #expect(try await fixture.sessions.live(token: old) == nil)
        #expect(try #require(try await fixture.sessions.live(token: new)).isOfJourney)
        _ = try await fixture.database.run(SQLStatement("UPDATE grants SET revoked_at = 1"))
        #expect(try await fixture.sessions.live(token: new) == nil)
        _ = try await fixture.database.run(SQLStatement("UPDATE grants SET revoked_at = NULL"))
        #expect(try await fixture.sessions.live(token: new) != nil)
        _ = try await fixture.database.run(SQLStatement(LoginSQL.endSessions(of: container)))
        #expect(try await fixture.sessions.live(token: new) == nil)
        #expect(try await fixture.sessions.live(token: app) != nil)
    }

    @Test("A step-up keeps the higher level, and notes the level of the journey alone")
    func levels() async throws {
        let fixture = try await JourneyFixture()
        let old = try await fixture.signIn()
        _ = try await fixture.database.run(SQLStatement("UPDATE sessions SET auth_level = 9, is_of_journey = 0"))
        let page = try await fixture.start("Login", session: old)
        let second = try Page(await fixture.answer(page, Self.credentials, session: old))
        let new = try await fixture.answer(second, [.string(fixture.code())], session: old).token()
        let session = try #require(try await fixture.sessions.live(token: new))
        #expect(session.authLevel == 9 && session.journeyLevel == 5 && session.isOfJourney)
    }

    @Test("A journey that asks nothing keeps a session's level, and proves none of its own")
    func nothingAsked() async throws {
        let fixture = try await JourneyFixture()
        let old = try await fixture.signIn()
        _ = try await fixture.database.run(SQLStatement("UPDATE sessions SET auth_level = 9"))
        let page = try await fixture.start("Message", session: old)
        let new = try await fixture.answer(page, [nil, 0], session: old).token()
        let session = try #require(try await fixture.sessions.live(token: new))
        #expect(session.authLevel == 9 && session.journeyLevel == 0)
    }

    @Test("A journey that proves nothing raises no level, by its own or by a node, and was passed all the same")
    func nothingRaised() async throws {
        let nod = JourneyDefinition(
            name: "Nod", entry: "level",
            nodes: ["level": NodeDefinition("ModifyAuthLevelNode", outcomes: ["outcome": .success])], authLevel: 3)
        let fixture = try await JourneyFixture(more: [nod])
        let old = try await fixture.signIn()
        let before = try #require(try await fixture.sessions.live(token: old))
        let new = try await fixture.send(type: "service", value: "Nod", session: old).token()
        let after = try #require(try await fixture.sessions.live(token: new))
        #expect(after.authLevel == before.authLevel && after.authLevel < 3 && after.journeyLevel == 0)
        #expect(after.properties["Service"]?.string == "Password|Nod")
    }

    @Test("A journey that proves nothing is no sign-in: its session is no younger than the one before")
    func age() async throws {
        let short = JourneyDefinition(
            name: "Short", entry: "limit",
            nodes: [
                "limit": NodeDefinition(
                    "SetSessionPropertiesNode", config: JSONObject([.init(name: "maxSessionTime", value: 5)]),
                    outcomes: ["outcome": .success])
            ])
        let fixture = try await JourneyFixture(more: [short])
        let old = try await fixture.signIn()
        let before = try #require(try await fixture.sessions.live(token: old))
        fixture.clock.advance(by: 20 * 60)
        let message = try await fixture.start("Message", session: old)
        let new = try await fixture.answer(message, [nil, 0], session: old).token()
        let after = try #require(try await fixture.sessions.live(token: new))
        #expect(after.createdAt == before.createdAt && after.expiresAt == before.expiresAt)
        #expect(after.latestAccess == fixture.clock.epochSeconds)
        // A journey may shorten what is left.
        let shortened = try await fixture.send(type: "service", value: "Short", session: new).token()
        let left = try #require(try await fixture.sessions.live(token: shortened))
        #expect(left.createdAt == before.createdAt && left.expiresAt == fixture.clock.epochSeconds + 300)
        let page = try await fixture.start("Password", forceAuth: true, session: shortened)
        let proved = try await fixture.answer(page, Self.credentials, session: shortened).token()
        let last = try #require(try await fixture.sessions.live(token: proved))
        #expect(last.createdAt == fixture.clock.epochSeconds && last.expiresAt > before.expiresAt)
    }

    @Test("A journey that proves nothing keeps a shorter time without use of the session before")
    func idle() async throws {
        let fixture = try await JourneyFixture()
        let old = try await fixture.signIn()
        _ = try await fixture.database.run(SQLStatement("UPDATE sessions SET max_idle = 60"))
        let message = try await fixture.start("Message", session: old)
        let new = try await fixture.answer(message, [nil, 0], session: old).token()
        #expect(try await fixture.sessions.live(token: new)?.maxIdle == 60)
        // The control: a sign-in has the realm's again.
        let page = try await fixture.start("Password", forceAuth: true, session: new)
        let proved = try await fixture.answer(page, Self.credentials, session: new).token()
        #expect(try await fixture.sessions.live(token: proved)?.maxIdle == SessionLimits().maxIdle)
    }

    @Test("A journey that proves nothing makes no session of one that no journey has made")
    func unproved() async throws {
        let fixture = try await JourneyFixture()
        let old = try await fixture.signIn()
        let id = try #require(try await fixture.sessions.live(token: old)).id
        _ = try await fixture.database.run(SQLStatement("UPDATE sessions SET is_of_journey = 0"))
        let page = try await fixture.start("Message", session: old)
        await expectError(.loginFailed) { try await fixture.answer(page, [nil, 0], session: old) }
        #expect(try await fixture.sessions.live(id: id) != nil)
    }

    @Test("An upgrade as somebody else is refused, and the session stays")
    func otherUser() async throws {
        let fixture = try await JourneyFixture()
        let old = try await fixture.signIn()
        let page = try await fixture.start("Password", forceAuth: true, session: old)
        await #expect(throws: EngineError(.differentUser)) {
            try await fixture.answer(page, [.string("ben"), .string(JourneyFixture.password)], session: old)
        }
        #expect(try await fixture.sessions.live(token: old) != nil)
        #expect(try await fixture.count("sessions") == 1)
        #expect(try await fixture.audited() == ["refused differentUser", "success -"])
    }

    @Test("A failed upgrade leaves the session as it is")
    func failedUpgrade() async throws {
        let fixture = try await JourneyFixture()
        let old = try await fixture.signIn()
        let page = try await fixture.start("Password", forceAuth: true, session: old)
        await expectError(.loginFailed) {
            try await fixture.answer(page, [.string("ana"), .string("wrong")], session: old)
        }
        #expect(try await fixture.sessions.live(token: old) != nil)
    }

    @Test("41: A journey that proves nothing renews a journey's session, and never one that a link has begun")
    func linked() async throws {
        let fixture = try await JourneyFixture()
        let token = try await fixture.signIn()
        let renewed = try await fixture.send(type: "service", value: "Silent", forceAuth: true, session: token).token()
        // What a link begins is marked as no journey's.
        _ = try await fixture.database.run(SQLStatement("UPDATE sessions SET is_of_journey = 0"))
        await expectError(.loginFailed) {
            try await fixture.send(type: "service", value: "Silent", forceAuth: true, session: renewed)
        }
        let left = try #require(try await fixture.sessions.live(token: renewed))
        #expect(!left.isOfJourney)
        #expect(try await fixture.count("sessions") == 1)
    }

    @Test("A session that has ended during a journey no longer says who is there")
    func endedSession() async throws {
        let fixture = try await JourneyFixture()
        let old = try await fixture.signIn()
        let page = try await fixture.start("Message", session: old)
        let id = try #require(try await fixture.sessions.live(token: old)).id
        #expect(try await fixture.sessions.end(id: id))
        await expectError(.loginFailed) { try await fixture.answer(page, [nil, 0], session: old) }
        #expect(try await fixture.count("sessions") == 0)
    }

    @Test("A code alone makes no session of one that has ended during its journey", arguments: [true, false])
    func endedBeforeCode(isSignedOut: Bool) async throws {
        let byCode = JourneyDefinition(
            name: "ByCode", entry: "otp", nodes: ["otp": JourneyFixture.otp], authLevel: 5)
        let fixture = try await JourneyFixture(more: [byCode])
        let old = try await fixture.signIn()
        fixture.clock.advance(by: 29 * 60)
        let page = try await fixture.start("ByCode", session: old)
        let id = try #require(try await fixture.sessions.live(token: old)).id
        if isSignedOut {
            #expect(try await fixture.sessions.end(id: id))
        } else {
            fixture.clock.advance(by: 60)
        }
        await expectError(.loginFailed) {
            try await fixture.answer(page, [.string(fixture.code())], session: old)
        }
        #expect(try await fixture.sessions.purge() == (isSignedOut ? 0 : 1))
        #expect(try await fixture.count("sessions") == 0)
        // The control: with its session it is a step-up.
        fixture.clock.advance(by: 60)
        let alive = try await fixture.signIn()
        let again = try await fixture.start("ByCode", session: alive)
        let new = try await fixture.answer(again, [.string(fixture.code())], session: alive).token()
        #expect(try await fixture.sessions.live(token: new)?.authLevel == 5)
    }

    @Test("A session that ends while the last answer of its upgrade is checked hands nothing on")
    func endedMeanwhile() async throws {
        let fixture = try await JourneyFixture()
        let old = try await fixture.signIn()
        let id = try #require(try await fixture.sessions.live(token: old)).id
        _ = try await fixture.database.run(SQLStatement("UPDATE sessions SET auth_level = 9"))
        let answer = try await fixture.start("Password", forceAuth: true, session: old).answered(Self.credentials)
        let database = InterruptedDatabase(fixture.database) { statement in
            guard statement.sql.text().contains("INSERT INTO sessions") else { return false }
            return try await fixture.sessions.end(id: id)
        }
        let context = try TransactionFixture.context(database, clock: fixture.clock)
        let slow = try JourneyFixture.authentication(
            context, fixture.passwords, fixture.oneTimePasswords, Transactions(context))
        await expectError(.stepExpired) {
            try await slow.authenticate(AuthenticateRequest(realm: "/alpha", sessionToken: old, answer: answer))
        }
        #expect(database.wasInterrupted)
        #expect(try await fixture.count("sessions") == 0)
        // The same answer is a sign-in of its own by now.
        let new = try await fixture.send(answer, session: old).token()
        let session = try #require(try await fixture.sessions.live(token: new))
        #expect(session.authLevel < 9 && session.properties["Service"]?.string == "Password")
    }

    @Test("A journey that was begun without a session does not take one up later")
    func lateSession() async throws {
        let fixture = try await JourneyFixture()
        let token = try await fixture.signIn()
        let page = try await fixture.start("Message")
        await expectError(.loginFailed) { try await fixture.answer(page, [nil, 0], session: token) }
        #expect(try await fixture.count("sessions") == 1)
    }

    @Test("A session of another realm, a dead and an invented one are no session")
    func noSession() async throws {
        let fixture = try await JourneyFixture()
        let token = try await fixture.signIn()
        _ = try Page(await fixture.send(realm: "/beta", session: token))
        _ = try Page(await fixture.send(session: Secret("invented")))
        fixture.clock.advance(by: 30 * 60)
        _ = try Page(await fixture.send(session: token))
    }
}
