import AssentCore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("A client that uses its grant uses the session")
struct SessionUseTests {
    private static let limits = SessionLimits(maxSession: 3 * 3600, maxIdle: 1800)

    private static var app: OAuthClient {
        var client = ProviderFixture.bank
        client.accessTokenLifetime = 600
        return client
    }

    @Test("Refreshes keep a session alive that nothing else uses, until its time is over")
    func refresh() async throws {
        let fixture = try await ProviderFixture(clients: [Self.app], limits: Self.limits)
        var tokens = try await fixture.tokens()
        for _ in 1...7 {
            fixture.clock.advance(by: 1500)
            tokens = try await fixture.refresh(tokens.refreshToken)
        }
        fixture.clock.advance(by: 400)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(tokens.refreshToken) }
    }

    @Test("The userinfo endpoint does so too")
    func userInfo() async throws {
        var client = Self.app
        client.accessTokenLifetime = 3600
        let fixture = try await ProviderFixture(clients: [client], limits: Self.limits)
        let tokens = try await fixture.tokens()
        for _ in 1...2 {
            fixture.clock.advance(by: 1500)
            let access = try #require(await fixture.grants.access(token: tokens.accessToken))
            try await fixture.grants.noteUse(of: access)
        }
        #expect(try await Sessions(fixture.context).live(id: fixture.session.id) != nil)
    }

    @Test("A grant that outlives its session keeps it alive no longer: it is no sign of the user")
    func offline() async throws {
        let fixture = try await ProviderFixture(clients: [Self.app], limits: Self.limits)
        let tokens = try await fixture.tokens(["scope": "openid offline_access"])
        fixture.clock.advance(by: 1500)
        let next = try await fixture.refresh(tokens.refreshToken)
        let access = try #require(await fixture.grants.access(token: next.accessToken))
        try await fixture.grants.noteUse(of: access)
        fixture.clock.advance(by: 1500)
        #expect(try await Sessions(fixture.context).live(id: fixture.session.id) == nil)
        _ = try await fixture.refresh(next.refreshToken)
    }

    @Test("Where the file says so, a refresh is no use")
    func switchedOff() async throws {
        let fixture = try await ProviderFixture(clients: [Self.app], limits: Self.limits)
        var settings = fixture.grants.configuration
        settings.tokensKeepSessions = false
        let provider = try OAuthProvider(fixture.context, keys: fixture.grants.keys, configuration: settings)
        let tokens = try await fixture.tokens()
        fixture.clock.advance(by: 1500)
        let next = try await fixture.refresh(tokens.refreshToken, on: provider)
        fixture.clock.advance(by: 1500)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(next.refreshToken, on: provider) }
    }
}
