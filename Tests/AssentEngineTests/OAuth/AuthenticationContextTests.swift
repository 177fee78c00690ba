import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Classes of sign-ins (acr)")
struct AuthenticationContextTests {
    private static let journeys = [
        JourneyDefinition(name: "Login", entry: "a", nodes: [:], authLevel: 1),
        JourneyDefinition(name: "Strong", entry: "a", nodes: [:], authLevel: 2),
        JourneyDefinition(name: "Pay", entry: "a", nodes: [:], transactionalOnly: true, authLevel: 9),
        JourneyDefinition(name: "Check", entry: "a", nodes: [:], noSession: true, authLevel: 9),
    ]

    private static let contexts = AuthenticationContexts(
        [.init("urn:strong", .journey("Strong")), .init("urn:two", .level(2)), .init("urn:one", .level(1))],
        journeys: journeys)

    private static func fixture() async throws -> ProviderFixture { try await ProviderFixture(contexts: contexts) }

    private static func session(
        _ fixture: ProviderFixture, level: Int, passed: String
    ) async throws -> LiveSession {
        var properties = JSONObject()
        properties["Service"] = .string(passed)
        let sessions = Sessions(fixture.context)
        let token = try await sessions.begin(
            userID: fixture.user.id, realm: "/alpha", authLevel: level, limits: ProviderFixture.longSession,
            properties: properties
        ).token
        return try #require(await sessions.live(token: token))
    }

