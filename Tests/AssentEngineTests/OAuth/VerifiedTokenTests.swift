import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Tokens that were verified before")
struct VerifiedTokenTests {
    /// A token that both nodes have looked at, so that they remember it.
    private func remembered(_ fixture: ProviderFixture, by nodes: [OAuthProvider]) async throws -> IssuedTokens {
        let reply = try await fixture.tokens()
        for node in nodes {
            #expect(try await node.access(token: reply.accessToken) != nil)
            #expect(node.verifiedTokens.count == 1)
        }
        return reply
    }

    private func refusal(_ token: Secret, _ node: OAuthProvider) async throws -> AccessRefusal? {
        guard case .refused(let reason) = try await node.check(accessToken: token) else { return nil }
        return reason
    }

    @Test("A token that is revoked stops counting at once, on every node that remembers it")
    func revokedToken() async throws {
        let fixture = try await ProviderFixture()
        let nodes = [fixture.grants, try await fixture.secondNode()]
        let token = try await remembered(fixture, by: nodes).accessToken
        try await fixture.grants.revoke(
            try ProviderFixture.parameters(["client_id": "bank-app", "token": token.reveal()]))
        for node in nodes { #expect(try await refusal(token, node) == .revoked) }
    }

    @Test("When its grant is revoked or its user may not sign in any more, it stops counting at once")
    func revokedGrant() async throws {
        let fixture = try await ProviderFixture()
        let nodes = [fixture.grants, try await fixture.secondNode()]
        let token = try await remembered(fixture, by: nodes).accessToken
        try await Users(fixture.context).setActive(false, userID: fixture.user.id)
        for node in nodes { #expect(try await refusal(token, node) == .userInactive) }
        try await Users(fixture.context).setActive(true, userID: fixture.user.id)
        _ = try await fixture.grants.revokeAll(userID: fixture.user.id, because: "test")
        for node in nodes { #expect(try await refusal(token, node) == .grantEnded) }
    }

    @Test("When its session has ended, it is not valid from that moment")
    func endedSession() async throws {
        let fixture = try await ProviderFixture()
        let nodes = [fixture.grants, try await fixture.secondNode()]
        let token = try await remembered(fixture, by: nodes).accessToken
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        for node in nodes { #expect(try await refusal(token, node) == .sessionEnded) }
    }

    @Test("It expires in its second and is forgotten then")
    func expired() async throws {
        let fixture = try await ProviderFixture()
        let token = try await remembered(fixture, by: [fixture.grants]).accessToken
        fixture.clock.advance(by: 3599)
        #expect(try await refusal(token, fixture.grants) == nil)
        fixture.clock.advance(by: 1)
        #expect(try await refusal(token, fixture.grants) == .expired)
        #expect(fixture.grants.verifiedTokens.count == 0)
    }

    @Test(
        "When its key is discarded it stops counting: here at once, on another node when that looks at the keys again")
    func discardedKey() async throws {
        let fixture = try await ProviderFixture()
        let second = try await fixture.secondNode()
        let token = try await remembered(fixture, by: [fixture.grants, second]).accessToken
        try await fixture.grants.keys.rotate(.accessToken, discardingOld: true)
        #expect(try await refusal(token, fixture.grants) == .notOurs)
        fixture.clock.advance(by: Double(ServerKeys.staleness))
        #expect(try await refusal(token, second) == .notOurs)
    }

    @Test("A key that was rotated out and is no longer published takes its tokens along, however long they would count")
    func retiredKey() async throws {
        var client = ProviderFixture.bank
        client.accessTokenLifetime = 24 * 3600
        let fixture = try await ProviderFixture(clients: [client])
        let keys = fixture.grants.keys
        var claims = try jwtClaims(try await fixture.tokens().accessToken).object
        claims["exp"] = .integer(fixture.clock.epochSeconds + 365 * 24 * 3600)
        let token = try await keys.sign(claims, type: OAuthProvider.accessTokenType, for: .accessToken)
        #expect(try await refusal(token, fixture.grants) == nil)
        try await keys.rotate(.accessToken)
        #expect(try await refusal(token, fixture.grants) == nil)
        fixture.clock.advance(by: Double(keys.retention + ServerKeys.staleness))
        #expect(try await refusal(token, fixture.grants) == .notOurs)
    }

    @Test("Another token with the same beginning, the same claims or the same end is verified by itself")
    func similarTokens() async throws {
        let fixture = try await ProviderFixture()
        let token = try await remembered(fixture, by: [fixture.grants]).accessToken.reveal()
        let parts = token.split(separator: ".").map(String.init)
        var signature = try #require(Base64URL.decode(parts[2]))
        signature[40] ^= 1
        let stranger = try SoftwareSigningKey.generate(.es256)
        var header = try UnverifiedJWS.parse(token).header
        header["alg"] = nil
        let forged = try await JWS.sign(UnverifiedJWS.parse(token).payload, header: header, with: stranger)
        for other in [
            "\(parts[0]).\(parts[1]).\(Base64URL.encode(signature))", "\(parts[0]).\(parts[1]).", token + "A",
            String(token.dropLast()), token + " ", token + "=", forged,
        ] {
            #expect(try await refusal(Secret(other), fixture.grants) == .notOurs)
        }
        #expect(fixture.grants.verifiedTokens.count == 1)
    }

    @Test("A token that is bound to a key needs the key each time")
    func boundToken() async throws {
        let fixture = try await ProviderFixture()
        let grants = fixture.grants
        let reply = try await grants.tokens(
            try ProviderFixture.parameters([
                "grant_type": "authorization_code", "client_id": "bank-app", "code": try await fixture.code(),
                "redirect_uri": "https://bank.example/cb", "code_verifier": ProviderFixture.verifier,
            ]), keyThumbprint: "thumbprint")
        #expect(try await grants.access(token: reply.accessToken, keyThumbprint: "thumbprint") != nil)
        #expect(try await grants.access(token: reply.accessToken, keyThumbprint: "another") == nil)
        #expect(try await grants.access(token: reply.accessToken) == nil)
    }

    @Test("However many tokens come, so many are remembered at most, and those in use stay")
    func bounded() async throws {
        let fixture = try await ProviderFixture()
        let claims = try #require(await fixture.grants.accessClaims(try await fixture.tokens().accessToken))
        let tokens = VerifiedTokens()
        let inUse = VerifiedTokens.digest(of: Secret("in use"))
        let unused = VerifiedTokens.digest(of: Secret("unused"))
        let now = fixture.clock.epochSeconds
        tokens.keep(.init(claims: claims, keyID: "a"), for: inUse, now: now)
        tokens.keep(.init(claims: claims, keyID: "a"), for: unused, now: now)
        for index in 0..<(5 * VerifiedTokens.generationLimit) {
            tokens.keep(
                .init(claims: claims, keyID: "b"), for: VerifiedTokens.digest(of: Secret("\(index)")), now: now)
            #expect(tokens.count <= 2 * VerifiedTokens.generationLimit)
            if index.isMultiple(of: 100) { #expect(tokens.find(inUse, now: now)?.keyID == "a") }
        }
        #expect(tokens.find(unused, now: now) == nil)
        tokens.keep(.init(claims: claims, keyID: "a"), for: unused, now: claims.expiresAt)
        #expect(tokens.find(unused, now: now) == nil)
    }

    @Test("Tokens that are not ours are not remembered")
    func strangers() async throws {
        let fixture = try await ProviderFixture()
        for index in 0..<10 {
            #expect(try await refusal(Secret("a.b.\(index)"), fixture.grants) == .notOurs)
        }
        let keys = fixture.grants.keys
        var claims = try jwtClaims(try await fixture.tokens().accessToken).object
        claims["iss"] = "https://somebody.example"
        let foreign = try await keys.sign(claims, type: OAuthProvider.accessTokenType, for: .accessToken)
        #expect(try await refusal(foreign, fixture.grants) == .notOurs)
        #expect(fixture.grants.verifiedTokens.count == 0)
    }
}
