import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("OAuth endpoints over HTTP", .server)
struct OAuthRouteTests {
    private static let form = ("Content-Type", "application/x-www-form-urlencoded")

    @Test("A session gets a code by a redirect without a body, with state and issuer")
    func authorize() async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.authorize(session: try await fixture.session())
        #expect(reply.status == 302)
        #expect(reply.bytes.isEmpty)
        #expect(reply["Location"]?.hasPrefix("http://127.0.0.1/callback?code=") == true)
        #expect(reply.parameter("state") == "st/1")
        #expect(reply.parameter("client_id") == "bank-app")
        #expect(reply.parameter("iss") == fixture.oauth("").dropLast().description)
        #expect(reply["Cache-Control"] == "no-store")
        #expect(reply["X-Frame-Options"] == nil)
    }

    @Test(
        "The parameter claims is not supported, as discovery says: whatever it is, the request is answered as without it",
        arguments: [#"{"id_token":{"email":{"essential":true}},"userinfo":{"name":null}}"#, "{"])
    func claims(value: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.authorize(session: try await fixture.session(), [("claims", value)])
        #expect(reply.status == 302 && reply.parameter("code") != nil && reply.parameter("error") == nil)
    }

    @Test("Without a session a browser is sent to sign in; with prompt=none it is told so at its redirect URI")
    func noSession() async throws {
        let fixture = try #require(ServerFixture.shared)
        let login = try await fixture.authorize(session: nil)
        #expect(login.status == 302)
        #expect(login["Location"]?.hasPrefix(fixture.server("/UI/Login?")) == true)
        #expect(login.parameter("realm") == "/alpha")
        #expect(login.parameter("goto")?.hasPrefix(fixture.oauth("authorize?")) == true)
        let silent = try await fixture.authorize(session: nil, [("prompt", "none")])
        #expect(silent.status == 302 && silent.bytes.isEmpty)
        #expect(silent.parameter("error") == "login_required")
        #expect(
            silent.parameter("error_description") == "The request requires some interaction that is not allowed.")
        #expect(silent.parameter("state") == "st/1")
    }

    @Test(
        "A mistake that the client may know goes to its redirect URI, with state",
        arguments: [
            ("scope", "secrets", "invalid_scope"), ("code_challenge", "", "invalid_request"),
            ("code_challenge_method", "plain", "invalid_request"),
            ("response_type", "token", "unsupported_response_type"),
        ])
    func redirected(_ name: String, _ value: String, _ error: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.authorize(session: try await fixture.session(), [(name, value)])
        #expect(reply.status == 302 && reply.bytes.isEmpty)
        #expect(reply["Location"]?.hasPrefix("http://127.0.0.1/callback?") == true)
        #expect(reply.parameter("error") == error)
        #expect(reply.parameter("error_description")?.isEmpty == false)
        #expect(reply.parameter("state") == "st/1")
        #expect(reply.parameter("code") == nil)
    }

    @Test(
        "A mistake in who asks goes to nobody",
        arguments: [
            ("client_id", "other-app", "invalid_client"), ("client_id", "", "invalid_request"),
            ("redirect_uri", "https://evil.example/callback", "redirect_uri_mismatch"),
            ("redirect_uri", "", "invalid_request"),
            ("redirect_uri", "http://127.0.0.1/callback/../x", "redirect_uri_mismatch"),
        ])
    func direct(_ name: String, _ value: String, _ error: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.authorize(session: try await fixture.session(), [(name, value)])
        #expect((400...401).contains(reply.status))
        #expect(reply["Location"] == nil)
        #expect(reply.error == error)
        #expect(reply.json["error_description"]?.string?.isEmpty == false)
    }

    @Test("A parameter twice is an error that is shown directly")
    func duplicates() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let query = "response_type=code&client_id=bank-app&client_id=bank-app&redirect_uri=http://127.0.0.1/callback"
        let reply = try await fixture.send(
            "GET", fixture.oauth("authorize?" + query), ServerFixture.session(session))
        #expect(reply.status == 400 && reply.error == "invalid_request" && reply["Location"] == nil)
        let token = try await fixture.send(
            "POST", fixture.oauth("access_token"), [Self.form],
            text: "grant_type=refresh_token&refresh_token=a&refresh_token=b&client_id=bank-app")
        #expect(token.status == 400 && token.error == "invalid_request")
        let realms = try await fixture.send("GET", fixture.server("/oauth2/userinfo?realm=/alpha&realm=/beta"))
        #expect(realms.status == 400 && realms.error == "invalid_request")
    }

    /// A decision, as a page of ours posts it.
    private func decide(
        _ fixture: ServerFixture, _ session: String?, decision: String, csrf: String?,
        _ further: [(String, String)] = []
    ) async throws -> Answer {
        var items = [
            ("response_type", "code"), ("client_id", "asking-app"), ("redirect_uri", "https://asking.example/callback"),
            ("state", "s"), ("scope", "openid"), ("code_challenge_method", "S256"),
            ("code_challenge", Base64URL.encode([UInt8](repeating: 7, count: 32))), ("decision", decision),
        ]
        if let csrf { items.append(("csrf", csrf)) }
        items += further
        return try await fixture.send(
            "POST", fixture.oauth("authorize"), [Self.form] + (session.map(ServerFixture.session) ?? []),
            text: ServerFixture.query(items))
    }

    @Test("An app that has the session itself is told, and may decide with the session's token as csrf alone")
    func consent() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let other = try await fixture.session("ben")
        let asked = try await fixture.authorize(
            session: session,
            [("client_id", "asking-app"), ("redirect_uri", "https://asking.example/callback")])
        #expect(asked.status == 302 && asked["Location"]?.hasPrefix("https://asking.example/callback?") == true)
        #expect(asked.parameter("error") == "consent_required" && asked.parameter("code") == nil)
        #expect(asked.parameter("iss") != nil)
        for (decision, csrf) in [("allow", nil), ("allow", "x"), ("allow", other), ("maybe", session)] {
            let refused = try await decide(fixture, session, decision: decision, csrf: csrf)
            #expect(refused.status == 400 && refused.error == "bad_request" && refused["Location"] == nil)
        }
        #expect(try await decide(fixture, nil, decision: "allow", csrf: session).status == 400)
        let byGet = try await fixture.authorize(
            session: session,
            [
                ("client_id", "asking-app"), ("redirect_uri", "https://asking.example/callback"), ("decision", "allow"),
                ("csrf", session),
            ])
        #expect(byGet.status == 400 && byGet.error == "bad_request")
        let denied = try await decide(fixture, session, decision: "deny", csrf: session)
        #expect(denied.parameter("error") == "access_denied" && denied.parameter("state") == "s")
        let allowed = try await decide(fixture, session, decision: "allow", csrf: session)
        #expect(allowed.status == 302 && allowed.parameter("code") != nil)
    }

    @Test("No URL gets the session's token that came as csrf where a sign-in comes first, and the way back asks anew")
    func decisionBeforeSignIn() async throws {
        let fixture = try #require(ServerFixture.shared)
        // Who has allowed this app nothing in other tests.
        let session = try await fixture.session("ben")
        let login = try await decide(fixture, session, decision: "allow", csrf: session, [("prompt", "login")])
        #expect(login.status == 302 && login["Location"]?.hasPrefix(fixture.server("/UI/Login?")) == true)
        #expect(login["Location"]?.contains(session) == false)
        let goto = try #require(login.parameter("goto"))
        let back = try await fixture.send("GET", goto, ServerFixture.session(session))
        #expect(back.status == 302 && back.parameter("error") == "consent_required")
    }

    @Test(
        "The token endpoint refuses what is no form, whatever it says",
        arguments: [("application/json", "{}"), ("text/plain", "a=b"), ("multipart/form-data; boundary=x", "--x--")])
    func mediaType(_ type: String, _ body: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        for path in ["access_token", "token/revoke", "introspect"] {
            let reply = try await fixture.send("POST", fixture.oauth(path), [("Content-Type", type)], text: body)
            #expect(reply.status == 415 && reply.error == "invalid_request")
        }
    }

    @Test(
        "The token endpoint names each mistake",
        arguments: [
            ("client_id=bank-app", 400, "invalid_request"), ("", 400, "invalid_client"),
            ("grant_type=password&client_id=bank-app", 400, "unsupported_grant_type"),
            (
                "grant_type=authorization_code&client_id=bank-app&code=x&redirect_uri=http://127.0.0.1/callback&code_verifier="
                    + String(repeating: "a", count: 43), 400, "invalid_grant"
            ),
            ("grant_type=refresh_token&refresh_token=x&client_id=bank-app", 400, "invalid_grant"),
            ("grant_type=refresh_token&refresh_token=x&client_id=nobody", 400, "invalid_client"),
            ("grant_type=refresh_token&refresh_token=%FF&client_id=bank-app", 400, "invalid_request"),
            ("a=" + String(repeating: "a", count: 70_000), 413, "invalid_request"),
        ])
    func tokenErrors(_ form: String, _ status: Int, _ error: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.send("POST", fixture.oauth("access_token"), [Self.form], text: form)
        #expect(reply.status == status || (error == "invalid_client" && reply.status == 401))
        #expect(reply.error == error, "\(reply.text)")
    }

    @Test("Two Authorization fields are refused")
    func twoAuthorizations() async throws {
        let fixture = try #require(ServerFixture.shared)
        let tokens = try await fixture.tokens(session: try await fixture.session())
        let twice = ServerFixture.bearer(tokens.access) + ServerFixture.bearer(tokens.access)
        #expect(try await fixture.send("GET", fixture.oauth("userinfo"), twice).status == 400)
        let refused = try await fixture.send(
            "POST", fixture.oauth("access_token"),
            [Self.form, ("Authorization", "Basic eA=="), ("Authorization", "Basic eQ==")],
            text: "grant_type=refresh_token&refresh_token=x&client_id=bank-app")
        #expect(refused.status == 400 && refused.error == "invalid_request")
        #expect(try await fixture.send("GET", fixture.gateway("/accounts"), twice).status == 401)
    }

    @Test("userinfo says what the scopes allow, and refuses in AM's words")
    func userInfo() async throws {
        let fixture = try #require(ServerFixture.shared)
        let tokens = try await fixture.tokens(session: try await fixture.session())
        let reply = try await fixture.send("GET", fixture.oauth("userinfo"), ServerFixture.bearer(tokens.access))
        #expect(reply.status == 200)
        #expect(reply.json["given_name"] == "Ana" && reply.json["email"] == nil)
        let refusal =
            #"{"error":"invalid_token","error_description":"The access token provided is expired, revoked, malformed, or invalid for other reasons."}"#
        for fields in [
            [], ServerFixture.bearer("x"), ServerFixture.bearer(tokens.refresh), [("Authorization", "Basic eA==")],
        ] {
            let refused = try await fixture.send("GET", fixture.oauth("userinfo"), fields)
            #expect(refused.status == 401 && refused.text == refusal)
            let sent = fields.first.map { $0.1.hasPrefix("Bearer") } ?? false
            #expect(
                refused["WWW-Authenticate"]
                    == (sent ? #"Bearer realm="/alpha", error="invalid_token""# : #"Bearer realm="/alpha""#))
        }
        let elsewhere = try await fixture.send(
            "GET", fixture.oauth("userinfo", realm: "beta"), ServerFixture.bearer(tokens.access))
        #expect(elsewhere.status == 401)
    }

    @Test("The reply of the token endpoint has what apps read, and no cache keeps it")
    func tokens() async throws {
        let fixture = try #require(ServerFixture.shared)
        let tokens = try await fixture.tokens(session: try await fixture.session())
        let reply = try await fixture.refresh(tokens.refresh)
        #expect(reply.status == 200)
        #expect(reply.json["token_type"] == "Bearer" && reply.json["expires_in"] == 600)
        #expect(reply.json["scope"] == "openid profile accounts")
        #expect(reply["Cache-Control"]?.contains("no-store") == true)
    }

    @Test("Revoking an unknown token is fine; revoking a refresh token ends its access tokens at once")
    func revoke() async throws {
        let fixture = try #require(ServerFixture.shared)
        let tokens = try await fixture.tokens(session: try await fixture.session())
        func revoke(_ token: String) async throws -> Answer {
            try await fixture.send(
                "POST", fixture.oauth("token/revoke"), [Self.form],
                text: ServerFixture.query([("token", token), ("client_id", "bank-app")]))
        }
        let unknown = try await revoke("unknown")
        #expect(unknown.status == 200 && unknown.text == "{}")
        let bearer = ServerFixture.bearer(tokens.access)
        #expect(try await fixture.send("GET", fixture.gateway("/accounts"), bearer).status == 200)
        #expect(try await revoke(tokens.refresh).status == 200)
        #expect(try await fixture.send("GET", fixture.gateway("/accounts"), bearer).status == 401)
        #expect(try await fixture.send("GET", fixture.oauth("userinfo"), bearer).status == 401)
        #expect(try await fixture.refresh(tokens.refresh).error == "invalid_grant")
    }

    @Test("Discovery and keys are where clients look, under the server's own URL")
    func discovery() async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.send("GET", fixture.oauth(".well-known/openid-configuration"))
        #expect(reply.status == 200)
        #expect(reply.json["issuer"]?.string == fixture.oauth("").dropLast().description)
        let endpoints = [
            "authorization_endpoint": "authorize", "token_endpoint": "access_token", "userinfo_endpoint": "userinfo",
            "end_session_endpoint": "connect/endSession", "revocation_endpoint": "token/revoke",
            "introspection_endpoint": "introspect", "jwks_uri": "connect/jwk_uri",
        ]
        for (name, path) in endpoints {
            let url = try #require(reply.json[name]?.string)
            #expect(url.hasSuffix("/" + path) && url.hasPrefix(fixture.server("/oauth2")))
        }
        #expect(reply.json["code_challenge_methods_supported"] == ["S256"])
        let keys = try await fixture.send("GET", try #require(reply.json["jwks_uri"]?.string))
        #expect(keys.status == 200)
        let list = try #require(keys.json["keys"]?.array)
        #expect(!list.isEmpty)
        for key in list {
            #expect(key["kid"] != nil && key["kty"] != nil)
            for secret in ["d", "p", "q", "dp", "dq", "qi", "k"] { #expect(key[secret] == nil) }
        }
    }

    @Test("end session ends the session of the hint's user")
    func endSession() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let tokens = try await fixture.tokens(session: session)
        let reply = try await fixture.send(
            "GET", fixture.oauth("connect/endSession?") + ServerFixture.query([("id_token_hint", tokens.id)]))
        #expect(reply.status == 204)
        #expect(reply["Set-Cookie"]?.hasPrefix("iPlanetDirectoryPro=; ") == true)
        let validated = try await fixture.send(
            "POST", fixture.json("sessions?_action=validate"), ServerFixture.session(session))
        #expect(validated.text == #"{"valid":false}"#)
        #expect(
            try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.bearer(tokens.access)).status
                == 401)
    }

    @Test(
        "What is nowhere is not found, in OAuth's form",
        arguments: [("GET", "nothing"), ("POST", "connect"), ("GET", "access_token/more")])
    func notFound(_ method: String, _ path: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.send(method, fixture.oauth(path))
        #expect(reply.status == 404 && reply.error == "not_found")
        #expect(try await fixture.send(method, fixture.oauth(path, realm: "gamma")).status == 404)
    }

    @Test(
        "A method that an endpoint does not have is refused with those that it has",
        arguments: [
            ("GET", "access_token", "POST"), ("PUT", "authorize", "GET, POST"), ("POST", "connect/jwk_uri", "GET"),
            ("GET", "token/revoke", "POST"), ("GET", "introspect", "POST"), ("DELETE", "userinfo", "GET, POST"),
            ("OPTIONS", "authorize", "GET, POST"), ("OPTIONS", "introspect", "POST"),
        ])
    func wrongMethod(_ method: String, _ path: String, _ allowed: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.send(method, fixture.oauth(path))
        #expect(reply.status == 405 && reply["Allow"] == allowed)
    }
}