    private static func demand(
        _ fixture: ProviderFixture, _ values: String, _ more: [String: String?] = [:], session: LiveSession?
    ) async throws -> LoginDemand? {
        let changes = more.merging(["acr_values": values]) { $1 }
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(changes), session: session)
        guard case .login(let demand) = outcome else { return nil }
        return demand
    }

    @Test(
        "All values are looked at in their order; when nobody knows one, the realm's own journey runs",
        arguments: [
            ("urn:two urn:strong", .level(2)), ("urn:unknown urn:strong", .journey("Strong")),
            ("urn:unknown", nil), ("Strong Login", .journey("Strong")), ("nobody Login", .journey("Login")),
            ("Pay", nil), ("Check", nil), ("   ", nil), ("urn:ONE", nil),
        ] as [(String, AuthenticationContexts.Requirement?)])
    func voluntary(values: String, requirement: AuthenticationContexts.Requirement?) async throws {
        let fixture = try await Self.fixture()
        let demand = try #require(try await Self.demand(fixture, values, session: nil))
        #expect(demand.requirement == requirement && !demand.replacesSession)
    }

    @Test("A session that is too weak is made stronger, once, and stays; one that does is not asked")
    func stepUp() async throws {
        let fixture = try await Self.fixture()
        let weak = try await Self.session(fixture, level: 1, passed: "Login")
        let demand = try #require(try await Self.demand(fixture, "urn:strong urn:two", session: weak))
        #expect(demand.requirement == .journey("Strong") && !demand.replacesSession)
        // Who comes back without it, since they could not or would not, gets what they have.
        let back = try await AuthorizationEndpoint(fixture.grants).answer(demand.continuation, session: weak)
        guard case .redirect(let redirect) = back else { throw UnexpectedOutcome() }
        #expect(redirect["code"] != nil)
        for enough in ["urn:one", "urn:strong urn:one", "Login", "urn:unknown", "urn:unknown Login"] {
            #expect(try await Self.demand(fixture, enough, session: weak) == nil, "\(enough)")
        }
        #expect(try await Self.demand(fixture, "urn:strong", ["prompt": "none"], session: weak) == nil)
        let strong = try await Self.session(fixture, level: 2, passed: "Login|Strong")
        #expect(try await Self.demand(fixture, "urn:strong", session: strong) == nil)
        #expect(
            try await Self.demand(fixture, "urn:strong", ["prompt": "login"], session: strong)?.replacesSession == true)
    }

    @Test(
        "The tokens say what was reached: of the wanted the first, else the strongest of the file",
        arguments: [
            (2, "Login|Strong", nil, "urn:strong"), (2, "Login", nil, "urn:two"), (1, "Login", nil, "urn:one"),
            (0, "Quick", nil, nil), (2, "Strong", "urn:one", "urn:one"), (1, "Login", "urn:strong urn:one", "urn:one"),
            (1, "Login", "urn:unknown", "urn:one"), (2, "Strong", "Strong", "Strong"), (0, "Quick", "Quick", nil),
        ] as [(Int, String, String?, String?)])
    func claim(level: Int, passed: String, wanted: String?, acr: String?) async throws {
        let fixture = try await Self.fixture()
        let session = try await Self.session(fixture, level: level, passed: passed)
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(["acr_values": wanted]), session: session)
        guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
        let first = try await fixture.exchange(try #require(redirect["code"]))
        let second = try await fixture.refresh(first.refreshToken)
        for tokens in [first, second] {
            for token in [tokens.idToken, tokens.accessToken] {
                #expect(try jwtClaims(token).object["acr"]?.string == acr)
            }
        }
        let told = try await TokenIntrospection(fixture.grants).answer(
            try ProviderFixture.parameters([
                "client_id": "back end", "client_secret": ProviderFixture.secret, "token": second.accessToken.reveal(),
            ]))
        // `back end` is not who the token is for, so it learns nothing.
        #expect(told == ["active": false])
    }

    @Test("Introspection tells a resource server acr and auth_time")
    func introspection() async throws {
        var reader = ProviderFixture.backend
        reader.introspectsAll = true
        let fixture = try await ProviderFixture(
            clients: [ProviderFixture.bank, reader], contexts: Self.contexts)
        let session = try await Self.session(fixture, level: 2, passed: "Strong")
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization(), session: session)
        guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
        let tokens = try await fixture.exchange(try #require(redirect["code"]))
        let told = try await TokenIntrospection(fixture.grants).answer(
            try ProviderFixture.parameters([
                "client_id": "back end", "client_secret": ProviderFixture.secret, "token": tokens.accessToken.reveal(),
            ]))
        #expect(told["acr"] == "urn:strong" && told["auth_time"]?.integer == session.createdAt)
    }

    @Test("Discovery lists the values of the file, and the claim")
    func discovery() async throws {
        let metadata = try await Self.fixture().grants.metadata()
        #expect(metadata["acr_values_supported"] == ["urn:strong", "urn:two", "urn:one"])
        #expect(metadata["claims_supported"]?.strings?.contains("acr") == true)
    }

    @Test("An advice is met by the values that are enough, the least demanding first")
    func advice() throws {
        func values(_ name: Advice.Name, _ value: String) throws -> [String] {
            Self.contexts.values(meeting: try Advice([.init(name, [value])]), realm: "/alpha")
        }
        #expect(try values(.authLevel, "1") == ["urn:one", "urn:two", "urn:strong"])
        #expect(try values(.authLevel, "2") == ["urn:two", "urn:strong"])
        #expect(try values(.authLevel, "3") == [])
        #expect(try values(.authLevel, "many") == [])
        #expect(try values(.service, "Strong") == ["urn:strong", "Strong"])
        #expect(try values(.service, "/alpha:Login") == ["Login"])
        #expect(try values(.service, "/beta:Login") == [])
        #expect(try values(.service, "Pay") == [])
        #expect(try values(.transaction, "abc") == [])
        let unlisted = AuthenticationContexts(journeys: Self.journeys)
        #expect(unlisted.values(meeting: try Advice([.init(.authLevel, ["2"])]), realm: "/alpha") == ["Strong"])
        let odd = AuthenticationContexts(
            journeys: [JourneyDefinition(name: "Two words, \"quoted\"", entry: "a", nodes: [:], authLevel: 5)])
        #expect(odd.values(meeting: try Advice([.init(.authLevel, ["2"])]), realm: "/alpha") == [])
    }
}
