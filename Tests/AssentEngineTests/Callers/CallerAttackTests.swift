import AssentCore
import AssentJOSE
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("What a caller's token, proof and session are good for")
struct CallerAttackTests {
    private static let url = "https://api.bank.example/accounts"

    private static func callers(_ fixture: ProviderFixture, _ provider: OAuthProvider? = nil) -> Callers {
        Callers(
            sessions: Sessions(fixture.context), providers: ["/alpha": provider ?? fixture.grants],
            proofs: SenderProofs(fixture.context))
    }

    private static func proof(
        _ fixture: ProviderFixture, of token: Secret, by key: SoftwareSigningKey, nonce: String?
    ) async throws -> PresentedProof {
        let field = try await DPoPProof.make(
            method: "GET", uri: url, accessToken: token, nonce: nonce, key: key, clock: fixture.clock)
        return PresentedProof(fields: [field], method: "GET", url: url, server: .gateway)
    }

    /// An access token that belongs to a key.
    private static func bound(_ fixture: ProviderFixture, to key: SoftwareSigningKey) async throws -> Secret {
        let form = try ProviderFixture.parameters([
            "grant_type": "authorization_code", "client_id": "bank-app", "code": try await fixture.code(),
            "redirect_uri": "https://bank.example/cb", "code_verifier": ProviderFixture.verifier,
        ])
        let thumbprint = try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint
        return try await fixture.grants.tokens(form, keyThumbprint: thumbprint).accessToken
    }

    private static func refusal(_ caller: Caller) -> TokenRefusal? {
        if case .refusedToken(let refusal) = caller { refusal } else { nil }
    }

    @Test("A service's audiences, scopes and key are asked for one by one")
    func requirements() async throws {
        let issuer = ProviderFixture.issuer
        func grant(audience: [String], scopes: [String], key: String? = nil) -> AccessGrant {
            AccessGrant(
                grantID: "g", tokenID: "t", clientID: "app", owner: nil, scopes: scopes, audience: audience, acr: nil,
                issuedAt: 0, expiresAt: .max, sender: SenderBinding(keyThumbprint: key), isOffline: false, app: nil)
        }
        func refusal(
            _ grant: AccessGrant, scopes: [String] = [], audience: [String] = ["a", "b"], includesIssuer: Bool = false,
            isSenderConstrained: Bool = false
        ) -> AccessRefusal? {
            AccessTokenRequirement(
                scopes: scopes, audience: audience, includesIssuer: includesIssuer,
                isSenderConstrained: isSenderConstrained
            ).refusal(of: grant, issuer: issuer)
        }
        let both = ["read", "write"]
        for audience in [["a"], ["b"], ["x", "b"]] {
            #expect(refusal(grant(audience: audience, scopes: both), scopes: both) == nil)
        }
        for audience in [[], ["x"], [issuer], ["A"], ["a "], ["app"]] {
            #expect(refusal(grant(audience: audience, scopes: both)) == .otherAudience, "\(audience)")
        }
        #expect(refusal(grant(audience: [issuer], scopes: []), includesIssuer: true) == nil)
        #expect(refusal(grant(audience: [issuer + "/"], scopes: []), includesIssuer: true) == .otherAudience)
        #expect(refusal(grant(audience: ["a"], scopes: []), audience: [], includesIssuer: true) == .otherAudience)
        for scopes in [[], ["read"], ["write"], ["Read", "write"], ["read write"]] {
            #expect(refusal(grant(audience: ["a"], scopes: scopes), scopes: both) == .insufficientScope, "\(scopes)")
        }
        #expect(refusal(grant(audience: ["a"], scopes: both + ["more"]), scopes: both) == nil)
        #expect(refusal(grant(audience: ["a"], scopes: []), isSenderConstrained: true) == .keyMismatch)
        #expect(refusal(grant(audience: ["a"], scopes: [], key: "k"), isSenderConstrained: true) == nil)
        #expect(refusal(grant(audience: ["x"], scopes: [], key: "k"), isSenderConstrained: true) == .otherAudience)
    }

