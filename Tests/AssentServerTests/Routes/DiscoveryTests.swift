import AssentCore
import Foundation
import Testing

@testable import AssentServer

/// Each promise of the discovery document is kept, and what it does not promise is refused.
@Suite("The discovery document is true", .server)
struct DiscoveryTests {
    private static let form = ("Content-Type", "application/x-www-form-urlencoded")

    private func document() async throws -> JSONValue {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.send("GET", fixture.oauth(".well-known/openid-configuration"))
        #expect(reply.status == 200 && reply["Content-Type"] == "application/json")
        return reply.json
    }

    @Test("It has what OpenID Connect Discovery requires, and nothing that nobody has checked")
    func members() async throws {
        let names = Set(try #require(try await document().object).members.map(\.name))
        let checked: Set = [
            "issuer", "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "end_session_endpoint",
            "revocation_endpoint", "introspection_endpoint", "jwks_uri", "scopes_supported", "claims_supported",
            "response_types_supported", "response_modes_supported", "grant_types_supported", "subject_types_supported",
            "id_token_signing_alg_values_supported", "token_endpoint_auth_methods_supported",
            "revocation_endpoint_auth_methods_supported", "introspection_endpoint_auth_methods_supported",
            "code_challenge_methods_supported", "dpop_signing_alg_values_supported", "prompt_values_supported",
            "acr_values_supported", "authorization_response_iss_parameter_supported", "claims_parameter_supported",
            "request_parameter_supported", "request_uri_parameter_supported", "assent_refresh_attempt_supported",
        ]
        #expect(names == checked)
    }

    @Test("It lists what proofs may be signed with, and RS256 is not among it")
    func proofAlgorithms() async throws {
        #expect(
            try await document()["dpop_signing_alg_values_supported"]?.strings == ["ES256", "ES384", "PS256", "EdDSA"])
    }

