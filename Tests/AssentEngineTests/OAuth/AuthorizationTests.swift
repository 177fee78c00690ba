import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("The authorization endpoint")
struct AuthorizationTests {
    @Test("A session gets a code in AM's form: code, iss, state, client_id")
    func success() async throws {
        let fixture = try await ProviderFixture()
        let redirect = try await fixture.redirect()
        #expect(redirect.parameters.items.map(\.name) == ["code", "iss", "state", "client_id"])
        #expect(redirect["iss"] == ProviderFixture.issuer)
        #expect(redirect["state"] == "xyz=&1")
        #expect(redirect["client_id"] == "bank-app")
        #expect(redirect.location.hasPrefix("https://bank.example/cb?code="))
        #expect(redirect.location.contains("&state=xyz%3D%261&"))
        #expect(try await fixture.audit(.oauthAuthorize).map(\.outcome) == [.success])
    }

    @Test("A redirect URI keeps its own query")
    func keepsQuery() async throws {
        let fixture = try await ProviderFixture()
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization([
                "client_id": "back end", "redirect_uri": "https://backend.example/cb?tenant=1",
            ]), session: fixture.session, decision: .allow)
        guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
        #expect(redirect.location.hasPrefix("https://backend.example/cb?tenant=1&code="))
    }

    @Test(
        "Errors before the redirect URI is known to be good are shown and go to nobody",
        arguments: [
            (["client_id": nil], "invalid_request"), (["client_id": "nobody"], "invalid_client"),
            (["redirect_uri": nil], "invalid_request"),
            (["redirect_uri": "https://bank.example/cb/"], "redirect_uri_mismatch"),
            (["redirect_uri": "https://other.example/cb"], "redirect_uri_mismatch"),
            (["redirect_uri": "https://bank.example/cb?x=1"], "redirect_uri_mismatch"),
        ] as [([String: String?], String)])
    func directErrors(changes: [String: String?], code: String) async throws {
        let fixture = try await ProviderFixture()
        let error = await #expect(throws: OAuthError.expected(code)) { try await fixture.redirect(changes) }
        #expect(error?.state == "xyz=&1")
        #expect(error?.wanted == nil)
    }

    @Test(
        "A parameter that is there twice is refused directly, whichever it is",
        arguments: ["state", "scope", "client_id"])
    func duplicates(name: String) {
        let error = #expect(throws: OAuthError.expected("invalid_request")) {
            try OAuthParameters(urlEncoded: Array("client_id=bank-app&scope=a&state=s&\(name)=x".utf8))
        }
        #expect(error?.state == (name == "state" ? nil : "s"))
    }

    @Test(
        "All other errors go to the client, with state and iss",
        arguments: [
            (["response_type": nil], "invalid_request"), (["response_type": "token"], "unsupported_response_type"),
            (["response_mode": "fragment"], "invalid_request"), (["scope": "root admin"], "invalid_scope"),
            (["scope": "op\"en"], "invalid_scope"), (["code_challenge": nil], "invalid_request"),
            (["code_challenge": nil, "code_challenge_method": nil], "invalid_request"),
            (["code_challenge_method": "plain"], "invalid_request"),
            (["code_challenge_method": nil], "invalid_request"),
            (["code_challenge": "short"], "invalid_request"), (["prompt": "none login"], "invalid_request"),
            (["max_age": "-1"], "invalid_request"), (["max_age": "99999999999999999999"], "invalid_request"),
            (["max_age": "+5"], "invalid_request"), (["request": "e30.e30."], "request_not_supported"),
            (["request_uri": "https://x.example/"], "request_uri_not_supported"),
            (["id_token_hint": "e30.e30.e30"], "invalid_request"),
        ] as [([String: String?], String)])
    func redirectedErrors(changes: [String: String?], code: String) async throws {
        let fixture = try await ProviderFixture()
        let redirect = try await fixture.redirect(changes)
        #expect(redirect["error"] == code)
        #expect(redirect["error_description"]?.isEmpty == false)
        #expect(redirect["state"] == "xyz=&1")
        #expect(redirect["iss"] == ProviderFixture.issuer)
        #expect(redirect["code"] == nil)
        #expect(try await fixture.count("oauth_codes") == 0)
    }

    @Test("Scopes that the client may not have are left out; when none is left, they are named as AM names them")
    func scopeText() async throws {
        let fixture = try await ProviderFixture()
        let tokens = try await fixture.tokens(["scope": "admin openid root accounts"])
        #expect(tokens.scopes == ["openid", "accounts"])
        #expect(try jwtClaims(tokens.accessToken)["scope"]?.string == "openid accounts")
        let redirect = try await fixture.redirect(["scope": "admin root"])
        #expect(redirect["error_description"] == "Unknown/invalid scope(s): [admin, root]")
    }

    @Test("Without a session the user signs in, or with prompt=none the client is told, with AM's text")
    func noSession() async throws {
        let fixture = try await ProviderFixture()
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(), session: nil)
        guard case .login(let demand) = outcome else { throw UnexpectedOutcome() }
        #expect(!demand.replacesSession)
        #expect(demand.requirement == nil)
        #expect(demand.query.contains("redirect_uri=https%3A%2F%2Fbank.example%2Fcb"))
        let silent = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(["prompt": "none"]), session: nil)
        guard case .redirect(let redirect) = silent else { throw UnexpectedOutcome() }
        #expect(redirect["error"] == "login_required")
        #expect(redirect["error_description"] == "The request requires some interaction that is not allowed.")
    }

    @Test("A session of another realm does not count")
    func otherRealm() async throws {
        let fixture = try await ProviderFixture()
        let user = try #require(
            await Users(fixture.context).create(username: "ana", realm: "/beta", passwordHash: nil))
        let token = try await Sessions(fixture.context).begin(
            userID: user.id, realm: "/beta", limits: SessionLimits()
        ).token
        let foreign = try await Sessions(fixture.context).live(token: token)
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(), session: foreign)
        guard case .login = outcome else { throw UnexpectedOutcome() }
    }

    @Test(
        "A new sign-in is asked for once: the request to come back with asks no more",
        arguments: [
            ["prompt": "login consent"], ["prompt": "select_account consent"], ["prompt": "consent", "max_age": "0"],
        ])
    func promptLogin(changes: [String: String]) async throws {
        let fixture = try await ProviderFixture()
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(changes.mapValues { $0 }), session: fixture.session)
        guard case .login(let demand) = outcome else { throw UnexpectedOutcome() }
        #expect(demand.replacesSession)
        #expect(try await Sessions(fixture.context).live(id: fixture.session.id) != nil, "nobody has signed in yet")
        #expect(demand.continuation["prompt"] == "consent")
        #expect(demand.continuation["max_age"] == changes["max_age"].map { _ in "10" })
    }

    @Test(
        "A decision that comes before a sign-in is not carried through it, nor the session's token beside it",
        arguments: [("prompt", "login"), ("prompt", "select_account"), ("max_age", "0")])
    func decisionBeforeSignIn(name: String, value: String) async throws {
        let fixture = try await ProviderFixture()
        let token = fixture.sessionToken.reveal()
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization([name: value, "decision": "allow", "csrf": token]),
            session: fixture.session, decision: .allow)
        guard case .login(let demand) = outcome else { throw UnexpectedOutcome() }
        #expect(demand.continuation["decision"] == nil && demand.continuation["csrf"] == nil)
        #expect(!demand.query.contains(token))
        #expect(demand.continuation["state"] == "xyz=&1")
    }

    @Test(
        "max_age demands a sign-in that is recent enough",
        arguments: [
            (100, 101, false), (100, 100, true), (0, 0, false), (1, 1, true), (1, 2, false), (9, 10, false),
        ])
    func maxAge(maxAge: Int, age: Int, isEnough: Bool) async throws {
        let fixture = try await ProviderFixture()
        fixture.clock.advance(by: Double(age))
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(["max_age": "\(maxAge)"]), session: fixture.session)
        switch outcome {
        case .redirect(let redirect): #expect(isEnough && redirect["code"] != nil)
        case .login(let demand):
            #expect(!isEnough && demand.replacesSession)
            // The way back from the sign-in may take a while.
            #expect(demand.continuation["max_age"] == "\(max(maxAge, 10))")
        case .consent, .sessionLives: throw UnexpectedOutcome()
        }
    }

    @Test("response_type=none answers with state and iss alone, as silently as prompt=none wants it")
    func responseTypeNone() async throws {
        let fixture = try await ProviderFixture()
        let changes: [String: String?] = [
            "response_type": "none", "prompt": "none", "code_challenge": nil, "code_challenge_method": nil,
        ]
        let alive = try await fixture.redirect(changes)
        #expect(alive.parameters.items.map(\.name).sorted() == ["iss", "state"])
        #expect(alive["state"] == "xyz=&1")
        #expect(try await fixture.count("grants") == 0)
        #expect(try await fixture.count("oauth_codes") == 0)
        let gone = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(changes), session: nil)
        guard case .redirect(let redirect) = gone else { throw UnexpectedOutcome() }
        #expect(redirect["error"] == "login_required" && redirect["state"] == "xyz=&1")
        let asked = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(["response_type": "none"]), session: nil)
        guard case .login(let demand) = asked else { throw UnexpectedOutcome() }
        #expect(demand.continuation["response_type"] == "none")
        let consent = try await fixture.redirect([
            "client_id": "back end", "redirect_uri": "https://backend.example/cb?tenant=1", "response_type": "none",
            "prompt": "none",
        ])
        #expect(consent["error"] == "consent_required")
        for other in ["code none", "none none", "None"] {
            #expect(try await fixture.redirect(["response_type": other])["error"] == "unsupported_response_type")
        }
    }

    @Test("Consent is asked for unless it is implied; the user may agree or not")
    func consent() async throws {
        let fixture = try await ProviderFixture()
        let changes: [String: String?] = [
            "client_id": "back end", "redirect_uri": "https://backend.example/cb?tenant=1",
        ]
        func authorize(_ more: [String: String?], _ decision: AuthorizationDecision?) async throws
            -> AuthorizationOutcome
        {
            try await AuthorizationEndpoint(fixture.grants).answer(
                try ProviderFixture.authorization(changes.merging(more) { $1 }), session: fixture.session,
                decision: decision)
        }
        guard case .consent(let demand) = try await authorize([:], nil) else { throw UnexpectedOutcome() }
        #expect(demand.scopes == ["openid", "accounts"])
        guard case .consent(let claimed) = try await authorize(["assent_user": "somebody"], nil)
        else { throw UnexpectedOutcome() }
        #expect(claimed.parameters["assent_user"] == fixture.session.user.id, "no client says who is asked")
        guard case .redirect(let silent) = try await authorize(["prompt": "none"], nil),
            case .redirect(let denied) = try await authorize([:], .deny),
            case .redirect(let allowed) = try await authorize([:], .allow)
        else { throw UnexpectedOutcome() }
        #expect(silent["error"] == "consent_required")
        #expect(denied["error"] == "access_denied")
        #expect(allowed["code"] != nil)
        let implied = try await fixture.redirect(["prompt": "consent", "scope": "openid offline_access"])
        #expect(implied["code"] != nil, "the operator has agreed for everybody")
    }

    @Test("An id_token_hint of another user makes the session not count, one of another client is refused")
    func hint() async throws {
        let fixture = try await ProviderFixture()
        let own = try #require(await fixture.tokens().idToken).reveal()
        #expect(try await fixture.redirect(["prompt": "none", "id_token_hint": own])["code"] != nil)

        let bob = try #require(await Users(fixture.context).create(username: "bob", realm: "/alpha", passwordHash: nil))
        let token = try await Sessions(fixture.context).begin(
            userID: bob.id, realm: "/alpha", limits: SessionLimits()
        ).token
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(["prompt": "none", "id_token_hint": own]),
            session: try await Sessions(fixture.context).live(token: token))
        guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
        #expect(redirect["error"] == "login_required")

        let foreign = try await fixture.redirect([
            "client_id": "other-app", "redirect_uri": "https://other.example/cb", "scope": "openid",
            "id_token_hint": own,
        ])
        #expect(foreign["error"] == "invalid_request")
    }

    @Test("The csrf value of AM's clients is the session's own token and nothing else")
    func csrf() async throws {
        let fixture = try await ProviderFixture()
        #expect(AuthorizationEndpoint.isCSRFToken(fixture.sessionToken, of: fixture.session))
        #expect(!AuthorizationEndpoint.isCSRFToken(Secret("x"), of: fixture.session))
        #expect(!AuthorizationEndpoint.isCSRFToken(Secret(fixture.session.id), of: fixture.session))
    }

    @Test("Descriptions of requests and answers show no code, token or verifier")
    func descriptions() async throws {
        let fixture = try await ProviderFixture()
        let redirect = try await fixture.redirect()
        let code = try #require(redirect["code"])
        let request = try ProviderFixture.parameters(["code": code, "client_secret": ProviderFixture.secret])
        let reply = try await fixture.exchange(code)
        var shown = "\(redirect) \(request) \(reply)"
        dump(redirect, to: &shown)
        dump(request, to: &shown)
        dump(reply, to: &shown)
        for secret in [code, ProviderFixture.secret, reply.accessToken.reveal(), reply.refreshToken?.reveal() ?? code] {
            #expect(!shown.contains(secret))
        }
    }
}
