#if os(Linux)
import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

@Suite("Round trips to the database with proofs and without", .enabled(if: TestDatabase.isPostgreSQL))
struct RoundTripTests {
    private static let url = "https://api.bank.example/accounts"
    private static let tokenURL = ProviderFixture.issuer + "/access_token"

    /// A node whose database is behind a proxy that counts.
    private struct Node {
        let fixture: ProviderFixture
        let clientKey: AssertionKey
        let proxy: PostgreSQLProxy
        let context: EngineContext
        let provider: OAuthProvider
        let proofs: SenderProofs
        let callers: Callers
        let key: SoftwareSigningKey

        init() async throws {
            clientKey = try AssertionKey()
            fixture = try await ProviderFixture(clients: [AssertionKey.client([clientKey]), ProviderFixture.bank])
            let path = fixture.url.appending(path: "test.sqlite").path
            guard case .postgresql(let configuration) = try await TestDatabase.location(path) else {
                throw UnexpectedOutcome()
            }
            proxy = try PostgreSQLProxy(configuration)
            var counted = proxy.configuration
            counted.connections = 1
            // Its looks at the servers would be counted, too.
            counted.watchInterval = 3_600_000
            // A transaction that is ended because it stands still begins anew, which costs more.
            counted.idleLimit = Patience.seconds * 1_000
            context = EngineContext(
                database: try await DatabaseLocation.postgresql(counted).open(clock: fixture.clock),
                clock: fixture.clock, random: SystemRandom(), masterKey: fixture.context.masterKey,
                logger: fixture.context.logger)
            try await SenderProofs.begin(context)
            provider = try OAuthProvider(
                context, keys: ServerKeys(context), configuration: fixture.grants.configuration)
            proofs = SenderProofs(context)
            callers = Callers(
                sessions: Sessions(context), providers: [provider.configuration.realm: provider], proofs: proofs)
            key = try SoftwareSigningKey.generate(.es256)
        }

        var thumbprint: String { get throws { try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint } }

        /// How many round trips something takes.
        func trips(_ body: () async throws -> Void) async throws -> Int {
            let before = proxy.roundTrips
            try await body()
            return proxy.roundTrips - before
        }

        /// How many proofs are remembered.
        var remembered: Int64 { get async throws { try await fixture.count("spent_proofs", where: "id <> 'since'") } }

        // MARK: Calls

        func presented(_ token: Secret, by key: SoftwareSigningKey? = nil) async throws -> PresentedProof {
            let proof = try await DPoPProof.make(
                method: "GET", uri: RoundTripTests.url, accessToken: token, nonce: proofs.nonce(of: .gateway),
                key: key ?? self.key, clock: fixture.clock)
            return PresentedProof(fields: [proof], method: "GET", url: RoundTripTests.url, server: .gateway)
        }

        func bound(_ token: Secret, by key: SoftwareSigningKey? = nil) async throws -> PresentedCredentials {
            PresentedCredentials(accessToken: .token(token, .dpop), proof: try await presented(token, by: key))
        }

        func session(_ token: Secret, by key: SoftwareSigningKey? = nil) async throws -> PresentedCredentials {
            PresentedCredentials(
                session: SessionCredential(token: token, carrier: .field), proof: try await presented(token, by: key))
        }

        /// Why a caller is refused at the gateway; `nil` when it is let in, `missing` when it is nobody.
        func refusal(_ credentials: PresentedCredentials) async throws -> String? {
            let caller = try await callers.caller(
                with: credentials, realm: "/alpha",
                requirement: AccessTokenRequirement(
                    scopes: [], audience: ["https://api.bank.example"], includesIssuer: false))
            return switch caller {
            case .refusedToken(let refusal): refusal.error
            case .anonymous: "missing"
            default: nil
            }
        }

        func boundSession() async throws -> Secret {
            try await Sessions(context).begin(
                userID: fixture.user.id, realm: "/alpha", limits: ProviderFixture.longSession,
                sender: .key(thumbprint: try thumbprint)
            ).token
        }

