import AssentCore
import AssentJOSE
import AssentTesting
import Crypto
import Testing

@testable import AssentEngine

@Suite("Changing a code for tokens")
struct CodeExchangeTests {
    @Test("The whole flow: code, tokens, access, refresh, userinfo")
    func wholeFlow() async throws {
        let fixture = try await ProviderFixture()
        let reply = try await fixture.tokens()
        #expect(reply.refreshToken != nil && reply.idToken != nil)
        #expect(reply.scopes == ["openid", "accounts"])
        #expect(reply.tokenType == "Bearer")
        #expect(reply.expiresIn == 3600)
        let access = try #require(await fixture.grants.access(token: reply.accessToken))
        #expect(access.owner?.user == fixture.user)
        #expect(access.owner?.session == fixture.session)
        #expect(access.scopes == ["openid", "accounts"])
        #expect(access.audience == ["https://api.bank.example"])
        #expect(access.clientID == "bank-app")
        let next = try await fixture.refresh(reply.refreshToken)
        #expect(try await fixture.grants.access(token: next.accessToken)?.grantID == access.grantID)
        #expect(try await fixture.grants.userInfo(accessToken: next.accessToken)["sub"]?.string == fixture.user.id)
    }

    @Test("The access token has the claims and the type of RFC 9068")
    func accessClaims() async throws {
        let fixture = try await ProviderFixture()
        let token = try await fixture.tokens().accessToken
        let now = fixture.clock.epochSeconds
        #expect(try UnverifiedJWS.parse(token.reveal()).type == "at+jwt")
        let claims = try jwtClaims(token)
        #expect(claims.iss == ProviderFixture.issuer)
        #expect(claims.sub == fixture.user.id)
        #expect(claims.aud == ["https://api.bank.example"])
        #expect(claims["client_id"] == "bank-app")
        #expect(claims["scope"] == "openid accounts")
        #expect(claims["iat"] == .integer(now))
        #expect(claims["exp"] == .integer(now + 3600))
        #expect(claims["auth_time"] == .integer(fixture.session.createdAt))
        #expect(claims.jti?.isEmpty == false)
        #expect(claims[OAuthProvider.grantClaim]?.string != nil)
    }

    @Test("The ID token is a stranger's to verify with the published keys, and bound to nonce and access token")
    func idToken() async throws {
        let fixture = try await ProviderFixture()
        let reply = try await fixture.tokens()
        let text = try #require(reply.idToken).reveal()
        let keys = try JWKSet(JSONValue.parse(try await fixture.grants.keys.published().json.serialized()))
        let verified = try UnverifiedJWS.parse(text).verified(with: keys, algorithms: [.es256])
        let claims = try JWTValidation(issuer: ProviderFixture.issuer, audience: "bank-app", clock: fixture.clock)
            .validate(verified)
        #expect(claims["nonce"] == "n-0S6_WzA2Mj")
        #expect(claims["azp"] == "bank-app")
        #expect(claims["auth_time"] == .integer(fixture.session.createdAt))
        let half = SHA256.hash(data: Array(reply.accessToken.reveal().utf8)).prefix(16)
        #expect(claims["at_hash"] == .string(Base64URL.encode(Array(half))))
        #expect(claims["sid"] == .string(fixture.session.auditID))
    }

    @Test("Without openid there is no ID token; a client that may not refresh gets no refresh token")
    func lesserReplies() async throws {
        var client = ProviderFixture.bank
        client.grantTypes = [.authorizationCode]
        let fixture = try await ProviderFixture(clients: [client])
        let reply = try await fixture.tokens(["scope": "accounts"])
        #expect(reply.idToken == nil)
        #expect(reply.refreshToken == nil)
        #expect(reply.refreshToken == nil)
        await #expect(throws: OAuthError.expected("unauthorized_client")) { try await fixture.refresh(Secret("x")) }
    }

