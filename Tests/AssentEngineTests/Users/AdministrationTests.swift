import AssentCore
import AssentOTP
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Administration")
struct AdministrationTests {
    private let denied = EngineError.forbidden

    @Test("The first administrator is made by the token, once; it is the same on all nodes and at each start")
    func bootstrap() async throws {
        let fixture = try await ProviderFixture()
        let administration = Administration(fixture.context)
        let tokens = try await withThrowingTaskGroup(of: Secret?.self) { group in
            for _ in 0..<20 { group.addTask { try await administration.bootstrapToken() } }
            return try await group.reduce(into: [Secret?]()) { $0.append($1) }
        }
        let token = try #require(tokens.first ?? nil)
        #expect(tokens.allSatisfy { $0 == token })
        await #expect(throws: denied) { try await administration.bootstrap(Secret("guess"), session: fixture.session) }
        try await administration.bootstrap(token, session: fixture.session)
        let session = try #require(try await Sessions(fixture.context).live(token: fixture.sessionToken))
        #expect(session.user.roles == [.admin])
        #expect(try await administration.bootstrapToken() == nil)
        await #expect(throws: denied) { try await administration.bootstrap(token, session: session) }
        let records = try await AuditLog(fixture.context).newest(10).filter { $0.event == .adminBootstrap }
        #expect(records.count { $0.outcome == .success } == 1)
        #expect(records.count { $0.outcome == .refused && $0.reason == "token" } == 2)
    }

    @Test("An unused token makes nobody an administrator once somebody is one by other means")
    func lateBootstrap() async throws {
        let fixture = try await ProviderFixture()
        let administration = Administration(fixture.context)
        let token = try #require(try await administration.bootstrapToken())
        _ = try await Users(fixture.context).create(
            username: "root", realm: fixture.session.realm, passwordHash: nil, roles: [.admin])
        await #expect(throws: denied) { try await administration.bootstrap(token, session: fixture.session) }
        let session = try #require(try await Sessions(fixture.context).live(token: fixture.sessionToken))
        #expect(session.user.roles.isEmpty)
    }

    @Test("Fifty sessions with the one token make one administrator")
    func race() async throws {
        let fixture = try await ProviderFixture()
        let administration = Administration(fixture.context)
        let token = try #require(try await administration.bootstrapToken())
        let session = fixture.session
        let wins = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                group.addTask { (try? await administration.bootstrap(token, session: session)) != nil }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(wins == 1)
    }

