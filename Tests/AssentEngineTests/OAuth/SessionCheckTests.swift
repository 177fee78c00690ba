import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("A client asks whether the session lives")
struct SessionCheckTests {
    private static var checking: OAuthClient {
        var client = ProviderFixture.bank
        client.redirectURIs = ["https://bank.example/cb", "https://elsewhere.example/cb"]
        client.allowedOrigins = ["https://bank.example"]
        client.idTokenClaims = ["email"]
        client.checksSessions = true
        return client
    }

    private static let none: [String: String?] = [
        "response_type": "none", "redirect_uri": nil, "code_challenge": nil, "code_challenge_method": nil,
    ]

    private static let idToken: [String: String?] = [
        "response_type": "id_token", "prompt": "none", "scope": "openid email", "code_challenge": nil,
        "code_challenge_method": nil,
    ]

    @Test("response_type=none without a redirect URI says that it lives, or why the client would get no code")
    func withoutRedirect() async throws {
        let fixture = try await ProviderFixture()
        let parameters = try ProviderFixture.authorization(Self.none)
        guard
            case .sessionLives = try await AuthorizationEndpoint(fixture.grants).answer(
                parameters, session: fixture.session)
        else {
            throw UnexpectedOutcome()
        }
        let gone = await #expect(throws: OAuthError.expected("login_required")) {
            try await AuthorizationEndpoint(fixture.grants).answer(parameters, session: nil)
        }
        #expect(gone?.state == "xyz=&1")
        let asking = try ProviderFixture.authorization(
            Self.none.merging(["client_id": "back end", "prompt": "login"]) { $1 })
        await #expect(throws: OAuthError.expected("consent_required")) {
            try await AuthorizationEndpoint(fixture.grants).answer(asking, session: fixture.session)
        }
        let unknown = try ProviderFixture.authorization(Self.none.merging(["client_id": "nobody"]) { $1 })
        await #expect(throws: OAuthError.expected("invalid_client")) {
            try await AuthorizationEndpoint(fixture.grants).answer(unknown, session: fixture.session)
        }
        #expect(try await fixture.count("grants") == 0)
    }

    @Test("An ID token without a code says whose session it is and no more, behind #, and leaves no grant")
    func token() async throws {
        let fixture = try await ProviderFixture(clients: [Self.checking])
        let answer = try await fixture.redirect(Self.idToken)
        #expect(answer.location.hasPrefix("https://bank.example/cb#id_token="))
        #expect(answer.parameters.items.map(\.name) == ["id_token", "iss", "state"])
        let claims = try jwtClaims(answer["id_token"].map(Secret.init))
        #expect(claims.sub == fixture.user.id && claims["nonce"]?.string == "n-0S6_WzA2Mj")
        #expect(claims["sid"] != nil && claims["at_hash"] == nil && claims["email"] == nil)
        #expect(try await fixture.count("grants") == 0)
        #expect(fixture.grants.metadata()["response_types_supported"] == ["code", "none", "id_token"])
    }

    @Test("Without a session the error is behind # too")
    func gone() async throws {
        let fixture = try await ProviderFixture(clients: [Self.checking])
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(Self.idToken), session: nil)
        guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
        #expect(redirect.location.hasPrefix("https://bank.example/cb#error=login_required&"))
    }

    @Test(
        "It is for prompt=none alone, with a nonce, at a page of an origin that the client lists",
        arguments: [
            (["prompt": nil], "invalid_request"), (["prompt": "login"], "invalid_request"),
            (["nonce": nil], "invalid_request"), (["scope": "accounts"], "invalid_request"),
            (["response_mode": "query"], "invalid_request"), (["response_mode": "form_post"], "invalid_request"),
            (["redirect_uri": "https://elsewhere.example/cb"], "unsupported_response_type"),
        ] as [([String: String?], String)])
    func bounds(changes: [String: String?], code: String) async throws {
        let fixture = try await ProviderFixture(clients: [Self.checking])
        let answer = try await fixture.redirect(Self.idToken.merging(changes) { $1 })
        #expect(answer["error"] == code && answer["id_token"] == nil)
    }

    @Test("A client whose file does not allow it gets none")
    func notAllowed() async throws {
        var client = Self.checking
        client.checksSessions = false
        let fixture = try await ProviderFixture(clients: [client])
        #expect(try await fixture.redirect(Self.idToken)["error"] == "unsupported_response_type")
        #expect(fixture.grants.metadata()["response_types_supported"] == ["code", "none"])
    }
}
