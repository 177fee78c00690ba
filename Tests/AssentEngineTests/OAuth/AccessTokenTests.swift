import AssentCore
import AssentJOSE
import AssentTesting
import Crypto
import Testing

@testable import AssentEngine

@Suite("Looking at an access token")
struct AccessTokenTests {
    private func refusal(_ token: Secret, _ fixture: ProviderFixture) async throws -> AccessRefusal? {
        guard case .refused(let reason) = try await fixture.grants.check(accessToken: token) else { return nil }
        return reason
    }

    @Test("A bit changed anywhere makes it nobody's")
    func bitFlips() async throws {
        let fixture = try await ProviderFixture()
        let token = Array(try await fixture.tokens().accessToken.reveal().utf8)
        for index in stride(from: 0, to: token.count, by: 7) {
            var changed = token
            changed[index] ^= 1
            #expect(try await refusal(Secret(bytes: changed), fixture) == .notOurs)
        }
        for changed in [Array(token.dropLast()), token + [0x41], Array(token.prefix(20)), []] {
            #expect(try await refusal(Secret(bytes: changed), fixture) == .notOurs)
        }
    }

    @Test("alg none, another kid, no kid and a stranger's key do not pass")
    func forgedHeaders() async throws {
        let fixture = try await ProviderFixture()
        let genuine = try await fixture.tokens().accessToken.reveal()
        let payload = try UnverifiedJWS.parse(genuine).payload
        let keyID = try #require(UnverifiedJWS.parse(genuine).keyID)
        let none = Base64URL.encode(Array(#"{"alg":"none","typ":"at+jwt","kid":"\#(keyID)"}"#.utf8))
        let body = Base64URL.encode(payload)
        for forged in ["\(none).\(body).", "\(none).\(body).\(genuine.split(separator: ".")[2])"] {
            #expect(try await refusal(Secret(forged), fixture) == .notOurs)
        }
        let own = try SoftwareSigningKey.generate(.es256)
        let headers: [JSONObject] = [
            JSONObject([.init(name: "typ", value: "at+jwt"), .init(name: "kid", value: .string(keyID))]),
            JSONObject([.init(name: "typ", value: "at+jwt"), .init(name: "kid", value: "unknown")]),
            JSONObject([.init(name: "typ", value: "at+jwt")]),
            JSONObject([
                .init(name: "typ", value: "at+jwt"), .init(name: "kid", value: .string(keyID)),
                .init(name: "jwk", value: try JWK(publicKeyInfo: own.publicKeyInfo).json),
            ]),
        ]
        for header in headers {
            let forged = try await JWS.sign(payload, header: header, with: own)
            #expect(try await refusal(Secret(forged), fixture) == .notOurs)
        }
        // The published key as a shared secret.
        let published = try await fixture.grants.keys.published().keys.map(\.publicKeyInfo)
        for info in published {
            let confused = try await JWS.sign(
                payload, header: headers[0], with: try HMACSigningKey(Secret(bytes: info)))
            #expect(try await refusal(Secret(confused), fixture) == .notOurs)
        }
    }

    @Test("An ID token is no access token, nor is an access token with another type")
    func otherTokens() async throws {
        let fixture = try await ProviderFixture()
        let reply = try await fixture.tokens()
        #expect(try await refusal(try #require(reply.idToken), fixture) == .notOurs)
        #expect(try await refusal(try #require(reply.refreshToken), fixture) == .notOurs)
        let claims = try jwtClaims(reply.accessToken).object
        let keys = fixture.grants.keys
        #expect(try await refusal(try await keys.sign(claims, type: "JWT", for: .accessToken), fixture) == .notOurs)
        #expect(try await refusal(try await keys.sign(claims, type: "at+jwt", for: .idToken), fixture) == .notOurs)
        #expect(try await refusal(try await keys.sign(claims, type: "at+jwt", for: .accessToken), fixture) == nil)
    }

    @Test(
        "Claims that do not belong together are refused",
        arguments: ["iss", "sub", "client_id", "assent_grant", "exp", "jti"])
    func swappedClaims(name: String) async throws {
        let fixture = try await ProviderFixture()
        var claims = try jwtClaims(try await fixture.tokens().accessToken).object
        for value: JSONValue? in ["another", nil] {
            claims[name] = value
            let token = try await fixture.grants.keys.sign(claims, type: "at+jwt", for: .accessToken)
            let reason = try await refusal(token, fixture)
            #expect(reason != nil || (name == "jti" && value != nil))
        }
    }

    @Test(
        "It counts until the second it expires", arguments: [(3599, nil), (3600, .expired)] as [(Int, AccessRefusal?)])
    func expiry(age: Int, reason: AccessRefusal?) async throws {
        let fixture = try await ProviderFixture()
        let token = try await fixture.tokens().accessToken
        fixture.clock.advance(by: Double(age))
        #expect(try await refusal(token, fixture) == reason)
    }

    @Test("Another realm's provider with the same keys does not take it")
    func otherIssuer() async throws {
        let fixture = try await ProviderFixture()
        let token = try await fixture.tokens().accessToken
        for (realm, issuer) in [("/beta", ProviderFixture.issuer), ("/alpha", "https://am.example/am/oauth2")] {
            let other = try OAuthProvider(
                fixture.context, keys: fixture.grants.keys,
                configuration: OAuthProviderConfiguration(realm: realm, issuer: issuer, clients: [ProviderFixture.bank])
            )
            #expect(try await other.access(token: token) == nil)
        }
    }

    @Test("A user who may not sign in, and a client that is no longer defined, have no tokens")
    func userAndClient() async throws {
        let fixture = try await ProviderFixture()
        let token = try await fixture.tokens().accessToken
        let without = try OAuthProvider(
            fixture.context, keys: fixture.grants.keys,
            configuration: OAuthProviderConfiguration(
                realm: "/alpha", issuer: ProviderFixture.issuer, clients: [ProviderFixture.other]))
        guard case .refused(.clientUnknown) = try await without.check(accessToken: token) else {
            throw UnexpectedOutcome()
        }
        try await Users(fixture.context).setActive(false, userID: fixture.user.id)
        #expect(try await refusal(token, fixture) == .userInactive)
    }

    @Test("A token ends with its session, whether that was ended or has idled away")
    func endedSession() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits())
        let token = try await fixture.tokens().accessToken
        #expect(try await fixture.grants.access(token: token)?.owner?.session?.id == fixture.session.id)
        fixture.clock.advance(by: 30 * 60 - 1)
        #expect(try await fixture.grants.access(token: token) != nil)
        fixture.clock.advance(by: 1)
        #expect(try await refusal(token, fixture) == .sessionEnded)

        let other = try await ProviderFixture()
        let second = try await other.tokens().accessToken
        _ = try await Sessions(other.context).end(id: other.session.id)
        #expect(try await refusal(second, other) == .sessionEnded)
    }