    @Test(
        "Every endpoint that it names answers in its own way",
        arguments: [
            ("authorization_endpoint", "GET", 400), ("token_endpoint", "POST", 400), ("userinfo_endpoint", "GET", 401),
            ("userinfo_endpoint", "POST", 401), ("end_session_endpoint", "GET", 400), ("jwks_uri", "GET", 200),
            ("revocation_endpoint", "POST", 400), ("introspection_endpoint", "POST", 401),
        ])
    func endpoints(_ name: String, _ method: String, _ status: Int) async throws {
        let fixture = try #require(ServerFixture.shared)
        let url = try #require(try await document()[name]?.string)
        let reply = try await fixture.send(method, url, method == "POST" ? [Self.form] : [], text: "")
        #expect(reply.status == status && reply["Content-Type"] == "application/json")
        if status != 200 { #expect(reply.error?.isEmpty == false && reply.error != "not_found") }
    }

    @Test("Response types, modes, PKCE methods and prompts: those that it names, and no others")
    func authorization() async throws {
        let fixture = try #require(ServerFixture.shared)
        let document = try await document()
        let session = try await fixture.session()
        func error(_ name: String, _ value: String) async throws -> String? {
            try await fixture.authorize(session: session, [(name, value)]).parameter("error")
        }
        for (parameter, promise, others) in [
            ("response_type", "response_types_supported", ["token", "code id_token"]),
            ("response_mode", "response_modes_supported", ["fragment", "form_post.jwt", "query.jwt"]),
            ("code_challenge_method", "code_challenge_methods_supported", ["plain", "s256"]),
        ] {
            for value in try #require(document[promise]?.strings) {
                #expect(try await error(parameter, value) == nil, "\(parameter)=\(value)")
            }
            for value in others { #expect(try await error(parameter, value) != nil, "\(parameter)=\(value)") }
        }
        // It is for listed clients that ask whether a session lives; errors are where the token would be.
        let implicit = try await fixture.authorize(session: session, [("response_type", "id_token")])
        #expect(implicit["Location"]?.contains("#error=") == true, "\(implicit["Location"] ?? implicit.text)")
        #expect(document["request_parameter_supported"] == false)
        #expect(try await error("request", "e30.e30.") == "request_not_supported")
        #expect(document["request_uri_parameter_supported"] == false)
        #expect(try await error("request_uri", "https://a.example/r") == "request_uri_not_supported")

        let prompts = try #require(document["prompt_values_supported"]?.strings)
        #expect(Set(prompts) == ["none", "login", "select_account", "consent"])
        #expect(try await fixture.authorize(session: session, [("prompt", "none")]).parameter("code") != nil)
        let consent = try await fixture.authorize(session: session, [("prompt", "consent")])
        #expect(consent.parameter("code") != nil, "the client's consent is implied")
        for prompt in ["login", "select_account"] {
            let login = try await fixture.authorize(session: session, [("prompt", prompt)])
            #expect(login["Location"]?.hasPrefix(fixture.server("/UI/Login?")) == true)
        }
        let values = try #require(document["acr_values_supported"]?.strings)
        #expect(values == ["urn:bank:code", "urn:bank:level1"])
        for value in values {
            let stronger = try await fixture.authorize(session: session, [("acr_values", value)])
            #expect(stronger["Location"]?.hasPrefix(fixture.server("/UI/Login?")) == true, "\(value)")
        }
    }

    @Test("The issuer is in each answer to an authorization request, a code or an error")
    func issuer() async throws {
        let fixture = try #require(ServerFixture.shared)
        let document = try await document()
        #expect(document["authorization_response_iss_parameter_supported"] == true)
        let session = try await fixture.session()
        for parameters in [[], [("scope", "nothing")], [("prompt", "none login")]] {
            let reply = try await fixture.authorize(session: session, parameters)
            #expect(reply.parameter("iss") == document["issuer"]?.string)
        }
    }

    @Test("Grant types, scopes, claims and algorithms are those that it names")
    func tokens() async throws {
        let fixture = try #require(ServerFixture.shared)
        let document = try await document()
        let grants = try #require(document["grant_types_supported"]?.strings)
        for type in grants + ["password", "implicit"] {
            let reply = try await fixture.send(
                "POST", fixture.oauth("access_token"), [Self.form],
                text: ServerFixture.query([("grant_type", type), ("client_id", "bank-app")]))
            // A public client may not use client_credentials, and the other grants lack their code or token.
            let expected = type == "client_credentials" ? "unauthorized_client" : "invalid_request"
            #expect(reply.error == (grants.contains(type) ? expected : "unsupported_grant_type"), "\(type)")
        }
        let scopes = try #require(document["scopes_supported"]?.strings)
        #expect(Set(scopes) == ["openid", "profile", "email", "accounts", "offline_access", "signing", "enforcement"])
        let ofUsers = scopes.filter { !["signing", "enforcement"].contains($0) }
        let tokens = try await fixture.tokens(
            session: try await fixture.session(), scope: ofUsers.joined(separator: " "))
        let algorithms = try #require(document["id_token_signing_alg_values_supported"]?.strings)
        for token in [tokens.id, tokens.access] {
            let header = try #require(Base64URL.decode(token.prefix { $0 != "." }))
            #expect(algorithms.contains(try #require(JSONValue.parse(header)["alg"]?.string)))
        }
        #expect(Set(algorithms) == ["RS256", "ES256"])
        let keys = try await fixture.send("GET", fixture.oauth("connect/jwk_uri")).json["keys"]?.array
        #expect(Set((keys ?? []).compactMap { $0["alg"]?.string }) == ["RS256", "ES256"])
        let info = try await fixture.send("GET", fixture.oauth("userinfo"), ServerFixture.bearer(tokens.access))
        let payload = try #require(Base64URL.decode(tokens.id.split(separator: ".")[1]))
        let told = [try #require(info.json.object), try #require(try JSONValue.parse(payload).object)]
            .flatMap { $0.members.map(\.name) }
        let claims = Set(try #require(document["claims_supported"]?.strings))
        #expect(claims.isSuperset(of: ["sub", "iss", "auth_time", "given_name", "family_name", "email"]))
        #expect(Set(told).isSuperset(of: ["sub", "iss", "auth_time", "given_name", "family_name", "email"]))
        let fromUserInfo = Set(try #require(info.json.object).members.map(\.name))
        #expect(fromUserInfo.isSubset(of: claims))
        #expect(document["subject_types_supported"] == ["public"] && document["claims_parameter_supported"] == false)
    }

    @Test("A refresh may be repeated with the same attempt, as it promises to our own client")
    func attempts() async throws {
        let fixture = try #require(ServerFixture.shared)
        #expect(try await document()["assent_refresh_attempt_supported"] == true)
        let tokens = try await fixture.tokens(session: try await fixture.session())
        let form = ServerFixture.query([
            ("grant_type", "refresh_token"), ("refresh_token", tokens.refresh), ("client_id", "bank-app"),
            ("attempt_id", SystemRandom().token()),
        ])
        var seen: Set<String> = []
        for _ in 0..<2 {
            let reply = try await fixture.send("POST", fixture.oauth("access_token"), [Self.form], text: form)
            seen.insert(try #require(reply.json["refresh_token"]?.string))
        }
        #expect(seen.count == 1)
    }

    @Test("The ways to authenticate that it names are the ones that do, endpoint by endpoint")
    func clientAuthentication() async throws {
        let fixture = try #require(ServerFixture.shared)
        let document = try await document()
        let reader = FixtureConfiguration.readerSecret
        let basic = "Basic " + Data("reader:\(reader)".utf8).base64EncodedString()
        for (endpoint, promise) in [
            ("access_token", "token_endpoint_auth_methods_supported"),
            ("token/revoke", "revocation_endpoint_auth_methods_supported"),
            ("introspect", "introspection_endpoint_auth_methods_supported"),
        ] {
            let promised = Set(try #require(document[promise]?.strings))
            for (method, items, fields) in [
                ("none", [("client_id", "bank-app")], []), ("client_secret_basic", [], [("Authorization", basic)]),
                ("client_secret_post", [("client_id", "reader"), ("client_secret", reader)], []),
            ] {
                let reply = try await fixture.send(
                    "POST", fixture.oauth(endpoint), [Self.form] + fields,
                    text: ServerFixture.query(
                        items + [("grant_type", "refresh_token"), ("refresh_token", "x"), ("token", "x")]))
                #expect((reply.error != "invalid_client") == promised.contains(method), "\(endpoint) \(method)")
            }
            #expect(promised.isSubset(of: ["none", "client_secret_basic", "client_secret_post"]))
        }
    }

    @Test("Pages of any origin may call what an app in a browser calls, without cookies, and nothing else")
    func crossOrigin() async throws {
        let fixture = try #require(ServerFixture.shared)
        let origin = ("Origin", "https://app.example")
        let open = [".well-known/openid-configuration", "connect/jwk_uri", "access_token", "token/revoke", "userinfo"]
        for path in open + ["authorize", "introspect", "connect/endSession"] {
            let method = ["access_token", "token/revoke", "introspect"].contains(path) ? "POST" : "GET"
            let preflight = try await fixture.send(
                "OPTIONS", fixture.oauth(path),
                [
                    origin, ("Access-Control-Request-Method", method),
                    ("Access-Control-Request-Headers", "authorization"),
                ])
            let reply = try await fixture.send(method, fixture.oauth(path), [origin, Self.form], text: "")
            for answer in [preflight, reply] {
                #expect(answer["Access-Control-Allow-Origin"] == (open.contains(path) ? "*" : nil), "\(path)")
                #expect(answer["Access-Control-Allow-Credentials"] == nil)
            }
            #expect(preflight.status == (open.contains(path) ? 204 : 405))
            if open.contains(path) {
                #expect(preflight["Access-Control-Allow-Methods"]?.contains(method) == true)
                #expect(preflight["Access-Control-Allow-Headers"] == "Authorization, Content-Type, DPoP")
            }
        }
    }

    @Test("The metadata are where RFC 8414 looks for them, too")
    func standardPath() async throws {
        let fixture = try #require(ServerFixture.shared)
        let usual = try await fixture.send("GET", fixture.oauth(".well-known/openid-configuration"))
        let path = "/.well-known/oauth-authorization-server/am/oauth2/realms/root/realms/alpha"
        let standard = try await fixture.send("GET", fixture.root(path))
        #expect(standard.status == 200 && standard.json == usual.json)
        for other in ["/.well-known/oauth-authorization-server", path + "/x", path + "x"] {
            #expect(try await fixture.send("GET", fixture.root(other)).status == 404, "\(other)")
        }
    }

    @Test("userinfo takes the access token in a form, but not two")
    func postedToken() async throws {
        let fixture = try #require(ServerFixture.shared)
        let tokens = try await fixture.tokens(session: fixture.session())
        let form = [("Content-Type", "application/x-www-form-urlencoded")]
        let body = ServerFixture.query([("access_token", tokens.access)])
        let url = fixture.oauth("userinfo")
        let posted = try await fixture.send("POST", url, form, text: body)
        #expect(posted.status == 200 && posted.json["sub"]?.string != nil)
        let twice = try await fixture.send("POST", url, form + ServerFixture.bearer(tokens.access), text: body)
        #expect(twice.status == 400 && twice.json["error"] == "invalid_request")
        #expect(try await fixture.send("POST", url, form, text: "access_token=x").status == 401)
        #expect(try await fixture.send("POST", url, [("Content-Type", "text/plain")], text: body).status == 401)
        #expect(try await fixture.send("GET", url + "?" + body).status == 401)
    }

    @Test("Browsers are told to come by TLS only, but not of localhost in development")
    func strictTransport() async throws {
        let fixture = try #require(ServerFixture.shared)
        #expect(try await fixture.send("GET", fixture.root("/healthz"))["Strict-Transport-Security"] == nil)
        func production(_ configuration: inout ServerConfiguration) { configuration.sendsHSTS = true }
        try await ServerFixture.run(configuring: production) { fixture in
            for url in [fixture.root("/healthz"), fixture.gateway("/none")] {
                let reply = try await fixture.send("GET", url)
                #expect(reply["Strict-Transport-Security"] == "max-age=31536000")
            }
        }
    }
}
