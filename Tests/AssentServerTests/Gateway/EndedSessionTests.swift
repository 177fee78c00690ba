import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentServer

@Suite("Grants and the sessions that they were given in, at every door")
struct EndedSessionTests {
    private struct Doors: Equatable {
        let gateway: Int
        let challenge: String?
        let userInfo: Int
        let isActive: Bool
        let isRefreshActive: Bool
        let refresh: String
        let stepUp: Int
    }

    /// What was given in a session, and a transaction that it has asked for.
    private struct Given {
        let session: String
        let tokens: ServerFixture.Tokens
        let transaction: String
    }

    private func given(
        _ fixture: ServerFixture, scope: String = "openid profile accounts"
    ) async throws -> Given {
        let session = try await fixture.session()
        let tokens = try await fixture.tokens(session: session, scope: scope)
        let asked = try await pay(fixture, tokens.access)
        return Given(session: session, tokens: tokens, transaction: try ServerFixture.transactionID(asked))
    }

    /// Asks for what needs an approval.
    private func pay(_ fixture: ServerFixture, _ token: String) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.gateway("/nods"), ServerFixture.jsonFields + ServerFixture.bearer(token),
            text: FixtureBody.transfer)
    }

    /// Begins to approve a transaction.
    private func stepUp(
        _ fixture: ServerFixture, _ transaction: String, _ credentials: [(String, String)]
    ) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.json("authenticate") + "?authIndexType=transaction&authIndexValue=" + transaction,
            credentials)
    }

    /// What each door says of the tokens, and of the session.
    private func doors(_ fixture: ServerFixture, _ given: Given) async throws -> Doors {
        let tokens = given.tokens
        let gateway = try await fixture.send(
            "GET", fixture.gateway("/accounts"), ServerFixture.bearer(tokens.access))
        let userInfo = try await fixture.send("GET", fixture.oauth("userinfo"), ServerFixture.bearer(tokens.access))
        func isActive(_ token: String) async throws -> Bool {
            try await form(
                fixture, "introspect",
                [
                    ("client_id", "back-office"), ("client_secret", FixtureConfiguration.clientSecret),
                    ("token", token),
                ]
            ).json["active"] == true
        }
        let active = (try await isActive(tokens.access), try await isActive(tokens.refresh))
        let refresh = try await form(
            fixture, "access_token",
            [
                ("grant_type", "refresh_token"), ("client_id", "bank-app"), ("refresh_token", tokens.refresh),
            ])
        let stepUp = try await stepUp(fixture, given.transaction, ServerFixture.session(given.session))
        return Doors(
            gateway: gateway.status, challenge: gateway["WWW-Authenticate"], userInfo: userInfo.status,
            isActive: active.0, isRefreshActive: active.1, refresh: refresh.error ?? "\(refresh.status)",
            stepUp: stepUp.status)
    }

    private func form(
        _ fixture: ServerFixture, _ path: String, _ form: [(String, String)]
    ) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.oauth(path), [("Content-Type", "application/x-www-form-urlencoded")],
            text: ServerFixture.query(form))
    }

    @Test("After a sign-out no door takes the tokens of the session, and the gateway says that the token is not valid")
    func signedOut() async throws {
        try await ServerFixture.run { fixture in
            let (ended, other) = (try await given(fixture), try await given(fixture))
            try await fixture.signOut(ended.session)
            #expect(
                try await doors(fixture, ended)
                    == Doors(
                        gateway: 401, challenge: #"Bearer error="invalid_token""#, userInfo: 401, isActive: false,
                        isRefreshActive: false, refresh: "invalid_grant", stepUp: 401))
            let live = try await doors(fixture, other)
            #expect(live.refresh == "200" && live.stepUp == 200)
        }
    }

    @Test("With offline_access every door takes them, as tokens of the user without a session")
    func offline() async throws {
        try await ServerFixture.run { fixture in
            let ended = try await given(fixture, scope: "openid offline_access")
            try await fixture.signOut(ended.session)
            #expect(
                try await doors(fixture, ended)
                    == Doors(
                        gateway: 200, challenge: nil, userInfo: 200, isActive: true, isRefreshActive: true,
                        refresh: "200", stepUp: 401))
            #expect(fixture.upstream.requests.first?.values("X-Remote-User") == ["ana"])
            let payment = try await fixture.send(
                "POST", fixture.gateway("/notes"),
                ServerFixture.bearer(ended.tokens.access) + [("Content-Type", "text/plain")],
                text: "x")
            #expect(payment.status == 401)
            #expect(payment["WWW-Authenticate"]?.hasPrefix("SSOADVICE ") == true)
            #expect(try await fixture.rows("SELECT id FROM transactions WHERE url LIKE '%/notes'").isEmpty)
        }
    }

    @Test("A client's own token is nobody's: no policy for users lets it in, and signing in would not help")
    func client() async throws {
        try await ServerFixture.run { fixture in
            let reply = try await form(
                fixture, "access_token",
                [
                    ("grant_type", "client_credentials"), ("client_id", "jobs"),
                    ("client_secret", FixtureConfiguration.clientSecret),
                ])
            #expect(reply.status == 200 && reply.json["scope"] == "accounts" && reply.json["refresh_token"] == nil)
            let access = try #require(reply.json["access_token"]?.string)
            let gateway = try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.bearer(access))
            #expect(gateway.status == 403)
            let userInfo = try await fixture.send("GET", fixture.oauth("userinfo"), ServerFixture.bearer(access))
            #expect(userInfo.status == 403 && userInfo.error == "token_kind")
            // It can neither have a transaction nor approve a user's.
            #expect(try await pay(fixture, access).status == 403)
            #expect(try await fixture.count("transactions") == 0)
            let given = try await given(fixture)
            let field = [(ServerFixture.cookieName, access)]
            for credentials in [ServerFixture.bearer(access), field] {
                #expect(try await stepUp(fixture, given.transaction, credentials).status == 401)
            }
            #expect(try await stepUp(fixture, given.transaction, ServerFixture.session(given.session)).status == 200)
        }
    }
}
