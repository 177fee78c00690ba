import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("The sessions of a user, as administrators see and end them")
struct UserSessionsTests {
    /// A realm with an administrator and Ana of the fixture.
    struct World {
        let fixture: ProviderFixture
        let administration: UserAdministration
        let admin: LiveSession

        init(_ fixture: ProviderFixture) async throws {
            self.fixture = fixture
            administration = UserAdministration(
                Administration(fixture.context), passwords: Passwords(fixture.context, policy: PasswordPolicy(logN: 4)))
            let root = try #require(
                try await Users(fixture.context).create(
                    username: "root", realm: "/alpha", passwordHash: nil, roles: [.admin]))
            let token = try await Sessions(fixture.context).begin(
                userID: root.id, realm: "/alpha", limits: ProviderFixture.longSession
            ).token
            admin = try #require(try await Sessions(fixture.context).live(token: token))
        }

        func list() async throws -> [UserAdministration.ListedSession] {
            try await administration.sessions(of: "ana", by: admin)
        }
    }

    @Test("A session with a token and one without are listed with their clients, and nothing that could be presented")
    func listed() async throws {
        let world = try await World(try await ProviderFixture())
        let fixture = world.fixture
        let tokenless = TokenlessFixture(fixture)
        _ = try await fixture.tokens()
        fixture.clock.advance(by: 60)
        let tokens = try await tokenless.tokens(client: "back end")
        let listed = try await world.list()
        #expect(listed.map(\.hasToken) == [false, true])
        #expect(listed.map(\.clients) == [["back end"], ["bank-app"]])
        #expect(listed.map(\.authLevel) == [3, 0] && listed.map(\.isBound) == [false, false])
        #expect(listed.map(\.acr) == ["urn:bank:device", nil] && listed.map(\.amr) == [["pop", "pin"], []])
        #expect(listed.last?.auditID == fixture.session.auditID)
        #expect(try jwtClaims(tokens.idToken)["sid"] == listed.first.map { .string($0.auditID) })
        #expect(listed.first?.idleExpiresAt == fixture.clock.epochSeconds + 1800)
        let text = "\(listed)"
        #expect(!text.contains(fixture.session.id) && !text.contains("no-token"))
        #expect(try await fixture.audit(.adminSessions).map(\.outcome) == [.success])

        fixture.clock.advance(by: 1800)
        #expect(try await world.list().map(\.hasToken) == [true], "what has ended is not listed")
    }

    @Test("A client whose grant was revoked is not named")
    func revoked() async throws {
        let world = try await World(try await ProviderFixture())
        let tokens = try await world.fixture.tokens()
        try await world.fixture.grants.revoke(
            try ProviderFixture.parameters([
                "client_id": "bank-app", "token": try #require(tokens.refreshToken).reveal(),
            ]))
        #expect(try await world.list().map(\.clients) == [[]])
    }

    @Test("One session ends alone, once, and the record names it and who has ended it")
    func ended() async throws {
        let world = try await World(try await ProviderFixture())
        let fixture = world.fixture
        let tokens = try await TokenlessFixture(fixture).tokens()
        let session = try #require(await world.list().first { !$0.hasToken })
        try await world.administration.endSession(session.auditID, of: "ana", by: world.admin)
        #expect(try await world.list().map(\.hasToken) == [true])
        #expect(try await !fixture.isLive(tokens))
        let records = try await fixture.audit(.sessionEnd)
        #expect(records.count == 1 && records.first?.reason == "administrator")
        #expect(records.first?.sessionAuditID == session.auditID && records.first?.userID == fixture.user.id)
        #expect(records.first?.detail["administrator"] == .string(world.admin.user.id))
        for id in [session.auditID, "", world.admin.auditID, fixture.session.id] {
            await #expect(throws: EngineError(.notFound)) {
                try await world.administration.endSession(id, of: "ana", by: world.admin)
            }
        }
        #expect(try await fixture.audit(.sessionEnd).count == 1)
        #expect(try await Sessions(fixture.context).live(id: world.admin.id) != nil)
    }

    @Test("Without the role nobody lists or ends sessions, and the attempt is on record")
    func refused() async throws {
        let world = try await World(try await ProviderFixture())
        let ana = world.fixture.session
        await #expect(throws: EngineError.forbidden) { try await world.administration.sessions(of: "root", by: ana) }
        await #expect(throws: EngineError.forbidden) {
            try await world.administration.endSession(world.admin.auditID, of: "root", by: ana)
        }
        await #expect(throws: EngineError(.notFound)) {
            try await world.administration.sessions(of: "nobody", by: world.admin)
        }
        #expect(try await world.fixture.audit(.adminSessions).map(\.outcome) == [.refused, .refused])
        #expect(try await Sessions(world.fixture.context).live(id: world.admin.id) != nil)
    }
}
