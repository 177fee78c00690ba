import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Consents: remembered, listed, taken back")
struct ConsentTests {
    private static let client: [String: String?] = [
        "client_id": "back end", "redirect_uri": "https://backend.example/cb?tenant=1",
    ]

    private func authorize(
        _ fixture: ProviderFixture, _ more: [String: String?] = [:], _ decision: AuthorizationDecision? = nil,
        session: LiveSession? = nil, on node: OAuthProvider? = nil
    ) async throws -> AuthorizationOutcome {
        try await AuthorizationEndpoint(node ?? fixture.grants).answer(
            try ProviderFixture.authorization(Self.client.merging(more) { $1 }), session: session ?? fixture.session,
            decision: decision)
    }

    private func code(_ outcome: AuthorizationOutcome) -> String? {
        if case .redirect(let redirect) = outcome { redirect["code"] } else { nil }
    }

    private func demand(_ outcome: AuthorizationOutcome) throws -> ConsentDemand {
        guard case .consent(let demand) = outcome else { throw UnexpectedOutcome() }
        return demand
    }

    private func tokens(_ fixture: ProviderFixture, _ code: String) async throws -> IssuedTokens {
        try await fixture.grants.tokens(
            try ProviderFixture.parameters([
                "grant_type": "authorization_code", "client_id": "back end", "client_secret": ProviderFixture.secret,
                "code": code, "redirect_uri": "https://backend.example/cb?tenant=1",
                "code_verifier": ProviderFixture.verifier,
            ]))
    }

    @Test(
        "The user is asked once, for what and until when; then not again, also in another session and on another node")
    func remembered() async throws {
        let fixture = try await ProviderFixture()
        let demand = try demand(try await authorize(fixture))
        #expect(demand.client.id == "back end" && demand.user.username == "ana")
        #expect(demand.scopes == ["openid", "accounts"])
        #expect(demand.expiresAt == fixture.clock.epochSeconds + 365 * 86400)
        #expect(code(try await authorize(fixture, [:], .allow)) != nil)
        #expect(code(try await authorize(fixture, ["prompt": "none"])) != nil)
        #expect(code(try await authorize(fixture, ["scope": "openid"])) != nil, "less than was agreed to")
        let token = try await Sessions(fixture.context).begin(
            userID: fixture.user.id, realm: "/alpha", limits: ProviderFixture.longSession
        ).token
        let later = try #require(await Sessions(fixture.context).live(token: token))
        #expect(code(try await authorize(fixture, session: later, on: try await fixture.secondNode())) != nil)
        let given = try await fixture.audit(.oauthConsent)
        #expect(given.map(\.reason) == ["given"])
        #expect(given.first?.detail["scope"] == "openid accounts")
    }

    @Test("prompt=consent asks again, a denial changes nothing, and more than was agreed to is asked for")
    func again() async throws {
        var backend = ProviderFixture.backend
        backend.scopes += ["more"]
        let fixture = try await ProviderFixture(clients: [backend])
        _ = try await authorize(fixture, ["scope": "accounts"], .allow)
        let asked = try demand(
            try await authorize(fixture, ["scope": "accounts", "prompt": "consent", "max_age": "5"]))
        #expect(asked.parameters["prompt"] == "consent" && asked.parameters["max_age"] == nil)
        guard
            case .redirect(let denied) = try await authorize(
                fixture, ["scope": "accounts", "prompt": "consent"], .deny)
        else { throw UnexpectedOutcome() }
        #expect(denied["error"] == "access_denied")
        #expect(code(try await authorize(fixture, ["scope": "accounts"])) != nil)
        #expect(try demand(try await authorize(fixture, ["scope": "accounts more"])).scopes == ["accounts", "more"])
        _ = try await authorize(fixture, ["scope": "more"], .allow)
        #expect(code(try await authorize(fixture, ["scope": "accounts more"])) != nil)
        let listed = try await fixture.grants.consents(of: fixture.session)
        #expect(listed.map(\.clientID) == ["back end"] && Set(listed[0].scopes) == ["accounts", "more"])
    }

