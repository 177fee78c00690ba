import AssentCore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Who sends a request")
struct CallersTests {
    private static let anywhere = AccessTokenRequirement(
        scopes: [], audience: ["https://api.bank.example"], includesIssuer: false)

    private static func callers(_ fixture: ProviderFixture) -> Callers {
        Callers(sessions: Sessions(fixture.context), providers: [fixture.grants.configuration.realm: fixture.grants])
    }

    private static func describe(_ caller: Caller) -> String {
        switch caller {
        case .anonymous: "anonymous"
        case .session(let session, let carrier): "\(session.user.username) by \(carrier)"
        case .foreignSession(let session): "\(session.user.username) of \(session.realm)"
        case .accessToken(let grant): "\(grant.clientID) for \(grant.owner?.user.username ?? "itself")"
        case .refusedToken(let reason): "refused: \(reason)"
        }
    }

    @Test("A session's token names its user and how it came, in its own realm only")
    func sessions() async throws {
        let fixture = try await ProviderFixture()
        let callers = Self.callers(fixture)
        let realm = fixture.session.realm
        let cookie = SessionCredential(token: fixture.sessionToken, carrier: .cookie)
        let name = fixture.user.username
        #expect(Self.describe(try await callers.caller(with: cookie, realm: realm)) == "\(name) by cookie")
        let field = SessionCredential(token: fixture.sessionToken, carrier: .field)
        #expect(Self.describe(try await callers.caller(with: field, realm: realm)) == "\(name) by field")
        #expect(Self.describe(try await callers.caller(with: field, realm: "/other")) == "\(name) of \(realm)")
        let unknown = SessionCredential(token: Secret("x"), carrier: .field)
        #expect(Self.describe(try await callers.caller(with: unknown, realm: realm)) == "anonymous")
        let none: SessionCredential? = nil
        #expect(Self.describe(try await callers.caller(with: none, realm: realm)) == "anonymous")
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        #expect(Self.describe(try await callers.caller(with: field, realm: realm)) == "anonymous")
    }

    @Test("An access token decides alone: a session beside a bad one does not help")
    func accessTokens() async throws {
        let fixture = try await ProviderFixture()
        let callers = Self.callers(fixture)
        let realm = fixture.session.realm
        let token = try await fixture.tokens().accessToken
        let session = SessionCredential(token: fixture.sessionToken, carrier: .cookie)
        func describe(
            _ credentials: BearerCredentials, realm: String? = nil,
            requirement: AccessTokenRequirement = Self.anywhere
        ) async throws -> String {
            Self.describe(
                try await callers.caller(
                    with: PresentedCredentials(session: session, accessToken: credentials),
                    realm: realm ?? fixture.session.realm, requirement: requirement))
        }
        #expect(try await describe(.token(token)) == "bank-app for \(fixture.user.username)")
        #expect(try await describe(.absent) == "\(fixture.user.username) by cookie")
        #expect(try await describe(.malformed) == "refused: notOurs")
        #expect(try await describe(.token(Secret("x"))) == "refused: notOurs")
        #expect(try await describe(.token(token), realm: "/other") == "refused: notOurs")
        let elsewhere = AccessTokenRequirement(scopes: [], audience: ["https://a.example"], includesIssuer: false)
        #expect(try await describe(.token(token), requirement: elsewhere) == "refused: otherAudience")
        let scoped = AccessTokenRequirement(
            scopes: ["payments"], audience: ["https://api.bank.example"], includesIssuer: true)
        #expect(try await describe(.token(token), requirement: scoped) == "refused: insufficientScope")
        let granted = try await callers.caller(with: .token(token), realm: realm)
        #expect(granted.presented?.session.id == fixture.session.id && granted.presented?.grantID != nil)
    }

    @Test("A session lives on by each use of an access token for a service, and by no use that is refused")
    func use() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits(maxSession: 86_400, maxIdle: 200))
        let callers = Self.callers(fixture)
        let token = try await fixture.tokens().accessToken
        func use(_ requirement: AccessTokenRequirement) async throws -> String {
            Self.describe(
                try await callers.caller(
                    with: PresentedCredentials(session: nil, accessToken: .token(token)), realm: fixture.session.realm,
                    requirement: requirement))
        }
        fixture.clock.advance(by: 150)
        #expect(try await use(Self.anywhere) == "bank-app for \(fixture.user.username)")
        fixture.clock.advance(by: 150)
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) != nil)
        let scoped = AccessTokenRequirement(
            scopes: ["payments"], audience: ["https://api.bank.example"], includesIssuer: false)
        #expect(try await use(scoped) == "refused: insufficientScope")
        fixture.clock.advance(by: 51)
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) == nil)
    }
}
