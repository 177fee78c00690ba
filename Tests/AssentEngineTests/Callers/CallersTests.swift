import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Who sends a request")
struct CallersTests {
    private static let anywhere = AccessTokenRequirement(
        scopes: [], audience: ["https://api.bank.example"], includesIssuer: false)

    private static func callers(_ fixture: ProviderFixture) -> Callers {
        Callers(
            sessions: Sessions(fixture.context), providers: [fixture.grants.configuration.realm: fixture.grants],
            proofs: SenderProofs(fixture.context))
    }

    private static func describe(_ caller: Caller) -> String {
        switch caller {
        case .anonymous: "anonymous"
        case .session(let session, let carrier): "\(session.user.username) by \(carrier)"
        case .foreignSession(let session): "\(session.user.username) of \(session.realm)"
        case .accessToken(let grant, _): "\(grant.clientID) for \(grant.owner?.user.username ?? "itself")"
        case .refusedToken(let refusal): "refused: \(refusal.reason), \(refusal.scheme), \(refusal.error ?? "-")"
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
            _ credentials: TokenCredentials, realm: String? = nil,
            requirement: AccessTokenRequirement = Self.anywhere
        ) async throws -> String {
            Self.describe(
                try await callers.caller(
                    with: PresentedCredentials(session: session, accessToken: credentials),
                    realm: realm ?? fixture.session.realm, requirement: requirement))
        }
        #expect(try await describe(.token(token, .bearer)) == "bank-app for \(fixture.user.username)")
        #expect(try await describe(.absent) == "\(fixture.user.username) by cookie")
        #expect(try await describe(.malformed(.bearer)) == "refused: notOurs, bearer, invalid_token")
        #expect(try await describe(.malformed(.dpop)) == "refused: notOurs, dpop, invalid_token")
        #expect(try await describe(.token(Secret("x"), .bearer)) == "refused: notOurs, bearer, invalid_token")
        #expect(
            try await describe(.token(token, .bearer), realm: "/other") == "refused: notOurs, bearer, invalid_token")
        let elsewhere = AccessTokenRequirement(scopes: [], audience: ["https://a.example"], includesIssuer: false)
        #expect(
            try await describe(.token(token, .bearer), requirement: elsewhere)
                == "refused: otherAudience, bearer, invalid_token")
        let scoped = AccessTokenRequirement(
            scopes: ["payments"], audience: ["https://api.bank.example"], includesIssuer: true)
        #expect(
            try await describe(.token(token, .bearer), requirement: scoped)
                == "refused: insufficientScope, bearer, insufficient_scope")
        let granted = try await callers.caller(
            withToken: PresentedCredentials(accessToken: .token(token, .bearer)), realm: realm)
        #expect(granted.presented?.session.id == fixture.session.id && granted.presented?.grantID != nil)
    }

    @Test("A token that belongs to a key is granted with a proof of that key alone, and never as a bearer token")
    func boundTokens() async throws {
        let fixture = try await ProviderFixture()
        let callers = Self.callers(fixture)
        try await SenderProofs.begin(fixture.context)
        let url = "https://api.bank.example/accounts"
        let (mine, other) = (try SoftwareSigningKey.generate(.es256), try SoftwareSigningKey.generate(.es256))
        let thumbprint = try JWK(publicKeyInfo: mine.publicKeyInfo).thumbprint
        let form = try ProviderFixture.parameters([
            "grant_type": "authorization_code", "client_id": "bank-app", "code": try await fixture.code(),
            "redirect_uri": "https://bank.example/cb", "code_verifier": ProviderFixture.verifier,
        ])
        let bound = try await fixture.grants.tokens(form, keyThumbprint: thumbprint).accessToken
        let unbound = try await fixture.tokens().accessToken
        let nonce = SenderProofs(fixture.context).nonce(of: .gateway)
        func describe(
            _ token: Secret, _ scheme: TokenScheme, by key: SoftwareSigningKey?, isConstrained: Bool = false
        ) async throws -> String {
            var fields: [String] = []
            if let key {
                fields = [
                    try await DPoPProof.make(
                        method: "GET", uri: url, accessToken: token, nonce: nonce, key: key, clock: fixture.clock)
                ]
            }
            let credentials = PresentedCredentials(
                session: SessionCredential(token: fixture.sessionToken, carrier: .field),
                accessToken: .token(token, scheme),
                proof: PresentedProof(fields: fields, method: "GET", url: url, server: .gateway))
            return Self.describe(
                try await callers.caller(
                    with: credentials, realm: fixture.session.realm,
                    requirement: AccessTokenRequirement(
                        scopes: [], audience: ["https://api.bank.example"], includesIssuer: false,
                        isSenderConstrained: isConstrained)))
        }
        let granted = "bank-app for \(fixture.user.username)"
        for isConstrained in [false, true] {
            #expect(try await describe(bound, .dpop, by: mine, isConstrained: isConstrained) == granted)
            #expect(
                try await describe(bound, .dpop, by: nil, isConstrained: isConstrained)
                    == "refused: keyMismatch, dpop, invalid_dpop_proof")
            #expect(
                try await describe(bound, .dpop, by: other, isConstrained: isConstrained)
                    == "refused: keyMismatch, dpop, invalid_token")
            for key in [mine, nil] {
                #expect(
                    try await describe(bound, .bearer, by: key, isConstrained: isConstrained)
                        == "refused: keyMismatch, dpop, invalid_token")
            }
            #expect(
                try await describe(unbound, .dpop, by: mine, isConstrained: isConstrained)
                    == "refused: keyMismatch, dpop, invalid_token")
        }
        #expect(try await describe(unbound, .bearer, by: nil) == granted)
        #expect(
            try await describe(unbound, .bearer, by: mine, isConstrained: true)
                == "refused: keyMismatch, dpop, invalid_token")
        let session = try await callers.caller(
            with: PresentedCredentials(session: SessionCredential(token: fixture.sessionToken, carrier: .field)),
            realm: fixture.session.realm,
            requirement: AccessTokenRequirement(
                scopes: [], audience: [], includesIssuer: true, isSenderConstrained: true))
        #expect(Self.describe(session) == "refused: missing, dpop, -")
    }

    @Test("A session lives on by each use of an access token for a service, and by no use that is refused")
    func use() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits(maxSession: 86_400, maxIdle: 200))
        let callers = Self.callers(fixture)
        let token = try await fixture.tokens().accessToken
        func use(_ requirement: AccessTokenRequirement) async throws -> String {
            Self.describe(
                try await callers.caller(
                    with: PresentedCredentials(session: nil, accessToken: .token(token, .bearer)),
                    realm: fixture.session.realm,
                    requirement: requirement))
        }
        fixture.clock.advance(by: 150)
        #expect(try await use(Self.anywhere) == "bank-app for \(fixture.user.username)")
        fixture.clock.advance(by: 150)
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) != nil)
        let scoped = AccessTokenRequirement(
            scopes: ["payments"], audience: ["https://api.bank.example"], includesIssuer: false)
        #expect(try await use(scoped) == "refused: insufficientScope, bearer, insufficient_scope")
        fixture.clock.advance(by: 51)
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) == nil)
    }
}