    @Test("A scope that was taken from the client is not remembered with the next consent")
    func narrowed() async throws {
        var backend = ProviderFixture.backend
        backend.scopes += ["more"]
        let fixture = try await ProviderFixture(clients: [backend])
        _ = try await authorize(fixture, ["scope": "accounts more"], .allow)
        backend.scopes.removeAll { $0 == "more" }
        let narrower = try await fixture.secondNode(clients: [backend])
        _ = try await authorize(fixture, ["scope": "openid", "prompt": "consent"], .allow, on: narrower)
        let listed = try await fixture.grants.consents(of: fixture.session)
        #expect(listed.count == 1 && Set(listed.first?.scopes ?? []) == ["accounts", "openid"])
        // With the scope back the user is asked for it again.
        #expect(try demand(try await authorize(fixture, ["scope": "accounts more"])).scopes == ["accounts", "more"])
    }

    @Test("A consent ends with its time, and is deleted then")
    func expiry() async throws {
        var backend = ProviderFixture.backend
        backend.consentLifetime = 86400
        let fixture = try await ProviderFixture(clients: [backend])
        _ = try await authorize(fixture, [:], .allow)
        fixture.clock.advance(by: 86399)
        #expect(code(try await authorize(fixture)) != nil)
        fixture.clock.advance(by: 1)
        _ = try demand(try await authorize(fixture))
        #expect(try await fixture.grants.consents(of: fixture.session).isEmpty)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.count("consents") == 0)
    }