    @Test("Of two administrators who shut each other out at the same moment one stays")
    func eachOther() async throws {
        let fixture = try await ProviderFixture()
        let administration = Administration(fixture.context)
        let token = try #require(try await administration.bootstrapToken())
        try await administration.bootstrap(token, session: fixture.session)
        let session = try #require(try await Sessions(fixture.context).live(token: fixture.sessionToken))
        let names = [session.user.username, "second"]
        _ = try await Users(fixture.context).create(username: "second", realm: session.realm, passwordHash: nil)
        for _ in 0..<20 {
            for name in names { try await administration.setRoles([.admin], of: name, by: session) }
            let done = await withTaskGroup(of: Bool.self) { group in
                for name in names {
                    group.addTask { (try? await administration.setRoles([], of: name, by: session)) != nil }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(done == 1)
        }
    }

    @Test("Without the role nothing is done, and the attempt is on record")
    func withoutRole() async throws {
        let fixture = try await ProviderFixture()
        let administration = Administration(fixture.context)
        let name = fixture.session.user.username
        await #expect(throws: denied) { try await administration.setRoles([.admin], of: name, by: fixture.session) }
        await #expect(throws: denied) { try await administration.setActive(false, of: name, by: fixture.session) }
        await #expect(throws: denied) {
            try await administration.auditRecords(.newest(limit: 10), by: fixture.session)
        }
        let events = try await AuditLog(fixture.context).newest(10).filter { $0.outcome == .refused }.map(\.event)
        #expect(Set(events).isSuperset(of: [.adminRoles, .adminActive, .auditRead]))
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken)?.user.roles == [])
    }

    @Test("The last administrator can neither be shut out nor lose the role; another user can")
    func lastAdministrator() async throws {
        let fixture = try await ProviderFixture()
        let administration = Administration(fixture.context)
        let token = try #require(try await administration.bootstrapToken())
        try await administration.bootstrap(token, session: fixture.session)
        let session = try #require(try await Sessions(fixture.context).live(token: fixture.sessionToken))
        let name = session.user.username
        let conflict = EngineError(.lastAdministrator)
        await #expect(throws: conflict) { try await administration.setActive(false, of: name, by: session) }
        await #expect(throws: conflict) { try await administration.setRoles([.auditor], of: name, by: session) }
        let refused = try await AuditLog(fixture.context).newest(2)
        #expect(refused.map(\.event) == [.adminRoles, .adminActive])
        #expect(refused.allSatisfy { $0.outcome == .refused && $0.reason == "lastAdministrator" })
        #expect(refused.allSatisfy { $0.detail["about"]?.string == session.user.id })
        let other = try await Users(fixture.context).create(
            username: "second", realm: session.realm, passwordHash: nil)
        let second = try #require(other)
        try await administration.setActive(false, of: "second", by: session)
        #expect(try await Users(fixture.context).find(id: second.id)?.isActive == false)
        try await administration.setActive(true, of: "second", by: session)
        try await administration.setRoles([.admin], of: "second", by: session)
        try await administration.setRoles([.auditor], of: name, by: session)
        #expect(try await Users(fixture.context).find(id: session.user.id)?.roles == [.auditor])
        await #expect(throws: EngineError(.notFound)) {
            try await administration.setActive(false, of: "nobody", by: session)
        }
    }

    @Test("The last administrator of a realm stays, also when another realm has one")
    func lastOfRealm() async throws {
        let fixture = try await ProviderFixture()
        let administration = Administration(fixture.context)
        let token = try #require(try await administration.bootstrapToken())
        try await administration.bootstrap(token, session: fixture.session)
        _ = try await Users(fixture.context).create(
            username: "other", realm: "/beta", passwordHash: nil, roles: [.admin])
        let session = try #require(try await Sessions(fixture.context).live(token: fixture.sessionToken))
        let (name, conflict) = (session.user.username, EngineError(.lastAdministrator))
        await #expect(throws: conflict) { try await administration.setRoles([], of: name, by: session) }
        await #expect(throws: conflict) { try await administration.setActive(false, of: name, by: session) }
        #expect(try await Users(fixture.context).find(id: session.user.id)?.roles == [.admin])
    }

    @Test("A lock ends sessions and grants, and they stay ended when the user is let in again")
    func lockEnds() async throws {
        let fixture = try await ProviderFixture()
        let administration = Administration(fixture.context)
        _ = try await Users(fixture.context).create(
            username: "boss", realm: "/alpha", passwordHash: nil, roles: [.admin])
        let boss = try #require(try await Users(fixture.context).find(username: "boss", realm: "/alpha"))
        let token = try await Sessions(fixture.context).begin(
            userID: boss.id, realm: "/alpha", limits: SessionLimits()
        ).token
        let session = try #require(try await Sessions(fixture.context).live(token: token))
        let offline = try await fixture.tokens(["scope": "openid offline_access"])
        let code = try await fixture.code()
        let name = fixture.user.username
        try await administration.setActive(false, of: name, by: session)
        try await administration.setActive(true, of: name, by: session)
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) == nil)
        #expect(try await !fixture.isLive(offline))
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(offline.refreshToken) }
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code) }
        #expect(try await Sessions(fixture.context).live(token: token) != nil)
    }

    /// Ana of the journeys, and somebody who administers her.
    private struct World {
        let fixture: JourneyFixture
        let administration: Administration
        let users: UserAdministration
        let boss: LiveSession

        init() async throws {
            fixture = try await JourneyFixture()
            administration = Administration(fixture.context)
            users = UserAdministration(administration, passwords: fixture.passwords)
            let boss = try #require(
                try await Users(fixture.context).create(
                    username: "boss", realm: "/alpha", passwordHash: nil, roles: [.admin]))
            let token = try await fixture.sessions.begin(userID: boss.id, realm: "/alpha", limits: SessionLimits())
                .token
            self.boss = try #require(try await fixture.sessions.live(token: token))
        }

        /// A sign-in whose password was right, and that waits for the code.
        func begun(_ password: String = JourneyFixture.password) async throws -> Page {
            try Page(await fixture.answer(fixture.start("Login"), [.string("ana"), .string(password)]))
        }
    }

    @Test("A lock, another password and another second factor end the sign-ins that have begun, also after an unlock")
    func begunSignIns() async throws {
        let world = try await World()
        let fixture = world.fixture
        let locked = try await world.begun()
        try await world.administration.setActive(false, of: "ana", by: world.boss)
        try await world.administration.setActive(true, of: "ana", by: world.boss)
        await expectError(.loginFailed) { try await fixture.answer(locked, [.string(fixture.code())]) }

        fixture.clock.advance(by: 30)
        let otherPassword = try await world.begun()
        try await world.users.setPassword(Secret("another horse 7419"), of: "ana", by: world.boss)
        await expectError(.loginFailed) { try await fixture.answer(otherPassword, [.string(fixture.code())]) }

        let otherFactor = try await world.begun("another horse 7419")
        let totp = try await world.users.renewSecondFactor(of: "ana", by: world.boss)
        let code = totp.code(at: fixture.clock.now)
        await expectError(.loginFailed) { try await fixture.answer(otherFactor, [.string(code)]) }
        #expect(try await fixture.audited().filter { $0 == "refused outdated" }.count == 3)
        #expect(try await fixture.count("sessions") == 1)

        fixture.clock.advance(by: 30)
        let begun = try await world.begun("another horse 7419")
        let token = try await fixture.answer(begun, [.string(totp.code(at: fixture.clock.now))]).token()
        #expect(try await fixture.sessions.live(token: token)?.user.username == "ana")
    }

    @Test("A sign-in that races a lock gives no session that lives when the user is let in again")
    func lockRace() async throws {
        let world = try await World()
        let fixture = world.fixture
        for _ in 0..<20 {
            async let signedIn = try? fixture.signIn()
            try await world.administration.setActive(false, of: "ana", by: world.boss)
            let token = await signedIn
            try await world.administration.setActive(true, of: "ana", by: world.boss)
            if let token { #expect(try await fixture.sessions.live(token: token) == nil) }
        }
        // It was prepared before the lock and is stored after it.
        let late = fixture.sessions.prepare(
            userID: fixture.ana.id, epoch: fixture.ana.epoch, realm: "/alpha", authLevel: 0, limits: SessionLimits(),
            properties: JSONObject())
        await #expect(throws: StoreError(.unexpectedCount, "")) { try await fixture.database.run(late.statement) }
    }

    @Test("What is stored at the very moment of a lock, so that the lock does not see it, is not valid after an unlock")
    func storedWithin() async throws {
        let fixture = try await ProviderFixture()
        let offline = try await fixture.tokens(["scope": "openid offline_access"])
        let code = try await fixture.code()
        _ = try await fixture.database.run(SQLStatement("UPDATE users SET epoch = epoch + 1"))
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) == nil)
        #expect(try await !fixture.isLive(offline))
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(offline.refreshToken) }
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code) }
    }
}
