import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("What a client's tokens are like")
struct ClientTokenTests {
    private static func fixture(_ change: (inout OAuthClient) -> Void) async throws -> ProviderFixture {
        var client = ProviderFixture.bank
        change(&client)
        return try await ProviderFixture(clients: [client])
    }

    @Test("ID tokens carry the claims that the file names, as far as the granted scopes give them")
    func claims() async throws {
        let fixture = try await Self.fixture { $0.idTokenClaims = ["email", "name", "preferred_username", "nickname"] }
        let some = try jwtClaims(await fixture.tokens(["scope": "openid email"]).idToken)
        #expect(some["email"]?.string == "ana@example.org")
        #expect(some["name"] == nil && some["preferred_username"] == nil)
        let tokens = try await fixture.tokens(["scope": "openid email profile"])
        for all in [tokens, try await fixture.refresh(tokens.refreshToken)] {
            let claims = try jwtClaims(all.idToken)
            #expect(claims["name"]?.string == "Ana Example" && claims["preferred_username"]?.string == "ana")
            #expect(claims["email"]?.string == "ana@example.org" && claims["nickname"] == nil)
            #expect(claims["family_name"] == nil && claims.sub == fixture.user.id)
        }
    }

    @Test("A client that names none gets none")
    func noClaims() async throws {
        let claims = try jwtClaims(await ProviderFixture().tokens(["scope": "openid email profile"]).idToken)
        #expect(claims["email"] == nil && claims["name"] == nil && claims["preferred_username"] == nil)
    }

    @Test(
        "Claims that the server does not know, or that no scope of the client gives, are a fault of the file",
        arguments: [("sub", "not a claim"), ("phone_number", "needs the scope phone"), ("Email", "not a claim")])
    func faults(claim: String, fault: String) {
        var client = ProviderFixture.bank
        client.idTokenClaims = [claim]
        #expect(client.validate().contains { $0.contains(fault) }, "\(client.validate())")
    }

    @Test("Access tokens are signed with RS256 for a client that says so, and its key is published before")
    func accessTokens() async throws {
        let fixture = try await Self.fixture { $0.accessTokenAlgorithm = .rs256 }
        let published = try await fixture.grants.publishedKeys()
        #expect(published.keys.map(\.algorithm) == [.rs256, .es256, .es256])
        let tokens = try await fixture.tokens()
        let unverified = try UnverifiedJWS.parse(tokens.accessToken.reveal())
        #expect(unverified.type == "at+jwt")
        _ = try unverified.verified(with: published, algorithms: [.rs256])
        #expect(try await fixture.isLive(tokens))
        try await fixture.grants.keys.rotate(.accessToken)
        #expect(try await fixture.isLive(tokens))
        let next = try await fixture.refresh(tokens.refreshToken)
        #expect(try UnverifiedJWS.parse(next.accessToken.reveal()).keyID != unverified.keyID)
        #expect(try await fixture.isLive(next))
    }

    @Test("A confidential client may go without PKCE, a public one never; a challenge that was sent is held to")
    func withoutPKCE() async throws {
        var client = ProviderFixture.bank
        client.requiresPKCE = false
        #expect(client.validate() == ["bank-app: a public client always needs PKCE"])
        client.kind = .confidential(secretHash: OAuthClient.hash(ofSecret: Secret(ProviderFixture.secret)))
        #expect(client.validate().isEmpty)
        let fixture = try await ProviderFixture(clients: [client])
        let without: [String: String?] = ["code_challenge": nil, "code_challenge_method": nil]
        let secret: [String: String?] = ["client_secret": ProviderFixture.secret, "code_verifier": nil]
        _ = try await fixture.exchange(try await fixture.code(without), secret)
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.exchange(try await fixture.code(), secret)
        }
    }
}
