import AssentCore
import AssentTesting
import AssentTokens
import HTTPTypes
import Testing

@Suite struct AuthorizationTests {
    @Test("A session gets tokens by an authorization code, and every request is what the server expects")
    func wire() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let tokens = try await manager.tokens()
        #expect(tokens.accessToken == Secret("access-1") && tokens.refreshToken == Secret("refresh+1&=%"))
        #expect(tokens.idToken?.subject == "ana" && tokens.scopes == ["openid", "accounts"])

        let ask = try #require(provider.sent("/authorize").first)
        #expect(ask.request.method == .get)
        #expect(ask.field("iPlanetDirectoryPro") == "SESS" && ask.field("Cookie") == nil)
        #expect(ask.field("Accept-API-Version") == "resource=2.1,protocol=1.0")
        #expect(ask.query["response_type"] == "code" && ask.query["client_id"] == "bank-app")
        #expect(ask.query["redirect_uri"] == redirectURI && ask.query["scope"] == "openid accounts")
        #expect(ask.query["code_challenge_method"] == "S256")
        #expect(ask.request.path?.contains("redirect_uri=https%3A%2F%2Fbank.example%2Fapp%2Fcallback") == true)
        #expect(ask.request.path?.contains("SESS") == false)

        let exchange = try #require(provider.sent("/access_token").first)
        #expect(exchange.request.method == .post)
        #expect(exchange.field("Content-Type") == "application/x-www-form-urlencoded")
        #expect(exchange.field("iPlanetDirectoryPro") == nil && exchange.field("Authorization") == nil)
        let names = exchange.form.items.map(\.name)
        #expect(names == ["grant_type", "code", "redirect_uri", "client_id", "code_verifier"])
        #expect(exchange.form["code"] == "c0de+/=&")
        #expect(exchange.text.contains("code=c0de%2B%2F%3D%26&"))
        let verifier = try #require(exchange.form["code_verifier"])
        #expect(Base64URL.decode(verifier)?.count == 32)
        #expect(ask.query["code_challenge"] == Base64URL.encode(SHA2.sha256(verifier.utf8)))
    }

    @Test("Each request has its own state, nonce and verifier")
    func fresh() async throws {
        let provider = try FakeProvider()
        provider.change {
            $0.expiresIn = 0; $0.rotates = false
        }
        let manager = try await provider.signedIn()
        for _ in 0..<3 { _ = try await manager.tokens() }
        for name in ["state", "nonce", "code_challenge"] {
            let values = provider.sent("/authorize").compactMap { $0.query[name] }
            #expect(Set(values).count == 3 && values.allSatisfy { $0.utf8.count == 43 })
        }
    }

    @Test(
        "An answer that does not belong to the request is refused, and the code is not used",
        arguments: [
            ("R?code=c&iss=I&state=Sx", .foreignAnswer), ("R?code=c&iss=I", .foreignAnswer),
            ("R?code=c&iss=I&state=", .foreignAnswer), ("R?code=c&iss=https%3A%2F%2Fe.example&state=S", .foreignAnswer),
            ("R?code=c&iss=I%2F&state=S", .foreignAnswer), ("R?code=c&state=S", .foreignAnswer),
            ("R?code=c&code=d&iss=I&state=S", .malformedReply), ("R?code=c&iss=I&state=S&state=S", .malformedReply),
            ("R?iss=I&state=S", .malformedReply), ("R?code=&iss=I&state=S", .malformedReply),
            ("R?code=%zz&iss=I&state=S", .malformedReply), ("R#code=c&iss=I&state=S", .unexpectedRedirect),
            ("R2?code=c&iss=I&state=S", .unexpectedRedirect), ("R/?code=c&iss=I&state=S", .unexpectedRedirect),
            ("https://bank.example.evil/app/callback?code=c&iss=I&state=S", .unexpectedRedirect),
            ("http://bank.example/app/callback?code=c&iss=I&state=S", .unexpectedRedirect),
            ("/app/callback?code=c&iss=I&state=S", .unexpectedRedirect),
            ("R?error=access_denied&iss=I&state=S", .authorizationRefused),
            ("R?error=login_required&iss=I&state=S", .signInNeeded),
            ("https://am.example.com/am/?goto=x", .signInNeeded), ("https://am.example.com/am/?goto=S", .signInNeeded),
        ] as [(String, TokenError.Code)])
    func foreign(template: String, code: TokenError.Code) async throws {
        let provider = try FakeProvider()
        provider.change {
            $0.location = { good in
                let filled = template.replacing("iss=I", with: "iss=\(PercentEncoding.encode(issuer))")
                    .replacing("state=S", with: "state=\(good["state"] ?? "")")
                    .replacing("goto=S", with: "goto=%3Fstate%3D\(good["state"] ?? "")")
                return filled.hasPrefix("R") ? redirectURI + filled.dropFirst() : filled
            }
        }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(code)) { try await manager.tokens() }
        #expect(provider.sent("/access_token").isEmpty)
        // The word of the provider removes the session; what another says does not, nor a page that is not about us.
        let isDefinite = template.contains("login_required") || template.contains("goto=S")
        #expect((try await manager.session() == nil) == isDefinite)
    }

    @Test("An answer without iss is fine when the server does not promise one")
    func withoutIssuer() async throws {
        let provider = try FakeProvider()
        provider.change {
            $0.discovery["authorization_response_iss_parameter_supported"] = nil
            $0.location = { "\(redirectURI)?code=c&state=\($0["state"] ?? "")" }
        }
        _ = try await provider.signedIn().tokens()
    }

    @Test(
        "A redirect URI that is an origin, or has a query, is matched as AM writes it",
        arguments: [
            ("http://localhost", "http://localhost/?"), ("app:/cb", "app:/cb?"),
            ("https://b.example/?x=1", "https://b.example/?x=1&"),
        ])
    func redirectForms(uri: String, start: String) async throws {
        let provider = try FakeProvider()
        provider.change { $0.location = { start + FormEncoding.encode($0) } }
        let manager = try provider.manager(redirectURI: uri)
        try await manager.install(Session(token: Secret("SESS")))
        _ = try await manager.tokens()
    }

    @Test("The session is not sent to an authorization endpoint on another origin")
    func otherOrigin() async throws {
        let provider = try FakeProvider()
        provider.change { $0.discovery["authorization_endpoint"] = "https://evil.example/authorize" }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.unusableEndpoint)) { try await manager.tokens() }
        #expect(provider.exchanges.withLock { $0 }.allSatisfy { $0.field("iPlanetDirectoryPro") == nil })
    }

    @Test(
        "Other replies of the authorization endpoint are refusals, which keep the session unless they say that it is over",
        arguments: [
            (200, "invalid_client", .authorizationRefused), (400, "invalid_client", .authorizationRefused),
            (401, "unauthorized_client", .authorizationRefused), (401, nil, .signInNeeded),
            (401, "login_required", .signInNeeded), (500, nil, .authorizationRefused), (302, nil, .malformedReply),
        ] as [(Int, JSONValue?, TokenError.Code)])
    func statuses(status: Int, error: JSONValue?, code: TokenError.Code) async throws {
        let provider = try FakeProvider()
        provider.change { $0.authorizeReply = { .json(status, error.map { ["error": $0] } ?? [:]) } }
        let manager = try await provider.signedIn()
        let refusal = await #expect(throws: TokenError.like(code)) { try await manager.tokens() }
        #expect((try await manager.session() == nil) == (error == "login_required"))
        let isClient = error == "invalid_client" || error == "unauthorized_client"
        #expect(refusal?.detail.contains(manager.configuration.clientID) == isClient, "\(refusal?.detail ?? "")")
        #expect(refusal?.suggestion?.contains("Check client.id") == isClient, "\(refusal?.suggestion ?? "")")
    }

    @Test("Extra parameters go along but replace none of ours")
    func extra() async throws {
        let provider = try FakeProvider()
        var configuration = try TokenConfiguration(issuer: issuer, clientID: "bank-app", redirectURI: redirectURI)
        configuration.authorizationParameters = [
            .init("acr_values", "a b"), .init("state", "fixed"), .init("nonce", "n"),
        ]
        let transport = InMemoryTransport { exchange in
            provider.exchanges.withLock { $0.append(exchange) }
            return .json(200, .object(provider.behaviour.withLock { $0.discovery }))
        }
        let manager = TokenManager(configuration: configuration, transport: transport, store: provider.store)
        try await manager.install(Session(token: Secret("SESS")))
        await #expect(throws: TokenError.like(.authorizationRefused)) { try await manager.tokens() }
        let query = try #require(provider.sent("/authorize").first?.query)
        #expect(query["acr_values"] == "a b" && query[all: "state"].count == 1 && query["state"] != "fixed")
        #expect(query[all: "nonce"].count == 1 && query["nonce"] != "n")
    }
}
