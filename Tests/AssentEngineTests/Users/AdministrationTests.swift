import AssentCore
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
}
