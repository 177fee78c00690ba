import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("What grants leave behind, and what they do not")
struct GrantTraceTests {
    private func introspect(_ token: Secret?, _ fixture: ProviderFixture) async throws -> JSONValue {
        try await TokenIntrospection(fixture.grants).answer(
            try ProviderFixture.parameters([
                "client_id": "back end", "client_secret": ProviderFixture.secret, "token": token?.reveal() ?? "",
            ]))
    }

    private static var resourceServer: [OAuthClient] {
        var backend = ProviderFixture.backend
        backend.introspectsAll = true
        return [ProviderFixture.bank, backend]
    }

    @Test(
        "A refresh token that is not valid any more is inactive, whatever has ended it",
        arguments: ["time", "session", "user", "grant", "key"])
    func refreshIntrospection(how: String) async throws {
        let fixture = try await ProviderFixture(clients: Self.resourceServer)
        let reply = try await fixture.tokens()
        fixture.clock.advance(by: 7 * 24 * 3600 - 1)
        #expect(try await introspect(reply.refreshToken, fixture)["active"] == true)
        switch how {
        case "time": fixture.clock.advance(by: 1)
        case "session": _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        case "user": try await Users(fixture.context).setActive(false, userID: fixture.user.id)
        case "grant": _ = try await fixture.grants.revokeAll(userID: fixture.user.id, because: "test")
        default: _ = try await fixture.refresh(reply.refreshToken, keyThumbprint: "key")
        }
        #expect(try await introspect(reply.refreshToken, fixture) == ["active": false])
    }

    @Test("A revoked access token leaves one record with its client, grant and user; another client's leaves none")
    func revokedAccessToken() async throws {
        let fixture = try await ProviderFixture()
        let token = try await fixture.tokens().accessToken
        func revoke(by client: String) async throws {
            try await fixture.grants.revoke(
                try ProviderFixture.parameters(["client_id": client, "token": token.reveal()]))
        }
        await #expect(throws: OAuthError.invalidGrant) { try await revoke(by: "other-app") }
        #expect(try await fixture.audit(.oauthRevoke).isEmpty)
        try await revoke(by: "bank-app")
        let records = try await fixture.audit(.oauthRevoke)
        #expect(records.map(\.reason) == ["access_token"] && records.first?.outcome == .success)
        #expect(records.first?.userID == fixture.user.id && records.first?.realm == "/alpha")
        let claims = try jwtClaims(token)
        #expect(records.first?.detail["client"] == "bank-app")
        #expect(records.first?.detail["grant"] == claims[OAuthProvider.grantClaim])
        #expect(records.first?.detail["token"]?.string == claims.jti)
    }

    @Test("The copy of a successor is deleted as soon as that has arrived, and when the user takes the consent back")
    func sealedSuccessors() async throws {
        let fixture = try await ProviderFixture()
        func kept() async throws -> Int64 {
            try await fixture.count("refresh_tokens", where: "sealed_successor IS NOT NULL")
        }
        let first = try await fixture.tokens()
        let second = try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt)
        #expect(try await kept() == 1)
        let third = try await fixture.refresh(second.refreshToken)
        #expect(try await kept() == 0)
        _ = try await fixture.refresh(third.refreshToken, attempt: RefreshTests.attempt)
        #expect(try await kept() == 1)
        fixture.clock.advance(by: Double(fixture.grants.configuration.refreshGrace - 1))
        _ = try await fixture.grants.purge()
        #expect(try await kept() == 1)
        fixture.clock.advance(by: 1)
        _ = try await fixture.grants.purge()
        #expect(try await kept() == 0)
    }

    @Test("A consent that is taken back takes the copies of its grants' successors along")
    func withdrawn() async throws {
        let fixture = try await ProviderFixture()
        let changes: [String: String?] = [
            "client_id": "back end", "redirect_uri": "https://backend.example/cb?tenant=1",
        ]
        let credentials: [String: String?] = ["client_id": "back end", "client_secret": ProviderFixture.secret]
        let agreed = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(changes), session: fixture.session, decision: .allow)
        guard case .redirect(let redirect) = agreed, let code = redirect["code"] else { throw UnexpectedOutcome() }
        let first = try await fixture.exchange(code, changes.merging(credentials) { $1 })
        _ = try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt, credentials)
        #expect(try await fixture.count("refresh_tokens", where: "sealed_successor IS NOT NULL") == 1)
        #expect(try await fixture.grants.withdrawConsent(to: "back end", by: fixture.session))
        #expect(try await fixture.count("refresh_tokens", where: "sealed_successor IS NOT NULL") == 0)
        #expect(try await fixture.count("grants", where: "revoked_because = 'consent'") == 1)
    }

    @Test(
        "A verifier has 43 to 128 characters that need no escape (RFC 7636 §4.1), also when its hash is right",
        arguments: [
            (String(repeating: "v", count: 42), false), (String(repeating: "v", count: 43), true),
            (String(repeating: "~", count: 128), true), (String(repeating: "v", count: 129), false),
            (String(repeating: "v", count: 42) + "+", false), (String(repeating: "v", count: 42) + "é", false),
        ])
    func verifiers(verifier: String, isGood: Bool) async throws {
        let fixture = try await ProviderFixture()
        let challenge = Base64URL.encode(SHA2.sha256(Array(verifier.utf8)))
        let code = try await fixture.code(["code_challenge": challenge])
        if isGood {
            _ = try await fixture.exchange(code, ["code_verifier": verifier])
        } else {
            await #expect(throws: OAuthError.invalidGrant) {
                try await fixture.exchange(code, ["code_verifier": verifier])
            }
        }
    }

    @Test("A session that the user ends without an ID token leaves one record, which names client and session")
    func ownEnd() async throws {
        let fixture = try await ProviderFixture()
        for _ in 0..<2 {
            _ = try await EndSessionEndpoint(fixture.grants).answer(
                try ProviderFixture.parameters(["client_id": "bank-app"]), session: fixture.session, decision: .allow)
        }
        let records = try await fixture.audit(.sessionEnd)
        #expect(records.count == 1 && records.first?.sessionAuditID == fixture.session.auditID)
        #expect(records.first?.userID == fixture.user.id && records.first?.detail["client"] == "bank-app")
    }
}
