import AssentCore
import AssentJOSE
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine

@Suite("Introspection, userinfo, end of session, metadata")
struct InformationTests {
    private func introspect(
        _ token: Secret?, _ fixture: ProviderFixture, _ changes: [String: String?] = [:], authorization: String? = nil
    ) async throws -> JSONValue {
        try await TokenIntrospection(fixture.grants).answer(
            try ProviderFixture.parameters(
                [
                    "client_id": "back end", "client_secret": ProviderFixture.secret, "token": token?.reveal() ?? "",
                ], changes), authorization: authorization)
    }

    private func resourceServer(audience: String) async throws -> ProviderFixture {
        var backend = ProviderFixture.backend
        backend.introspectsAll = true
        var bank = ProviderFixture.bank
        bank.audience = [audience]
        return try await ProviderFixture(clients: [backend, bank])
    }

    @Test("A resource server learns what a token is")
    func introspection() async throws {
        let fixture = try await resourceServer(audience: "https://api.bank.example")
        let reply = try await fixture.tokens()
        let access = try await introspect(reply.accessToken, fixture)
        #expect(access["active"] == true)
        #expect(access["scope"] == "openid accounts")
        #expect(access["client_id"] == "bank-app")
        #expect(access["username"] == "ana")
        #expect(access["user_id"] == "ana")
        #expect(access["sub"]?.string == fixture.user.id)
        #expect(access["iss"]?.string == ProviderFixture.issuer)
        #expect(access["realm"] == "/alpha")
        #expect(access["token_type"] == "Bearer")
        #expect(access["auth_level"] == 0)
        #expect(access["exp"] == .integer(fixture.clock.epochSeconds + 3600))
        let refresh = try await introspect(reply.refreshToken, fixture)
        #expect(refresh["active"] == true)
        #expect(refresh["token_type"] == nil)
        #expect(refresh["exp"] == .integer(fixture.clock.epochSeconds + 7 * 24 * 3600))
    }

    @Test("Tokens of a client that the configuration no longer has are inactive")
    func clientGone() async throws {
        let fixture = try await resourceServer(audience: "https://api.bank.example")
        let reply = try await fixture.tokens()
        var backend = ProviderFixture.backend
        backend.introspectsAll = true
        let node = try await fixture.secondNode(clients: [backend])
        for token in [reply.accessToken, reply.refreshToken] {
            #expect(try await introspect(token, fixture)["active"] == true)
            let parameters = try ProviderFixture.parameters([
                "client_id": "back end", "client_secret": ProviderFixture.secret, "token": token?.reveal() ?? "",
            ])
            #expect(try await TokenIntrospection(node).answer(parameters) == ["active": false])
        }
    }

    @Test("Tokens that may not outlive their session any more are inactive when it has ended")
    func offlineGone() async throws {
        let fixture = try await resourceServer(audience: "https://api.bank.example")
        let reply = try await fixture.tokens(["scope": "openid offline_access"])
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        var (backend, bank) = (ProviderFixture.backend, ProviderFixture.bank)
        backend.introspectsAll = true
        bank.scopes.removeAll { $0 == "offline_access" }
        let node = try await fixture.secondNode(clients: [backend, bank])
        for token in [reply.accessToken, reply.refreshToken] {
            #expect(try await introspect(token, fixture)["active"] == true)
            let parameters = try ProviderFixture.parameters([
                "client_id": "back end", "client_secret": ProviderFixture.secret, "token": token?.reveal() ?? "",
            ])
            #expect(try await TokenIntrospection(node).answer(parameters) == ["active": false])
        }
    }

    @Test("What does not count is inactive, and no more is said")
    func inactive() async throws {
        let fixture = try await resourceServer(audience: "https://api.bank.example")
        let reply = try await fixture.tokens()
        _ = try await fixture.refresh(reply.refreshToken)
        for token in [Secret("x"), Secret("a.b.c"), reply.refreshToken, reply.idToken] {
            #expect(try await introspect(token, fixture) == ["active": false])
        }
        fixture.clock.advance(by: 3600)
        #expect(try await introspect(reply.accessToken, fixture) == ["active": false])
    }

    @Test("Only those whom a token concerns learn of it")
    func concerned() async throws {
        let fixture = try await ProviderFixture()
        let reply = try await fixture.tokens()
        #expect(try await introspect(reply.accessToken, fixture) == ["active": false])
        #expect(try await introspect(reply.refreshToken, fixture) == ["active": false])
        var bank = ProviderFixture.bank
        bank.audience = ["back end"]
        let meant = try await ProviderFixture(clients: [bank, ProviderFixture.backend])
        let access = try await introspect(try await meant.tokens().accessToken, meant)
        #expect(access["active"] == true)
    }

    @Test(
        "Who does not authenticate learns nothing",
        arguments: [
            (["client_secret": "wrong"], "invalid_client"), (["client_secret": nil], "invalid_client"),
            (["client_id": "bank-app", "client_secret": nil], "invalid_client"), (["token": nil], "invalid_request"),
        ] as [([String: String?], String)])
    func unauthenticated(changes: [String: String?], code: String) async throws {
        let fixture = try await ProviderFixture()
        let token = try await fixture.tokens().accessToken
        await #expect(throws: OAuthError.expected(code)) { try await introspect(token, fixture, changes) }
    }