    @Test("A proof by another key than the token's, or the session's, is not spent: nobody fills the memory with it")
    func foreignProof() async throws {
        let fixture = try await ProviderFixture()
        try await SenderProofs.begin(fixture.context)
        let callers = Self.callers(fixture)
        let (mine, other) = (try SoftwareSigningKey.generate(.es256), try SoftwareSigningKey.generate(.es256))
        let token = try await Self.bound(fixture, to: mine)
        let session = try await Sessions(fixture.context).begin(
            userID: fixture.user.id, realm: "/alpha", limits: SessionLimits(),
            sender: .key(thumbprint: try JWK(publicKeyInfo: mine.publicKeyInfo).thumbprint)
        ).token
        let nonce = SenderProofs(fixture.context).nonce(of: .gateway)
        let atToken = try await Self.proof(fixture, of: token, by: other, nonce: nonce)
        let atSession = try await Self.proof(fixture, of: session, by: other, nonce: nonce)
        for _ in 0..<2 {
            let first = Self.refusal(
                try await callers.caller(
                    withToken: PresentedCredentials(accessToken: .token(token, .dpop), proof: atToken),
                    realm: "/alpha"))
            #expect(first?.reason == .keyMismatch && first?.error == "invalid_token")
            let credential = SessionCredential(token: session, carrier: .field)
            let second = Self.refusal(
                try await callers.caller(
                    withSession: PresentedCredentials(session: credential, proof: atSession), realm: "/alpha"))
            #expect(second?.detail.contains("another key") == true)
        }
        // With its own key's proof each lets in, once.
        let own = try await Self.proof(fixture, of: token, by: mine, nonce: nonce)
        for round in 0..<2 {
            let caller = try await callers.caller(
                withToken: PresentedCredentials(accessToken: .token(token, .dpop), proof: own), realm: "/alpha")
            #expect((caller.presented != nil) == (round == 0))
            #expect(Self.refusal(caller)?.error == (round == 0 ? nil : "invalid_dpop_proof"))
        }
    }

    @Test("Two tokens, two proofs or no proof: nothing is looked up, also not the session beside them")
    func nothingLookedUp() async throws {
        let fixture = try await ProviderFixture()
        let tally = StatementTally(fixture.database)
        let context = fixture.context.anotherNode(on: tally)
        try await SenderProofs.begin(context)
        let provider = try OAuthProvider(
            context, keys: ServerKeys(context), configuration: fixture.grants.configuration)
        let callers = Callers(
            sessions: Sessions(context), providers: ["/alpha": provider], proofs: SenderProofs(context))
        let mine = try SoftwareSigningKey.generate(.es256)
        let token = try await Self.bound(fixture, to: mine)
        let (field, nonce) = ("DPoP \(token.reveal())", SenderProofs(context).nonce(of: .gateway))
        let requirement = AccessTokenRequirement(
            scopes: [], audience: ["https://api.bank.example"], includesIssuer: false)

        /// Why a request is refused, and how many statements that takes.
        func asked(_ tokens: [String], proofs: Int) async throws -> (error: String?, statements: Int) {
            var fields: [String] = []
            for _ in 0..<proofs {
                fields += try await Self.proof(fixture, of: token, by: mine, nonce: nonce).fields
            }
            let credentials = PresentedCredentials(
                session: SessionCredential(token: fixture.sessionToken, carrier: .field),
                accessToken: TokenCredentials(tokens),
                proof: PresentedProof(fields: fields, method: "GET", url: Self.url, server: .gateway))
            let before = tally.count
            let caller = try await callers.caller(with: credentials, realm: "/alpha", requirement: requirement)
            return (Self.refusal(caller)?.error, tally.count - before)
        }
        // The first request reads the keys, too.
        for _ in 0..<2 {
            let right = try await asked([field], proofs: 1)
            #expect(right.error == nil && right.statements > 0, "\(right)")
        }
        for (tokens, proofs, error) in [
            ([field, field], 1, "invalid_token"), (["Bearer x", field], 1, "invalid_token"),
            ([field, "Basic YTpi"], 1, "invalid_token"), ([field], 2, "invalid_dpop_proof"),
            ([field], 0, "invalid_dpop_proof"),
        ] as [([String], Int, String)] {
            let wrong = try await asked(tokens, proofs: proofs)
            #expect(wrong.error == error && wrong.statements == 0, "\(tokens.count) tokens, \(proofs) proofs: \(wrong)")
        }
    }

