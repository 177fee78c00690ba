import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Tokens of a client itself")
struct ClientCredentialsTests {
    private func tokens(_ fixture: ProviderFixture, _ changes: [String: String?] = [:]) async throws -> IssuedTokens {
        try await fixture.grants.tokens(
            try ProviderFixture.parameters(
                [
                    "grant_type": "client_credentials", "client_id": "back end",
                    "client_secret": ProviderFixture.secret,
                ], changes))
    }

    @Test("A client gets an access token whose subject it is, and nothing else")
    func whole() async throws {
        let fixture = try await ProviderFixture()
        let reply = try await tokens(fixture)
        #expect(reply.refreshToken == nil && reply.idToken == nil)
        #expect(reply.scopes == ["accounts"])
        let claims = try jwtClaims(reply.accessToken)
        #expect(claims.sub == "back end" && claims["client_id"]?.string == "back end")
        #expect(claims["auth_time"] == nil)
        let access = try #require(await fixture.grants.access(token: reply.accessToken))
        #expect(access.owner == nil && access.clientID == "back end")
        #expect(try await fixture.audit(.oauthClient).map(\.userID) == [nil])
    }

    @Test("The token is introspected without a user, and ends by its time and by revocation")
    func life() async throws {
        let fixture = try await ProviderFixture()
        let reply = try await tokens(fixture)
        func introspect() async throws -> JSONValue {
            try await TokenIntrospection(fixture.grants).answer(
                try ProviderFixture.parameters([
                    "client_id": "back end", "client_secret": ProviderFixture.secret,
                    "token": reply.accessToken.reveal(),
                ]))
        }
        let active = try await introspect()
        #expect(active["active"] == true && active["sub"] == "back end")
        #expect(active["username"] == nil && active["auth_level"] == nil)
        try await fixture.grants.revoke(
            try ProviderFixture.parameters([
                "client_id": "back end", "client_secret": ProviderFixture.secret, "token": reply.accessToken.reveal(),
            ]))
        #expect(try await introspect() == ["active": false])
        // The subject is the client, and an auditor looks for users by that.
        #expect(try await fixture.audit(.oauthRevoke).map(\.userID) == [nil])
        let late = try await tokens(fixture)
        fixture.clock.advance(by: 3600)
        #expect(try await !fixture.isLive(late))
        #expect(try await fixture.grants.purge() == 2)
    }

    @Test("It has no claims about a user, so userinfo refuses it")
    func userInfo() async throws {
        let fixture = try await ProviderFixture()
        let token = try await tokens(fixture).accessToken
        await #expect(throws: OAuthError.expected("insufficient_scope")) {
            try await fixture.grants.userInfo(accessToken: token)
        }
    }

    @Test(
        "Scopes about a user, scopes of others and unknown ones are refused",
        arguments: [
            "openid", "openid email", "offline_access", "email", "unknown",
        ])
    func scopes(_ scope: String) async throws {
        let fixture = try await ProviderFixture()
        await #expect(throws: OAuthError.expected("invalid_scope")) { try await tokens(fixture, ["scope": scope]) }
        #expect(try await fixture.count("grants") == 0)
    }

    @Test("What may not be given beside a scope that may is left out")
    func leftOut() async throws {
        let fixture = try await ProviderFixture()
        #expect(try await tokens(fixture, ["scope": "openid accounts unknown"]).scopes == ["accounts"])
    }

    @Test("Only a client that may, with its secret, gets one")
    func clients() async throws {
        let fixture = try await ProviderFixture()
        await #expect(throws: OAuthError.expected("invalid_client")) {
            try await tokens(fixture, ["client_secret": "wrong"])
        }
        await #expect(throws: OAuthError.expected("invalid_client")) {
            try await tokens(fixture, ["client_secret": nil])
        }
        await #expect(throws: OAuthError.expected("unauthorized_client")) {
            try await tokens(fixture, ["client_id": "bank-app", "client_secret": nil])
        }
        var `public` = ProviderFixture.bank
        `public`.grantTypes.insert(.clientCredentials)
        #expect(`public`.validate() == ["bank-app: a public client has no secret, so it cannot use client_credentials"])
    }
}