        func tokens(isBound: Bool) async throws -> IssuedTokens {
            try await provider.tokens(
                try ProviderFixture.parameters([
                    "grant_type": "authorization_code", "client_id": "bank-app", "code": try await fixture.code(),
                    "redirect_uri": "https://bank.example/cb", "code_verifier": ProviderFixture.verifier,
                ]), keyThumbprint: isBound ? try thumbprint : nil)
        }

        // MARK: Token requests

        func proof() async throws -> CheckedProof {
            let proof = try await DPoPProof.make(
                method: "POST", uri: RoundTripTests.tokenURL, nonce: proofs.nonce(of: .authorizationServer), key: key,
                clock: fixture.clock)
            let presented = PresentedProof(
                fields: [proof], method: "POST", url: RoundTripTests.tokenURL, server: .authorizationServer)
            return try #require(try proofs.check(presented, accessToken: nil))
        }

        /// A token request of the client that has a key, as the route makes it.
        func request(_ form: KeyValuePairs<String, String>, _ proof: CheckedProof?) async throws -> IssuedTokens {
            let assertion = try await clientKey.assertion(now: fixture.clock)
            let parameters = try ProviderFixture.parameters(form, AssertionKey.form(assertion))
            let caller = try await provider.clients.client(of: parameters, authorization: nil, at: .token)
            let shown = proof.map { TokenRequestProof(keyThumbprint: $0.thumbprint) }
            return try await provider.tokens(parameters, of: caller, proof: shown) {
                if let proof { try await caller.spend(proof, by: proofs) }
            }
        }

        func codeForm() async throws -> KeyValuePairs<String, String> {
            let redirect = "https://office.example/cb"
            return [
                "grant_type": "authorization_code",
                "code": try await fixture.code(["client_id": "office", "redirect_uri": redirect]),
                "redirect_uri": redirect, "code_verifier": ProviderFixture.verifier,
            ]
        }
    }

    @Test("A call with a bound token, or a bound session, and its proof takes one, as one with a bearer token")
    func calls() async throws {
        let node = try await Node()
        let bearer = PresentedCredentials(
            accessToken: .token(try await node.tokens(isBound: false).accessToken, .bearer))
        let token = try await node.tokens(isBound: true).accessToken
        let session = try await node.boundSession()
        for round in 0..<3 {
            var proved: [PresentedCredentials] = []
            for _ in 0..<2 { proved += [try await node.bound(token), try await node.session(session)] }
            let unbound = try await node.session(node.fixture.sessionToken)
            // The first round reads the keys.
            if round == 0 { #expect(try await node.refusal(bearer) == nil) }
            let before = try await node.remembered
            for credentials in [bearer, unbound] + proved {
                var refusal: String?
                let trips = try await node.trips { refusal = try await node.refusal(credentials) }
                #expect(trips == 1 && refusal == nil, "round \(round): \(trips), \(refusal ?? "-")")
            }
            #expect(try await node.remembered == before + 4)
            for credentials in proved {
                #expect(try await node.refusal(credentials) == "invalid_dpop_proof")
            }
            #expect(try await node.remembered == before + 4)
        }
    }

    @Test("The session endpoint, and a journey or a page with a session, find the session and spend its proof in one")
    func sessionDoors() async throws {
        let node = try await Node()
        let token = try await node.boundSession()
        let passwords = Passwords(
            node.context, policy: PasswordPolicy(logN: 4, parallelChecks: 4, waitingChecks: 500),
            limits: SignInLimits(attempts: 1000), derivation: CountingDerivation())
        let authentication = try JourneyFixture.authentication(
            node.context, passwords, OneTimePasswords(node.context, limits: OneTimePasswordLimits()),
            Transactions(node.context))
        let before = try await node.remembered
        for isEndpoint in [true, false] {
            let proof = try await node.presented(token)
            func prove() async throws -> ProvedSession? {
                if isEndpoint {
                    return try await node.proofs.session(
                        of: token, among: Sessions(node.context), proof, policies: ["/alpha": .required])
                }
                var request = AuthenticateRequest(realm: "/alpha", sessionToken: token)
                request.proof = proof
                return try await authentication.provedSession(request)
            }
            var proved: ProvedSession?
            let trips = try await node.trips { proved = try await prove() }
            #expect(trips == 1 && proved?.proof != nil, "\(trips)")
            await #expect(throws: SenderProofRefusal(.invalidProof, "The proof was used before.")) {
                _ = try await prove()
            }
        }
        #expect(try await node.remembered == before + 2)
    }