    @Test("Where the client, or the realm, must use nonces, no proof without one lets in", arguments: [true, false])
    func nonces(isClients: Bool) async throws {
        var client = ProviderFixture.bank
        client.requiresNonce = isClients
        let fixture = try await ProviderFixture(clients: [client])
        try await SenderProofs.begin(fixture.context)
        var configuration = fixture.grants.configuration
        configuration.requiresNonce = !isClients
        let provider = try OAuthProvider(fixture.context, keys: fixture.grants.keys, configuration: configuration)
        let mine = try SoftwareSigningKey.generate(.es256)
        let token = try await Self.bound(fixture, to: mine)
        let session = try await Sessions(fixture.context).begin(
            userID: fixture.user.id, realm: "/alpha", limits: SessionLimits(),
            sender: .key(thumbprint: try JWK(publicKeyInfo: mine.publicKeyInfo).thumbprint)
        ).token
        let callers = Self.callers(fixture, provider)
        // By now a fresh iat would do where no nonce is required.
        fixture.clock.advance(by: 300)
        let nonce = SenderProofs(fixture.context).nonce(of: .gateway)
        for given in [nil, nonce] {
            let byToken = try await callers.caller(
                withToken: PresentedCredentials(
                    accessToken: .token(token, .dpop),
                    proof: try await Self.proof(fixture, of: token, by: mine, nonce: given)), realm: "/alpha")
            #expect(Self.refusal(byToken)?.error == (given == nil ? "use_dpop_nonce" : nil))
            #expect((Self.refusal(byToken)?.nonce != nil) == (given == nil))
            // A session belongs to no client, so the realm alone says.
            let bySession = try await callers.caller(
                withSession: PresentedCredentials(
                    session: SessionCredential(token: session, carrier: .field),
                    proof: try await Self.proof(fixture, of: session, by: mine, nonce: given)), realm: "/alpha")
            #expect(Self.refusal(bySession)?.error == (given == nil && !isClients ? "use_dpop_nonce" : nil))
        }
    }

    @Test("A session lives on by each use at a service, by its own token as well")
    func touch() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits(maxSession: 86_400, maxIdle: 200))
        let callers = Self.callers(fixture)
        let requirement = AccessTokenRequirement(scopes: [], audience: [], includesIssuer: true)
        for _ in 0..<3 {
            fixture.clock.advance(by: 150)
            let caller = try await callers.caller(
                with: PresentedCredentials(
                    session: SessionCredential(token: fixture.sessionToken, carrier: .cookie)),
                realm: "/alpha", requirement: requirement)
            #expect(caller.session?.id == fixture.session.id)
        }
        fixture.clock.advance(by: 200)
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) == nil)
    }

    @Test("A session counts as alive while it is, of whatever realm")
    func alive() async throws {
        let fixture = try await ProviderFixture()
        let callers = Self.callers(fixture)
        let foreign = try await Sessions(fixture.context).begin(
            userID: fixture.user.id, realm: "/beta", limits: SessionLimits()
        ).token
        func isAlive(_ token: Secret?) async throws -> Bool {
            let credential = token.map { SessionCredential(token: $0, carrier: .cookie) }
            return try await callers.hasLiveSession(PresentedCredentials(session: credential))
        }
        #expect(try await isAlive(fixture.sessionToken))
        #expect(try await isAlive(foreign))
        #expect(try await !isAlive(nil))
        #expect(try await !isAlive(Secret("x")))
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        #expect(try await !isAlive(fixture.sessionToken))
    }
}
