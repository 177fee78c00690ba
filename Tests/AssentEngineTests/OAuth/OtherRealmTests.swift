import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("The provider of another realm on the same database")
struct OtherRealmTests {
    private let fixture: ProviderFixture
    /// It has the same keys, issuer and clients, so that nothing but the realm tells the two apart.
    private let beta: OAuthProvider

    init() async throws {
        var backend = ProviderFixture.backend
        backend.introspectsAll = true
        let clients = [ProviderFixture.bank, ProviderFixture.other, backend]
        fixture = try await ProviderFixture(clients: clients)
        beta = try OAuthProvider(
            fixture.context, keys: fixture.grants.keys,
            configuration: OAuthProviderConfiguration(
                realm: "/beta", issuer: ProviderFixture.issuer, clients: clients))
    }

    private func form(_ token: Secret?, client: String = "bank-app") throws -> OAuthParameters {
        var changes: [String: String?] = ["client_id": client, "token": token?.reveal() ?? ""]
        if client == "back end" { changes["client_secret"] = ProviderFixture.secret }
        return try ProviderFixture.parameters([:], changes)
    }

    @Test("It neither changes a code nor ends what was given for one")
    func code() async throws {
        let code = try await fixture.code()
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code, on: beta) }
        let reply = try await fixture.exchange(code)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code, on: beta) }
        #expect(try await fixture.isLive(reply))
        #expect(try await fixture.audit(.oauthCode).map(\.outcome) == [.success])
    }

    @Test("It neither refreshes a token, nor tells anything about it, nor ends its grant")
    func refreshToken() async throws {
        let first = try await fixture.tokens()
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(first.refreshToken, on: beta) }
        let second = try await fixture.refresh(first.refreshToken)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(first.refreshToken, on: beta) }
        #expect(
            try await TokenIntrospection(beta).answer(try form(second.refreshToken, client: "back end")) == [
                "active": false
            ])
        try await beta.revoke(try form(second.refreshToken))
        #expect(try await beta.revokeAll(userID: fixture.user.id, because: "test") == 0)
        #expect(try await fixture.isLive(second))
        #expect(
            try await TokenIntrospection(fixture.grants).answer(try form(second.refreshToken, client: "back end"))[
                "active"] == true)
        _ = try await fixture.refresh(second.refreshToken)
        #expect(try await fixture.audit(.oauthRefresh).allSatisfy { $0.outcome == .success })
        #expect(try await fixture.audit(.oauthRevoke).isEmpty)
    }

    @Test("It neither sees, uses, takes back nor forgets a consent, nor purges a grant")
    func consents() async throws {
        let changes: [String: String?] = [
            "client_id": "back end", "redirect_uri": "https://backend.example/cb?tenant=1",
        ]
        let agreed = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(changes), session: fixture.session, decision: .allow)
        guard case .redirect(let redirect) = agreed, redirect["code"] != nil else { throw UnexpectedOutcome() }
        let client = try #require(beta.configuration.client("back end"))
        let consent = try #require(await fixture.grants.consent(of: fixture.user.id, to: client))
        #expect(try await beta.consent(of: fixture.user.id, to: client) == nil)
        #expect(try await beta.consents(of: fixture.session).isEmpty)
        #expect(try await !beta.withdrawConsent(to: "back end", by: fixture.session))
        await #expect(throws: StoreError(.unexpectedCount, "")) {
            try await fixture.database.run([beta.using(consent, of: fixture.user.id)])
        }
        fixture.clock.advance(by: Double(client.consentLifetime + 1))
        #expect(try await beta.purge() == 0)
        #expect(try await fixture.count("consents") == 1)
        #expect(try await fixture.count("grants") == 1)
        #expect(try await fixture.grants.purge() == 1)
        #expect(try await fixture.count("consents") == 0)
    }
}