    @Test("Userinfo gives the claims of the scopes")
    func userInfo() async throws {
        let fixture = try await ProviderFixture()
        let few = try await fixture.grants.userInfo(accessToken: try await fixture.tokens().accessToken)
        #expect(few.object?.names == ["sub"])
        let all = try await fixture.grants.userInfo(
            accessToken: try await fixture.tokens(["scope": "openid profile email"]).accessToken)
        #expect(all["name"] == "Ana Example")
        #expect(all["family_name"] == "Example")
        #expect(all["email"] == "ana@example.org")
        #expect(all["preferred_username"] == "ana")
        #expect(all["given_name"] == nil)
    }

    @Test("Userinfo refuses in the words that AM's clients know")
    func userInfoErrors() async throws {
        let fixture = try await ProviderFixture()
        let error = await #expect(throws: OAuthError.invalidToken) {
            try await fixture.grants.userInfo(accessToken: Secret("x"))
        }
        #expect(error?.wanted == .otherAccessToken)
        #expect(
            error?.detail
                == "The access token provided is expired, revoked, malformed, or invalid for other reasons.")
        let token = try await fixture.tokens(["scope": "accounts"]).accessToken
        let insufficient = await #expect(throws: OAuthError.expected("insufficient_scope")) {
            try await fixture.grants.userInfo(accessToken: token)
        }
        #expect(insufficient?.wanted == .scope("openid"))
    }

    @Test("An ID token ends the session that it came from, even expired and under a rotated key")
    func endSession() async throws {
        let fixture = try await ProviderFixture()
        let hint = try #require(await fixture.tokens().idToken).reveal()
        try await fixture.grants.keys.rotate(.idToken)
        fixture.clock.advance(by: Double(fixture.grants.keys.retention + 100))
        #expect(try await fixture.count("sessions") == 1)
        let done = try await EndSessionEndpoint(fixture.grants).answer(
            try ProviderFixture.parameters(["id_token_hint": hint, "client_id": "bank-app"]))
        guard case .done = done else { throw UnexpectedOutcome() }
        #expect(try await fixture.count("sessions") == 0)
        let again = try await EndSessionEndpoint(fixture.grants).answer(
            try ProviderFixture.parameters([
                "id_token_hint": hint, "post_logout_redirect_uri": "https://bank.example/bye", "state": "a b",
            ]))
        guard case .redirect("https://bank.example/bye?state=a%20b") = again else { throw UnexpectedOutcome() }
        #expect(try await fixture.audit(.sessionEnd).count == 1)
    }

    @Test("An end that is asked for wrongly ends nothing")
    func endSessionErrors() async throws {
        let fixture = try await ProviderFixture()
        let reply = try await fixture.tokens()
        let hint = try #require(reply.idToken).reveal()
        let wrong: [(KeyValuePairs<String, String>, String)] = [
            (["id_token_hint": "a.b.c"], "invalid_request"),
            (["id_token_hint": hint + "A"], "invalid_request"),
            (["id_token_hint": reply.accessToken.reveal()], "invalid_request"),
            (["id_token_hint": hint, "client_id": "other-app"], "invalid_request"),
            (["id_token_hint": hint, "post_logout_redirect_uri": "https://evil.example/"], "redirect_uri_mismatch"),
            (["id_token_hint": hint, "post_logout_redirect_uri": "https://bank.example/cb"], "redirect_uri_mismatch"),
        ]
        for (form, code) in wrong {
            await #expect(throws: OAuthError.expected(code)) {
                try await EndSessionEndpoint(fixture.grants).answer(try ProviderFixture.parameters(form))
            }
        }
        #expect(try await Sessions(fixture.context).live(id: fixture.session.id) != nil)
    }

    @Test("The metadata names every endpoint at AM's path and promises what is kept")
    func metadata() async throws {
        let metadata = try await ProviderFixture().grants.metadata()
        let base = ProviderFixture.issuer
        #expect(metadata["issuer"]?.string == base)
        for (name, path) in [
            ("authorization_endpoint", "/authorize"), ("token_endpoint", "/access_token"),
            ("userinfo_endpoint", "/userinfo"), ("end_session_endpoint", "/connect/endSession"),
            ("revocation_endpoint", "/token/revoke"), ("introspection_endpoint", "/introspect"),
            ("jwks_uri", "/connect/jwk_uri"),
        ] { #expect(metadata[name]?.string == base + path) }
        #expect(metadata["code_challenge_methods_supported"] == ["S256"])
        #expect(metadata["authorization_response_iss_parameter_supported"] == true)
        #expect(metadata["assent_refresh_attempt_supported"] == true)
        #expect(metadata["id_token_signing_alg_values_supported"] == ["RS256", "ES256"])
        #expect(metadata["response_types_supported"] == ["code", "none"])
        #expect(metadata["acr_values_supported"] == nil)
        #expect(metadata["scopes_supported"]?.strings?.contains("accounts") == true)
    }
}