    @Test(
        "A wrong binding is refused, and the code stays good for its owner",
        arguments: [
            (["code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXK"], "invalid_grant"),
            (["code_verifier": nil], "invalid_grant"), (["code_verifier": "short"], "invalid_grant"),
            (["code_verifier": ProviderFixture.challenge], "invalid_grant"),
            (["redirect_uri": "https://bank.example/cb2"], "invalid_grant"), (["redirect_uri": nil], "invalid_request"),
            (["redirect_uri": "http://127.0.0.1/cb"], "invalid_grant"), (["client_id": "other-app"], "invalid_grant"),
            (["client_id": "nobody"], "invalid_client"), (["client_secret": "x"], "invalid_client"),
            (["code": nil], "invalid_request"), (["code": "unknown"], "invalid_grant"),
            (["grant_type": "password"], "unsupported_grant_type"), (["grant_type": nil], "invalid_request"),
        ] as [([String: String?], String)])
    func wrongBinding(changes: [String: String?], error: String) async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code()
        await #expect(throws: OAuthError.expected(error)) { try await fixture.exchange(code, changes) }
        let reply = try await fixture.exchange(code)
        #expect(try await fixture.isLive(reply))
    }

    @Test("A verifier for a code that was asked for without a challenge is refused: the challenge was taken out")
    func downgrade() async throws {
        let fixture = try await ProviderFixture()
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization([
                "client_id": "back end", "redirect_uri": "https://backend.example/cb?tenant=1",
                "code_challenge": nil, "code_challenge_method": nil,
            ]), session: fixture.session, decision: .allow)
        guard case .redirect(let redirect) = outcome, let code = redirect["code"] else { throw UnexpectedOutcome() }
        let changes = [
            "client_id": "back end", "client_secret": ProviderFixture.secret,
            "redirect_uri": "https://backend.example/cb?tenant=1",
        ]
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code, changes) }
        let reply = try await fixture.exchange(code, changes.merging(["code_verifier": ""]) { $1 })
        #expect(try await fixture.isLive(reply))
    }

    @Test("A code is good for a minute", arguments: [(59, true), (60, false)])
    func expiry(age: Int, isGood: Bool) async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code()
        fixture.clock.advance(by: Double(age))
        if isGood {
            _ = try await fixture.exchange(code)
        } else {
            await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code) }
        }
    }

    @Test(
        "A code that comes again ends what the first use gave",
        arguments: [[:], ["code_verifier": "x"]] as [[String: String?]])
    func replay(changes: [String: String?]) async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code()
        let reply = try await fixture.exchange(code)
        fixture.clock.advance(by: 1000)
        #expect(try await fixture.isLive(reply))
        for _ in 0..<3 {
            await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code, changes) }
        }
        #expect(try await !fixture.isLive(reply))
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(reply.refreshToken) }
        let refusals = try await fixture.audit(.oauthCode).filter { $0.outcome == .refused }
        #expect(refusals.map(\.reason) == ["code_reuse"])
    }

    @Test("A code at two nodes in 100 parallel requests gives one set of tokens, which then is ended")
    func parallelReplay() async throws {
        let fixture = try await ProviderFixture()
        let second = try await fixture.secondNode()
        let code = try await fixture.code()
        let replies = await withTaskGroup(of: Result<IssuedTokens, any Error>.self) { group in
            for index in 0..<100 {
                group.addTask {
                    do {
                        let node = index.isMultiple(of: 2) ? fixture.grants : second
                        return .success(try await fixture.exchange(code, on: node))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let won = replies.compactMap { try? $0.get() }
        #expect(won.count == 1)
        for case .failure(let error) in replies { #expect(error as? OAuthError == .invalidGrant) }
        #expect(try await !fixture.isLive(try #require(won.first)))
        #expect(try await fixture.count("refresh_tokens") == 1)
        #expect(try await fixture.audit(.oauthCode).filter { $0.reason == "code_reuse" }.count == 1)
    }

    @Test("A code dies with the session that it came from, and with the user")
    func deadSession() async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code()
        let another = try await fixture.code()
        try await Users(fixture.context).setActive(false, userID: fixture.user.id)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(another) }
        try await Users(fixture.context).setActive(true, userID: fixture.user.id)
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code) }
        let refusals = try await fixture.audit(.oauthCode)
        #expect(refusals.map(\.reason) == ["sessionEnded", "userInactive"])
        #expect(refusals.allSatisfy { $0.outcome == .refused && $0.userID == fixture.user.id })
    }

    @Test("A loopback redirect may have any port, and the exchange must name the same")
    func loopbackPort() async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code(["redirect_uri": "http://127.0.0.1:49152/cb"])
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.exchange(code, ["redirect_uri": "http://127.0.0.1:49153/cb"])
        }
        _ = try await fixture.exchange(code, ["redirect_uri": "http://127.0.0.1:49152/cb"])
    }
}
