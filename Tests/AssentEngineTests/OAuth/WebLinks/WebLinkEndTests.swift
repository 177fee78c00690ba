import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("What ends a link, and the session that it has made")
struct WebLinkEndTests {
    /// What ends the app's grant, or all that its user has.
    enum End: CaseIterable {
        case revocation, signOut, instance, lock, otherPassword, idleness

        func happen(_ fixture: ProviderFixture, _ access: AccessGrant) async throws {
            switch self {
            case .revocation:
                _ = try await fixture.database.run(SQLStatement("UPDATE grants SET revoked_at = 1"))
            case .signOut: #expect(try await Sessions(fixture.context).end(id: fixture.session.id))
            case .instance:
                try await fixture.registrations.end(access.clientID, by: try await fixture.administrator())
            case .lock:
                _ = try await fixture.database.run(SQLStatement("UPDATE users SET active = 0 WHERE username = 'ana'"))
            case .otherPassword:
                _ = try await fixture.database.run(
                    SQLStatement("UPDATE users SET epoch = epoch + 1 WHERE username = 'ana'"))
            case .idleness:
                _ = try await fixture.database.run(
                    SQLStatement("UPDATE sessions SET max_idle = 0 WHERE id = \(fixture.session.id)"))
            }
        }
    }

    @Test("41: The browser's session ends with the app's grant, and an unused link with it", arguments: End.allCases)
    func ends(end: End) async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let access = try await fixture.linkingAccess(scope: "openid accounts")
        let (link, shown) = (try await fixture.webLink(for: access), try await fixture.webLink(for: access))
        let token = try #require(try await fixture.use(link))
        let found = try #require(try await fixture.links.find(shown))
        #expect(try await fixture.live(token) != nil)
        try await end.happen(fixture, access)
        #expect(try await fixture.live(token) == nil)
        #expect(try await fixture.links.find(shown) == nil)
        #expect(try await fixture.links.use(found) == nil)
    }

    @Test("A grant that outlives its session keeps the browser's session, and makes no more links")
    func offline() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let access = try await fixture.linkingAccess()
        let token = try #require(try await fixture.use(fixture.webLink(for: access)))
        #expect(try await Sessions(fixture.context).end(id: fixture.session.id))
        #expect(try await fixture.live(token) != nil)
        #expect(try await fixture.refusalCode { _ = try await fixture.webLink(for: access) } == "login_required")
        _ = try await fixture.database.run(SQLStatement("UPDATE grants SET revoked_at = 1"))
        #expect(try await fixture.live(token) == nil)
    }

    @Test("Grants of a session that a link has made end with the app's grant, and make no links")
    func chain() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let token = try #require(try await fixture.use(fixture.webLink()))
        let browser = try #require(try await fixture.live(token))
        let (registered, key) = try await fixture.instance()
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization([
                "client_id": registered.id, "redirect_uri": "https://pay.example/cb",
            ]), session: browser)
        guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
        let second = try await fixture.exchange(
            try #require(redirect["code"]),
            AssertionKey.form(
                try await key.assertion(of: registered.id, now: fixture.clock),
                ["redirect_uri": "https://pay.example/cb"]))
        let access = try #require(try await fixture.grants.access(token: second.accessToken))
        #expect(try await fixture.refusalCode { _ = try await fixture.webLink(for: access) } == "login_required")
        _ = try await fixture.database.run(
            SQLStatement("UPDATE grants SET revoked_at = 1 WHERE session_id = \(fixture.session.id)"))
        #expect(try await !fixture.isLive(second))
        #expect(try await fixture.live(token) == nil)
    }

    @Test("Another client gets no offline_access by a link's session: what it gets ends with the app's grant")
    func otherClient() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        func tokens(by session: LiveSession) async throws -> IssuedTokens {
            let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
                try ProviderFixture.authorization(["scope": "openid accounts offline_access"]), session: session)
            guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
            return try await fixture.exchange(try #require(redirect["code"]))
        }
        let token = try #require(try await fixture.use(fixture.webLink()))
        let linked = try await tokens(by: try #require(try await fixture.live(token)))
        #expect(linked.scopes == ["openid", "accounts"] && linked.refreshToken != nil)
        // The app's own session, which rests on nothing else, gives it.
        let own = try await tokens(by: fixture.session)
        #expect(own.scopes == ["openid", "accounts", "offline_access"])
        _ = try await fixture.database.run(
            SQLStatement("UPDATE grants SET revoked_at = 1 WHERE client_id LIKE 'pay~%'", expecting: .exactly(1)))
        #expect(try await !fixture.isLive(linked))
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(linked.refreshToken) }
        #expect(try await fixture.isLive(own))
    }

    @Test("The session that the browser had ends on record, but not the app's own")
    func replaced() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let access = try await fixture.linkingAccess()
        func use(replacing other: LiveSession) async throws -> Secret? {
            let found = try #require(try await fixture.links.find(fixture.webLink(for: access)))
            return try await fixture.links.use(found, replacing: other)
        }
        let first = try #require(try await fixture.live(try await use(replacing: fixture.session)))
        #expect(try await fixture.live(fixture.sessionToken) != nil)
        #expect(try await fixture.audit(.sessionEnd).isEmpty)
        let second = try await use(replacing: first)
        #expect(try await fixture.live(second) != nil)
        #expect(try await Sessions(fixture.context).live(id: first.id) == nil)
        let ends = try await fixture.audit(.sessionEnd)
        #expect(ends.map(\.sessionAuditID) == [first.auditID] && ends.first?.reason == "replaced")
    }

    @Test("A link whose grant is deleted while it is made asks for a sign-in: the server has not failed")
    func deletedMeanwhile() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let access = try await fixture.linkingAccess()
        // So PostgreSQL says it: the statement has found the grant, and waits for who deletes it.
        let database = InterruptedDatabase(fixture.database) { statement in
            guard statement.sql.text().contains("INSERT INTO web_links") else { return false }
            throw StoreError(.constraint, "The row of the grant is gone.")
        }
        let links = WebLinks(fixture.context.anotherNode(on: database))
        let code = try await fixture.refusalCode {
            _ = try await links.make(
                to: ProviderFixture.linkTarget, for: access, in: fixture.grants.configuration)
        }
        #expect(code == "login_required")
    }

    @Test("A link that is used replaces nothing")
    func replay() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let found = try #require(try await fixture.links.find(fixture.webLink()))
        let first = try #require(try await fixture.live(try await fixture.links.use(found)))
        #expect(try await fixture.links.use(found, replacing: first) == nil)
        #expect(try await Sessions(fixture.context).live(id: first.id) != nil)
        #expect(try await fixture.audit(.sessionEnd).isEmpty)
    }
}