    @Test("A consent that has expired is listed and can be taken back while a grant with offline_access goes on by it")
    func expiredBeforeItsGrant() async throws {
        var backend = ProviderFixture.backend
        backend.scopes += ["offline_access"]
        backend.consentLifetime = 86400
        let fixture = try await ProviderFixture(clients: [backend])
        func given() async throws -> IssuedTokens {
            let outcome = try await authorize(fixture, ["scope": "accounts offline_access"], .allow)
            return try await tokens(fixture, try #require(code(outcome)))
        }
        func refresh(_ reply: IssuedTokens) async throws -> IssuedTokens {
            try await fixture.grants.tokens(
                try ProviderFixture.parameters([
                    "grant_type": "refresh_token", "client_id": "back end", "client_secret": ProviderFixture.secret,
                    "refresh_token": reply.refreshToken?.reveal() ?? "",
                ]))
        }
        let first = try await given()
        fixture.clock.advance(by: 86400)
        _ = try await fixture.grants.purge()
        let second = try await refresh(first)
        #expect(try await fixture.grants.consents(of: fixture.session).map(\.clientID) == ["back end"])
        // It is remembered no longer than before.
        _ = try demand(try await authorize(fixture, ["scope": "accounts"]))
        #expect(try await fixture.grants.withdrawConsent(to: "back end", by: fixture.session))
        #expect(try await !fixture.isLive(second))
        await #expect(throws: OAuthError.invalidGrant) { try await refresh(second) }
        #expect(try await fixture.grants.consents(of: fixture.session).isEmpty)
        // It goes with its grant, and does not wait for one that has ended.
        _ = try await given()
        fixture.clock.advance(by: 6 * 86400)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.count("consents") == 1)
        fixture.clock.advance(by: 86400)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.count("consents") == 0)
        #expect(try await fixture.grants.consents(of: fixture.session).isEmpty)
    }

    @Test("Taken back, all that came of it is invalid at once, and the user is asked again")
    func withdrawn() async throws {
        let fixture = try await ProviderFixture()
        let reply = try await tokens(fixture, try #require(code(try await authorize(fixture, [:], .allow))))
        let own = try await fixture.tokens()
        #expect(try await fixture.isLive(reply))
        #expect(try await fixture.grants.withdrawConsent(to: "back end", by: fixture.session))
        #expect(try await !fixture.isLive(reply))
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.grants.tokens(
                try ProviderFixture.parameters([
                    "grant_type": "refresh_token", "client_id": "back end", "client_secret": ProviderFixture.secret,
                    "refresh_token": reply.refreshToken?.reveal() ?? "",
                ]))
        }
        #expect(try await fixture.isLive(own), "another client's tokens stay")
        _ = try demand(try await authorize(fixture))
        #expect(try await !fixture.grants.withdrawConsent(to: "back end", by: fixture.session))
        #expect(try await !fixture.grants.withdrawConsent(to: "bank-app", by: fixture.session))
        #expect(try await fixture.audit(.oauthConsent).map(\.reason) == ["withdrawn", "given"])
        #expect(try await fixture.isLive(own))
    }

    @Test("A consent that is taken back while a code is asked for leaves no code, or one that is not valid")
    func race() async throws {
        let fixture = try await ProviderFixture()
        for _ in 0..<5 {
            _ = try await authorize(fixture, [:], .allow)
            async let withdrawn = fixture.grants.withdrawConsent(to: "back end", by: fixture.session)
            let outcomes = try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<8 { group.addTask { code(try await authorize(fixture)) } }
                return try await group.reduce(into: [String?]()) { $0.append($1) }
            }
            #expect(try await withdrawn)
            for code in outcomes.compactMap(\.self) {
                await #expect(throws: OAuthError.invalidGrant) { try await tokens(fixture, code) }
            }
        }
    }

    @Test("A consent that is taken back while a client asks whether it would get a code is wanted again")
    func takenBackWhileAsked() async throws {
        let fixture = try await ProviderFixture()
        _ = try await authorize(fixture, [:], .allow)
        let database = InterruptedDatabase(fixture.database) { statement in
            guard statement.sql.text().contains("UPDATE consents") else { return false }
            return try await fixture.grants.withdrawConsent(to: "back end", by: fixture.session)
        }
        let outcome = try await authorize(
            fixture, ["response_type": "none", "prompt": "none"], on: try fixture.node(database))
        guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
        #expect(database.wasInterrupted && redirect["error"] == "consent_required")
    }

    @Test("A consent that is taken back while more is agreed to does not come back with that")
    func takenBackMeanwhile() async throws {
        var backend = ProviderFixture.backend
        backend.scopes += ["more"]
        let fixture = try await ProviderFixture(clients: [backend])
        _ = try await authorize(fixture, ["scope": "accounts"], .allow)
        let database = InterruptedDatabase(fixture.database) { statement in
            guard statement.sql.text().contains("INSERT INTO consents") else { return false }
            return try await fixture.grants.withdrawConsent(to: "back end", by: fixture.session)
        }
        let node = try fixture.node(database)
        #expect(code(try await authorize(fixture, ["scope": "more"], .allow, on: node)) != nil)
        #expect(database.wasInterrupted)
        #expect(try await fixture.grants.consents(of: fixture.session).map(\.scopes) == [["more"]])
        #expect(try demand(try await authorize(fixture, ["scope": "accounts more"])).scopes == ["accounts", "more"])
    }

    @Test("Users see and take back their own alone")
    func others() async throws {
        let fixture = try await ProviderFixture()
        _ = try await authorize(fixture, [:], .allow)
        let bob = try #require(await Users(fixture.context).create(username: "bob", realm: "/alpha", passwordHash: nil))
        let token = try await Sessions(fixture.context).begin(
            userID: bob.id, realm: "/alpha", limits: ProviderFixture.longSession
        ).token
        let session = try #require(await Sessions(fixture.context).live(token: token))
        #expect(try await fixture.grants.consents(of: session).isEmpty)
        #expect(try await !fixture.grants.withdrawConsent(to: "back end", by: session))
        _ = try demand(try await authorize(fixture, session: session))
        #expect(try await fixture.grants.consents(of: fixture.session).count == 1)
    }
}
