import AssentCore
import AssentJOSE
import AssentPayload
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
        case .session(let session, let carrier, _): "\(session.user.username) by \(carrier)"
        case .foreignSession(let session): "\(session.user.username) of \(session.realm)"
        case .accessToken(let grant, _): "\(grant.clientID) for \(grant.owner?.user.username ?? "itself")"
        case .refusedKind(let kind): "refused kind: \(kind)"
        case .refusedToken(let refusal): "refused: \(refusal.reason), \(refusal.scheme), \(refusal.error ?? "-")"
        }
    }

    @Test("A session's token names its user and how it came, in its own realm only")
    func sessions() async throws {
        let fixture = try await ProviderFixture()
        let callers = Self.callers(fixture)
        let realm = fixture.session.realm
        let name = fixture.user.username
        func describe(
            _ token: Secret?, by carrier: SessionCarrier = .field, realm: String? = nil
        ) async throws -> String {
            let credential = token.map { SessionCredential(token: $0, carrier: carrier) }
            return Self.describe(
                try await callers.caller(
                    withSession: PresentedCredentials(session: credential), realm: realm ?? fixture.session.realm))
        }
        #expect(try await describe(fixture.sessionToken, by: .cookie) == "\(name) by cookie")
        #expect(try await describe(fixture.sessionToken) == "\(name) by field")
        #expect(try await describe(fixture.sessionToken, realm: "/other") == "\(name) of \(realm)")
        #expect(try await describe(Secret("x")) == "anonymous")
        #expect(try await describe(nil) == "anonymous")
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        #expect(try await describe(fixture.sessionToken) == "anonymous")
    }

    @Test("A connection that was opened plainly is not for a version whose calls must be sealed")
    func sealedAgain() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (registered, key) = try await fixture.instance(["software_version": "3.2.0"])
        let token = try await fixture.ownToken(of: registered.id, key).accessToken
        let credentials = PresentedCredentials(accessToken: .token(token, .bearer))
        let requirement = AccessTokenRequirement(scopes: [], audience: [], includesIssuer: true)
        let opened = Self.callers(fixture)
        let caller = try await opened.caller(withToken: credentials, realm: "/alpha")
        #expect(
            try await opened.again(caller, with: credentials, realm: "/alpha", requirement: requirement) != nil)
        let app = ProviderFixture.pay {
            $0.versions = AppVersions(named: ["3.2.0": .enabled], sealing: ["3.2.0": .required])
        }
        let node = try await fixture.secondNode(apps: [app])
        let callers = Callers(
            sessions: Sessions(fixture.context), providers: ["/alpha": node], proofs: SenderProofs(fixture.context))
        await #expect(throws: EngineError(.payloadEncryptionRequired)) {
            _ = try await callers.again(caller, with: credentials, realm: "/alpha", requirement: requirement)
        }
        let sealed = callers.ofSealedRequests
        /// What a session of this client says; `nil` for one that nobody has proved anything for.
        func again(_ client: String?) async throws -> Bool {
            let peer = PayloadPeer(
                role: client == nil ? .app : .device, origin: "https://api.bank.example", client: client, app: "pay",
                version: "3.2.0", platform: "linux")
            return try await SealedSession.$peer.withValue(peer) {
                try await sealed.again(caller, with: credentials, realm: "/alpha", requirement: requirement) != nil
            }
        }
        #expect(try await again(registered.id))
        let (other, _) = try await fixture.instance(["software_version": "3.2.0"])
        for client in [nil, other.id] {
            await #expect(throws: EngineError(.payloadEncryptionMismatch)) { _ = try await again(client) }
        }
    }

    @Test("A door that refuses all tokens finds the kind of one and does not spend its proof")
    func kinds() async throws {
        let fixture = try await ProviderFixture()
        let proofs = SenderProofs(fixture.context)
        try await SenderProofs.begin(fixture.context)
        let callers = Callers(
            sessions: Sessions(fixture.context), providers: ["/alpha": fixture.grants], proofs: proofs)
        let key = try SoftwareSigningKey.generate(.es256)
        let (url, thumbprint) = ("https://am.example/json", try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint)
        let token = try await fixture.grants.tokens(
            try ProviderFixture.parameters([
                "grant_type": "authorization_code", "client_id": "bank-app", "code": try await fixture.code(),
                "redirect_uri": "https://bank.example/cb", "code_verifier": ProviderFixture.verifier,
            ]), keyThumbprint: thumbprint
        ).accessToken
        func credentials(by key: SoftwareSigningKey) async throws -> PresentedCredentials {
            let proof = try await DPoPProof.make(
                method: "POST", uri: url, accessToken: token, nonce: proofs.nonce(of: .authorizationServer), key: key,
                clock: fixture.clock)
            return PresentedCredentials(
                accessToken: .token(token, .dpop),
                proof: PresentedProof(fields: [proof], method: "POST", url: url, server: .authorizationServer))
        }
        let right = try await credentials(by: key)
        for _ in 1...2 { #expect(try await callers.kind(ofToken: right, realm: "/alpha") == .user) }
        #expect(try await callers.kind(ofToken: right, realm: "/beta") == nil)
        let bearer = PresentedCredentials(accessToken: .token(token, .bearer))
        let other = try await credentials(by: try SoftwareSigningKey.generate(.es256))
        var none = right
        none.proof = nil
        for wrong in [bearer, other, none, PresentedCredentials()] {
            #expect(try await callers.kind(ofToken: wrong, realm: "/alpha") == nil)
        }
        // It serves one request yet, and no second one.
        guard case .accessToken = try await callers.caller(withToken: right, realm: "/alpha") else {
            Issue.record("the proof was spent")
            return
        }
        guard case .refusedToken = try await callers.caller(withToken: right, realm: "/alpha") else {
            Issue.record("the proof was not spent")
            return
        }
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

    @Test("A session that belongs to a key lets in its key alone, also where nothing else is accepted")
    func boundSessions() async throws {
        let fixture = try await ProviderFixture()
        try await SenderProofs.begin(fixture.context)
        let callers = Self.callers(fixture)
        let url = "https://api.bank.example/accounts"
        let (mine, other) = (try SoftwareSigningKey.generate(.es256), try SoftwareSigningKey.generate(.es256))
        let thumbprint = try JWK(publicKeyInfo: mine.publicKeyInfo).thumbprint
        let token = try await Sessions(fixture.context).begin(
            userID: fixture.user.id, realm: fixture.session.realm, limits: SessionLimits(),
            sender: .key(thumbprint: thumbprint)
        ).token
        let nonce = SenderProofs(fixture.context).nonce(of: .gateway)
        func caller(
            by key: SoftwareSigningKey?, of named: Secret?, isConstrained: Bool, realm: String? = nil
        ) async throws -> Caller {
            var fields: [String] = []
            if let key {
                fields = [
                    try await DPoPProof.make(
                        method: "GET", uri: url, accessToken: named, nonce: nonce, key: key, clock: fixture.clock)
                ]
            }
            return try await callers.caller(
                with: PresentedCredentials(
                    session: SessionCredential(token: token, carrier: .field),
                    proof: PresentedProof(fields: fields, method: "GET", url: url, server: .gateway)),
                realm: realm ?? fixture.session.realm,
                requirement: AccessTokenRequirement(
                    scopes: ["accounts"], audience: [], includesIssuer: true, isSenderConstrained: isConstrained))
        }
        let refused = "refused: keyMismatch, dpop, invalid_dpop_proof"
        for isConstrained in [false, true] {
            let granted = try await caller(by: mine, of: token, isConstrained: isConstrained)
            #expect(Self.describe(granted) == "\(fixture.user.username) by field")
            #expect(granted.presented?.sender == .key(thumbprint: thumbprint))
            for (key, named) in [(nil, nil), (other, token), (mine, fixture.sessionToken), (mine, nil)]
                as [(SoftwareSigningKey?, Secret?)]
            {
                let caller = try await caller(by: key, of: named, isConstrained: isConstrained)
                #expect(Self.describe(caller) == refused && caller.presented == nil)
            }
        }
        let elsewhere = try await caller(by: mine, of: token, isConstrained: true, realm: "/other")
        #expect(Self.describe(elsewhere) == "refused: missing, dpop, -")
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