    @Test("With offline_access a token outlives its session, and then counts as its user without a session")
    func offlineAccess() async throws {
        let fixture = try await ProviderFixture()
        let token = try await fixture.tokens(["scope": "openid offline_access"]).accessToken
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        let access = try #require(await fixture.grants.access(token: token))
        #expect(access.owner?.user == fixture.user && access.owner?.session == nil)
        #expect(access.owner?.sessionAuditID == fixture.session.auditID)
    }

    @Test("A rotated key's tokens count until they expire, on both nodes, and new ones at once")
    func rotation() async throws {
        let fixture = try await ProviderFixture()
        let second = try await fixture.secondNode()
        let old = try await fixture.tokens().accessToken
        #expect(try await second.access(token: old) != nil)
        try await fixture.grants.keys.rotate(.accessToken)
        let new = try await fixture.tokens().accessToken
        #expect(try UnverifiedJWS.parse(new.reveal()).keyID != UnverifiedJWS.parse(old.reveal()).keyID)
        fixture.clock.advance(by: 1)
        for node in [fixture.grants, second] {
            #expect(try await node.access(token: old) != nil)
            #expect(try await node.access(token: new) != nil)
        }
    }

    @Test("A discarded key's tokens stop counting")
    func discarded() async throws {
        let fixture = try await ProviderFixture()
        let old = try await fixture.tokens()
        try await fixture.grants.keys.rotate(.accessToken, discardingOld: true)
        #expect(try await !fixture.isLive(old))
        let new = try await fixture.refresh(old.refreshToken)
        #expect(try await fixture.isLive(new))
    }
}
