import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

/// The conformance suite's modules for a server that need neither pushed nor signed requests: a client with a key whose
/// tokens belong to another key.
@Suite("Modules for a server")
struct ServerModuleTests {
    /// A request for a code that is a little unusual.
    struct Request: Sendable {
        let name: String
        let parameters: [(String, String)]

        init(_ name: String, _ parameters: (String, String)...) {
            self.name = name
            self.parameters = parameters
        }

        /// What is sent for a name; the usual value where the request says nothing about it.
        func value(_ name: String, usual: String) -> String? {
            let value = parameters.first { $0.0 == name }?.1 ?? usual
            return value.isEmpty ? nil : value
        }
    }

    private static let long = String(repeating: "0123456789abcdef", count: 24)

    private static let accepted = [
        Request("ensure-authorization-request-without-state-success", ("state", "")),
        Request("ensure-authorization-request-without-nonce-success", ("nonce", "")),
        Request("ensure-authorization-request-with-64-char-nonce-success", ("nonce", String(long.prefix(64)))),
        Request("ensure-authorization-request-with-long-nonce", ("nonce", long)),
        Request("ensure-authorization-request-with-long-state", ("state", long)),
        Request("ensure-other-scope-order-succeeds", ("scope", "accounts openid")),
    ]

    private static func claims(_ answer: Answer, _ token: String) throws -> JWTClaims {
        try JWTClaims(payload: UnverifiedJWS.parse(try #require(answer.json[token]?.string, "\(answer.text)")).payload)
    }

    // MARK: - What must work

    @Test("happy-flow: assertion, proof, code, ID token, a call with the bound token, and a refresh")
    func happyFlow() async throws {
        try await KeyedApp.run { app in
            let redirect = try await app.authorize()
            #expect(redirect.status == 302 && redirect.parameter("state") == "st/1")
            let issuer = app.fixture.published(String(app.fixture.oauth("").dropLast()))
            #expect(redirect.parameter("iss") == issuer)
            var answer = try await app.exchange(try #require(redirect.parameter("code")))
            let id = try Self.claims(answer, "id_token")
            #expect(id.iss == issuer && id.aud == ["keyed"] && id["nonce"] == "n-0S6")
            for round in 0...1 {
                #expect(answer.status == 200 && answer.json["token_type"] == "DPoP", "\(round): \(answer.text)")
                #expect(answer["Cache-Control"]?.contains("no-store") == true)
                #expect(try Self.claims(answer, "access_token")["cnf"]?["jkt"]?.string == app.proofKey.thumbprint)
                let user = try await app.userInfo(try #require(answer.json["access_token"]?.string))
                #expect(user.status == 200 && user.json["sub"]?.string == id.sub, "\(user.text)")
                let refresh = try #require(answer.json["refresh_token"]?.string)
                answer = try await app.token([("grant_type", "refresh_token"), ("refresh_token", refresh)])
            }
        }
    }

    @Test("What a request may leave out, or have in another order or length")
    func acceptedRequests() async throws {
        try await KeyedApp.run { app in
            for request in Self.accepted {
                let redirect = try await app.authorize(request.parameters)
                #expect(redirect.parameter("state") == request.value("state", usual: "st/1"), "\(request.name)")
                #expect(redirect.parameter("error") == nil, "\(request.name)")
                let code = try #require(redirect.parameter("code"), "\(request.name): \(redirect.text)")
                let answer = try await app.exchange(code)
                #expect(answer.status == 200, "\(request.name): \(answer.text)")
                let nonce = try Self.claims(answer, "id_token")["nonce"]?.string
                #expect(nonce == request.value("nonce", usual: "n-0S6"), "\(request.name)")
                let scopes = try Self.claims(answer, "access_token")["scope"]?.string?.split(separator: " ")
                #expect(scopes.map(Set.init) == ["openid", "accounts"], "\(request.name)")
            }
        }
    }

    // MARK: - What the authorization endpoint refuses

    @Test("user-rejects-authentication: the client hears access_denied with its state, and gets no code")
    func userRejects() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            func decide(_ decision: String) async throws -> Answer {
                try await fixture.send(
                    "POST", fixture.oauth("authorize"),
                    ServerFixture.session(session) + [("Content-Type", "application/x-www-form-urlencoded")],
                    text: ServerFixture.query([
                        ("response_type", "code"), ("client_id", "asking-app"), ("state", "st/1"), ("scope", "openid"),
                        ("redirect_uri", "https://asking.example/callback"), ("code_challenge_method", "S256"),
                        ("code_challenge", Base64URL.encode([UInt8](repeating: 7, count: 32))),
                        ("decision", decision), ("csrf", session),
                    ]))
            }
            let rejected = try await decide("deny")
            #expect(rejected["Location"]?.hasPrefix("https://asking.example/callback?") == true)
            #expect(rejected.parameter("error") == "access_denied" && rejected.parameter("code") == nil)
            #expect(rejected.parameter("state") == "st/1")
            #expect(rejected.parameter("iss") == fixture.published(String(fixture.oauth("").dropLast())))
            #expect(try await decide("allow").parameter("code") != nil)
        }
    }

    @Test(
        "ensure-registered-redirect-uri: another URI gets neither a code nor an error, whatever it has in common",
        arguments: [
            "https://attacker.example/callback", "http://127.0.0.1/callback/", "http://127.0.0.1/callback?x=1",
            "http://127.0.0.1/call%62ack", "http://127.0.0.1.attacker.example/callback",
            "http://127.0.0.1@attacker.example/callback", "https://127.0.0.1/callback",
        ])
    func redirectURI(_ uri: String) async throws {
        try await KeyedApp.run { app in
            let answer = try await app.authorize([("redirect_uri", uri)])
            #expect(answer.status == 400 && answer["Location"] == nil, "\(answer.text)")
            #expect(try await app.fixture.count("oauth_codes") == 0)
            #expect(try await app.exchange(try await app.code()).status == 200)
        }
    }

    @Test("ensure-redirect-uri-in-authorization-request: without it nobody is sent anywhere")
    func missingRedirectURI() async throws {
        try await KeyedApp.run { app in
            let answer = try await app.authorize([("redirect_uri", "")])
            #expect(answer.status == 400 && answer["Location"] == nil, "\(answer.text)")
            #expect(try await app.fixture.count("oauth_codes") == 0)
        }
    }

    @Test("No other response type than code gets a code or a token")
    func responseTypes() async throws {
        try await KeyedApp.run { app in
            for request in [
                Request("ensure-response-type-code-idtoken-fails", ("response_type", "code id_token")),
                Request("ensure-response-type-token-fails", ("response_type", "token")),
            ] {
                let answer = try await app.authorize(request.parameters)
                let location = try #require(answer["Location"], "\(request.name)")
                #expect(location.hasPrefix("http://127.0.0.1/callback?"), "\(request.name)")
                #expect(answer.parameter("error") == "unsupported_response_type", "\(request.name)")
                #expect(answer.parameter("state") == "st/1", "\(request.name)")
                for name in ["code=", "id_token=", "access_token="] { #expect(!location.contains(name)) }
            }
            #expect(try await app.fixture.count("oauth_codes") == 0)
        }
    }

    // MARK: - What the token endpoint refuses

    @Test("Another client's id, a missing or a wrong verifier: the code is as it was")
    func refusedExchanges() async throws {
        try await KeyedApp.run { app in
            for (request, errors) in [
                (Request("ensure-client-id-in-token-endpoint", ("client_id", "bank-app")), ["invalid_client"]),
                (Request("ensure-pkce-code-verifier-required", ("code_verifier", "")), ["invalid_grant"]),
                (
                    Request(
                        "incorrect-pkce-code-verifier-rejected",
                        ("code_verifier", String(KeyedApp.verifier.reversed()))),
                    ["invalid_grant"]
                ),
            ] {
                let code = try await app.code()
                let answer = try await app.exchange(code, request.parameters)
                #expect(answer.status == 400, "\(request.name): \(answer.text)")
                #expect(errors.contains(answer.error ?? ""), "\(request.name): \(answer.text)")
                #expect(answer.json["access_token"] == nil, "\(request.name)")
                let right = try await app.exchange(code)
                #expect(right.status == 200, "\(request.name): \(right.text)")
            }
        }
    }

    @Test("attempt-reuse-authorization-code-after-one-second: it is refused, and what the first use gave has ended")
    func reusedCode() async throws {
        try await KeyedApp.run { app in
            let code = try await app.code()
            let first = try await app.exchange(code)
            let token = try #require(first.json["access_token"]?.string, "\(first.text)")
            #expect(try await app.userInfo(token).status == 200)
            app.fixture.clock.advance(by: 1)
            let second = try await app.exchange(code)
            #expect(second.status == 400 && second.error == "invalid_grant", "\(second.text)")
            #expect(try await app.userInfo(token).status == 401)
        }
    }

    @Test(
        "ensure-token-endpoint-fails-with-expired-auth-code: a code is good for less than a minute",
        arguments: [(59, 200), (60, 400)])
    func expiredCode(seconds: Int, status: Int) async throws {
        try await KeyedApp.run { app in
            let code = try await app.code()
            app.fixture.clock.advance(by: Double(seconds))
            let answer = try await app.exchange(code)
            #expect(answer.status == status, "\(answer.text)")
            #expect(answer.error == (status == 200 ? nil : "invalid_grant"))
        }
    }
}