    @Test("Nobody makes the server remember a proof without a valid token or session of the proof's key")
    func remembered() async throws {
        let node = try await Node()
        let other = try SoftwareSigningKey.generate(.es256)
        let tokens = try await node.tokens(isBound: true)
        let session = try await node.boundSession()
        let unbound = try await node.tokens(isBound: false).accessToken
        let before = try await node.remembered
        for (credentials, answer) in [
            (try await node.bound(tokens.accessToken, by: other), "invalid_token"),
            (try await node.bound(unbound), "invalid_token"), (try await node.bound(Secret("x")), "invalid_token"),
            (try await node.session(session, by: other), "invalid_dpop_proof"),
            (try await node.session(Secret("x")), "missing"),
        ] {
            #expect(try await node.refusal(credentials) == answer)
        }
        #expect(try await node.refusal(try await node.session(node.fixture.sessionToken)) == nil)
        #expect(try await node.remembered == before)
        // The controls, and then the same when token and session have ended.
        #expect(try await node.refusal(try await node.bound(tokens.accessToken)) == nil)
        #expect(try await node.refusal(try await node.session(session)) == nil)
        #expect(try await node.remembered == before + 2)
        try await node.provider.revoke(
            try ProviderFixture.parameters([
                "client_id": "bank-app", "token": try #require(tokens.refreshToken).reveal(),
            ]))
        _ = try await Sessions(node.context).end(id: TokenHash.of(session))
        #expect(try await node.refusal(try await node.bound(tokens.accessToken)) == "invalid_token")
        #expect(try await node.refusal(try await node.session(session)) == "missing")
        #expect(try await node.remembered == before + 2)
    }

    @Test("A proof that is raced over calls at two nodes is accepted once, and leaves nobody without an answer")
    func race() async throws {
        let node = try await Node()
        let token = try await node.tokens(isBound: true).accessToken
        let second = Callers(
            sessions: Sessions(node.fixture.context), providers: ["/alpha": node.fixture.grants],
            proofs: SenderProofs(node.fixture.context))
        for _ in 0..<10 {
            let credentials = try await node.bound(token)
            let outcomes = try await withThrowingTaskGroup(of: String?.self) { group in
                for index in 0..<12 {
                    group.addTask {
                        if index.isMultiple(of: 2) { return try await node.refusal(credentials) }
                        let caller = try await second.caller(withToken: credentials, realm: "/alpha")
                        guard case .refusedToken(let refusal) = caller else { return nil }
                        return refusal.error
                    }
                }
                return try await group.reduce(into: [String?]()) { $0.append($1) }
            }
            #expect(outcomes.count { $0 == nil } == 1)
            #expect(outcomes.allSatisfy { $0 == nil || $0 == "invalid_dpop_proof" }, "\(outcomes)")
        }
    }

    @Test(
        "A token request by a key takes the two of its transaction; scopes that it asks for at a refresh take one more",
        arguments: [false, true])
    func tokenRequests(hasProof: Bool) async throws {
        let node = try await Node()
        var refreshToken: Secret?
        for round in 0..<3 {
            let own = try await optionalProof(node, hasProof)
            let code = try await node.codeForm()
            let codeProof = try await optionalProof(node, hasProof)
            // The first round reads the keys.
            if round == 0 { _ = try await node.request(try await node.codeForm(), nil) }
            var type: String?
            let ownTrips = try await node.trips {
                type = try await node.request(["grant_type": "client_credentials"], own).tokenType
            }
            #expect(ownTrips == 2 && type == (hasProof ? "DPoP" : "Bearer"), "round \(round)")
            let codeTrips = try await node.trips {
                refreshToken = try await node.request(code, codeProof).refreshToken
            }
            #expect(codeTrips == 2, "round \(round)")
            for scope in [nil, "openid"] {
                let token = try #require(refreshToken).reveal()
                let form: KeyValuePairs<String, String> =
                    if let scope {
                        ["grant_type": "refresh_token", "refresh_token": token, "scope": scope]
                    } else {
                        ["grant_type": "refresh_token", "refresh_token": token]
                    }
                let refreshProof = try await optionalProof(node, hasProof)
                let refreshTrips = try await node.trips {
                    refreshToken = try await node.request(form, refreshProof).refreshToken
                }
                #expect(refreshTrips == (scope == nil ? 2 : 3), "round \(round)")
            }
        }
    }

