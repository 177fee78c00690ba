import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Instances of apps register")
struct RegistrationTests {
    @Test("An instance gets all that its app has, authenticates with its key, and is used as a confidential client")
    func registers() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (registered, key) = try await fixture.instance()
        #expect(registered.id.hasPrefix("pay~") && registered.id.utf8.count == 26)
        #expect(registered.metadata.scopes == ProviderFixture.pay.client.scopes)
        #expect(registered.metadata.redirectURIs == ProviderFixture.pay.client.redirectURIs)
        #expect(registered.metadata.grantTypes == OAuthClient.GrantType.allCases)
        let own = try await fixture.ownToken(of: registered.id, key)
        #expect(own.scopes == ["accounts"])
        #expect(try jwtClaims(own.accessToken).sub == registered.id)
        let tokens = try await fixture.userTokens(of: registered.id, key)
        #expect(try await fixture.isLive(tokens))
        #expect(try jwtClaims(tokens.idToken).aud == [registered.id])
        let refreshed = try await fixture.refresh(
            tokens.refreshToken,
            AssertionKey.form(try await key.assertion(of: registered.id, now: fixture.clock)))
        #expect(try await fixture.isLive(refreshed))
        let record = try #require(try await fixture.audit(.registrationCreate).first)
        #expect(record.detail["client"]?.string == registered.id)
        let metadata = fixture.grants.metadata()
        #expect(metadata["registration_endpoint"]?.string == "\(ProviderFixture.issuer)/register")
        #expect(metadata["token_endpoint_auth_methods_supported"]?.strings?.contains("private_key_jwt") == true)
    }

    @Test("Nothing in the store shows the initial access token or the registration token")
    func hashes() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let initial = try await fixture.initialToken()
        let registered = try await fixture.register(AssertionKey(), token: initial)
        let own = registered.token
        let rows = try await fixture.database.run([
            .read("SELECT * FROM client_instances"), .read("SELECT * FROM registration_tokens"),
            .read("SELECT * FROM audit"),
        ])
        let text = "\(rows)"
        #expect(text.contains(TokenHash.of(own)) && text.contains(TokenHash.of(initial)))
        #expect(!text.contains(own.reveal()) && !text.contains(initial.reveal()))
    }

    @Test("An initial access token for one registration, raced by twenty on two nodes, registers one")
    func race() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let token = try await fixture.initialToken()
        let nodes = [fixture.grants, try await fixture.secondNode()]
        let keys = try (0..<20).map { _ in try AssertionKey() }
        let codes = try await withThrowingTaskGroup(of: String?.self) { group in
            for (index, key) in keys.enumerated() {
                group.addTask {
                    try await fixture.refusalCode {
                        _ = try await fixture.register(key, token: token, on: nodes[index % 2])
                    }
                }
            }
            return try await group.reduce(into: [String?]()) { $0.append($1) }
        }
        #expect(codes.filter { $0 == nil }.count == 1)
        #expect(codes.compactMap(\.self).allSatisfy { $0 == "invalid_token" })
        #expect(try await fixture.count("client_instances") == 1)
        #expect(try await fixture.count("registered_apps", where: "instances = 1") == 1)
        #expect(try await fixture.audit(.registrationCreate).filter { $0.outcome == .success }.count == 1)
    }

    @Test("The most instances of an app are never exceeded, and one that ends makes room")
    func maximum() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay { $0.maximumInstances = 2 }])
        let token = try await fixture.initialToken(count: 50)
        let codes = try await withThrowingTaskGroup(of: String?.self) { group in
            for key in try (0..<8).map({ _ in try AssertionKey() }) {
                group.addTask {
                    try await fixture.refusalCode { _ = try await fixture.register(key, token: token) }
                }
            }
            return try await group.reduce(into: [String?]()) { $0.append($1) }
        }
        #expect(codes.filter { $0 == nil }.count == 2 && codes.filter { $0 == "access_denied" }.count == 6)
        // A refused registration has not used the token.
        #expect(try await fixture.count("registration_tokens", where: "uses_left = 48") == 1)
        let admin = try await fixture.administrator()
        let listed = try await fixture.registrations.list(of: "pay", limit: 10, by: admin)
        try await fixture.registrations.end(try #require(listed.first).id, by: admin)
        _ = try await fixture.register(AssertionKey(), token: token)
        #expect(try await fixture.count("client_instances") == 2)
    }

    @Test("No token, an unknown, expired or used one, one of another app or another realm: refused, and on record")
    func tokens() async throws {
        let other = ProviderFixture.pay { $0.client.id = "other" }
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay, other])
        let used = try await fixture.initialToken()
        _ = try await fixture.register(AssertionKey(), token: used)
        let (foreign, expired) = (try await fixture.initialToken("other"), try await fixture.initialToken(days: 1))
        let elsewhere = try await fixture.initialToken()
        _ = try await fixture.database.run(
            SQLStatement("UPDATE registration_tokens SET realm = '/beta' WHERE hash = \(TokenHash.of(elsewhere))"))
        fixture.clock.advance(by: 86_400)
        for token in [nil, Secret("guess"), used, foreign, expired, elsewhere] {
            let code = try await fixture.refusalCode { _ = try await fixture.register(AssertionKey(), token: token) }
            #expect(code == "invalid_token")
        }
        let good = try await fixture.initialToken()
        _ = try await fixture.register(AssertionKey(), token: good)
        #expect(try await fixture.audit(.registrationCreate).filter { $0.reason == "token" }.count == 5)
    }

    @Test("33 Too many registrations of an app or of an address in a minute are refused, and a minute later are not")
    func limits() async throws {
        let app = ProviderFixture.pay {
            $0.registrationsPerMinute = 2
            $0.registrationsPerAddress = 3
        }
        let fixture = try await ProviderFixture(apps: [app])
        let token = try await fixture.initialToken(count: 10)
        // Nobody without a token uses the app's share up.
        for _ in 1...5 {
            _ = try await fixture.refusalCode { _ = try await fixture.register(AssertionKey(), token: Secret("no")) }
        }
        for _ in 1...2 { _ = try await fixture.register(AssertionKey(), token: token) }
        await #expect(throws: EngineError(.tooManyRequests)) {
            _ = try await fixture.register(AssertionKey(), token: token)
        }
        // The holder of one token keeps no other out.
        _ = try await fixture.register(AssertionKey(), token: try await fixture.initialToken())
        let registration = fixture.grants.registration
        // 10,000 from one address, of which a hundred at a time wait for the database.
        let counted = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    var own = 0
                    for _ in 0..<100 {
                        do {
                            try await registration.countAttempt(at: "192.0.2.1", app)
                            own += 1
                        } catch let error as EngineError where error.code == .tooManyRequests {
                            continue
                        }
                    }
                    return own
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(counted == 3)
        try await registration.countAttempt(at: "192.0.2.2", app)
        fixture.clock.advance(by: 60)
        _ = try await fixture.register(AssertionKey(), token: token)
        try await registration.countAttempt(at: "192.0.2.1", app)
    }

    @Test("A refused request to register spends no proof, and one whose proof was used before uses no token up")
    func proofs() async throws {
        let app = ProviderFixture.pay { $0.registrationsPerMinute = 1 }
        let fixture = try await ProviderFixture(apps: [app])
        let token = try await fixture.initialToken(count: 3)
        let metadata = try InstanceMetadata(
            ProviderFixture.request(AssertionKey()), of: app, clock: fixture.clock)
        let claims = Locked(0)
        func register(_ token: Secret?, isUsed: Bool = false) async throws {
            _ = try await fixture.grants.registration.register(metadata, of: app, token: token) {
                claims.withLock { $0 += 1 }
                if isUsed { throw SenderProofRefusal(.invalidProof, "used") }
            }
        }
        for wrong in [nil, Secret("guess")] {
            #expect(try await fixture.refusalCode { try await register(wrong) } == "invalid_token")
        }
        #expect(claims.withLock { $0 } == 0)
        try await register(token)
        await #expect(throws: EngineError(.tooManyRequests)) { try await register(token) }
        #expect(claims.withLock { $0 } == 1)
        fixture.clock.advance(by: 60)
        await #expect(throws: SenderProofRefusal.self) { try await register(token, isUsed: true) }
        #expect(try await fixture.count("registration_tokens", where: "uses_left = 2") == 1)
        #expect(try await fixture.count("client_instances") == 1)
    }

    @Test("An instance of an app that nobody knows, or with a malformed id, is an unknown client without a question")
    func unknown() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (registered, key) = try await fixture.instance()
        let own = registered.id.dropFirst(4)
        for id in [
            "pay~", "pay", "~\(own)", "other~\(own)", "pay~~\(own)", "pay~\(own)~", "pay~\(own)x", "PAY~\(own)",
            "pay~\(String(repeating: "A", count: 22))", "pay~\(own.dropLast())!",
        ] {
            #expect(try await fixture.grants.clients.find(id) == nil, "\(id)")
            let refused = try await fixture.refusalCode { _ = try await fixture.ownToken(of: id, key) }
            #expect(refused == "invalid_client", "\(id)")
        }
        #expect(try await fixture.grants.clients.find(registered.id)?.instanceID == registered.id)
        let elsewhere = OAuthProviderConfiguration(realm: "/beta", issuer: "https://beta.example", clients: [])
        var other = elsewhere
        other.apps = ["pay": ProviderFixture.pay]
        #expect(try await ClientInstance.client(registered.id, in: other, fixture.context) == nil)
    }

    @Test("Another key, another instance's key and a secret do not authenticate an instance")
    func foreignKeys() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (first, key) = try await fixture.instance()
        let (second, other) = try await fixture.instance()
        for (id, foreign) in [(first.id, other), (second.id, key), (first.id, try AssertionKey())] {
            #expect(
                try await fixture.refusalCode { _ = try await fixture.ownToken(of: id, foreign) } == "invalid_client")
        }
        let form = try ProviderFixture.parameters(["grant_type": "client_credentials", "client_id": first.id])
        #expect(try await fixture.refusalCode { _ = try await fixture.grants.tokens(form) } == "invalid_client")
        _ = try await fixture.ownToken(of: first.id, key)
    }
}