    private func optionalProof(_ node: Node, _ hasProof: Bool) async throws -> CheckedProof? {
        hasProof ? try await node.proof() : nil
    }

    @Test("A proof that was used before lets a token request change nothing: not the code, and not the assertion")
    func refusedProof() async throws {
        let node = try await Node()
        let used = try await node.proof()
        _ = try await node.request(["grant_type": "client_credentials"], used)
        let grants = try await node.fixture.count("grants")
        let assertions = try await node.fixture.count("client_assertions")
        await #expect(throws: SenderProofRefusal(.invalidProof, "The proof was used before.")) {
            try await node.request(["grant_type": "client_credentials"], used)
        }
        let form = try await node.codeForm()
        await #expect(throws: SenderProofRefusal(.invalidProof, "The proof was used before.")) {
            try await node.request(form, used)
        }
        #expect(try await node.fixture.count("client_assertions") == assertions)
        #expect(try await node.fixture.count("oauth_codes", where: "used_at IS NOT NULL") == 0)
        // One grant is the code's.
        #expect(try await node.fixture.count("grants") == grants + 1)
        let proof = try await node.proof()
        let tokens = try await node.request(form, proof)
        // A request that comes a second time ends nothing; the code with another proof does.
        await #expect(throws: SenderProofRefusal(.invalidProof, "The proof was used before.")) {
            try await node.request(form, proof)
        }
        let refreshToken = try #require(tokens.refreshToken).reveal()
        await #expect(throws: SenderProofRefusal(.invalidProof, "The proof was used before.")) {
            try await node.request(["grant_type": "refresh_token", "refresh_token": refreshToken], proof)
        }
        #expect(try await node.fixture.count("refresh_tokens", where: "used_at IS NOT NULL") == 0)
        func isValid() async throws -> Bool {
            try await node.provider.access(token: tokens.accessToken, keyThumbprint: try node.thumbprint) != nil
        }
        #expect(try await isValid())
        let another = try await node.proof()
        await #expect(throws: OAuthError.invalidGrant) { try await node.request(form, another) }
        #expect(try await !isValid())
    }

    @Test("A token request that is refused leaves its proof unspent, and the record of the refusal")
    func unspentProof() async throws {
        let node = try await Node()
        let (form, proof) = (try await node.codeForm(), try await node.proof())
        func redirect(to uri: String) async throws {
            _ = try await node.fixture.database.run(SQLStatement("UPDATE oauth_codes SET redirect_uri = \(uri)"))
        }
        try await redirect(to: "https://elsewhere.example/cb")
        await #expect(throws: OAuthError.invalidGrant) { try await node.request(form, proof) }
        #expect(try await node.fixture.audit(.oauthCode).map(\.reason) == ["binding"])
        try await redirect(to: "https://office.example/cb")
        _ = try await node.request(form, proof)
    }

    @Test("Where a crash has emptied the table, a token request is told a nonce, and has changed nothing")
    func emptied() async throws {
        let node = try await Node()
        let proof = try await node.proof()
        let form = try await node.codeForm()
        node.fixture.clock.advance(by: 1)
        _ = try await node.fixture.database.run(SQLStatement("DELETE FROM spent_proofs"))
        let refusal = await #expect(throws: SenderProofRefusal.self) { try await node.request(form, proof) }
        #expect(refusal?.code.name == "use_dpop_nonce")
        let fresh = try await node.proof()
        _ = try await node.request(form, fresh)
    }
}
#endif
