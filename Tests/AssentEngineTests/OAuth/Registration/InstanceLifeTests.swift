import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("The life of an instance of an app")
struct InstanceLifeTests {
    private static let day: Double = 86_400

    @Test("The end of an instance ends its grants, codes, tokens and consents, and nobody else's")
    func end() async throws {
        let fixture = try await ProviderFixture(
            clients: [ProviderFixture.bank], apps: [ProviderFixture.pay { $0.client.consentImplied = false }])
        let (gone, key) = try await fixture.instance()
        let (kept, keptKey) = try await fixture.instance()
        func agree(_ id: String) async throws -> String {
            let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
                try ProviderFixture.authorization([
                    "client_id": id, "redirect_uri": "https://pay.example/cb",
                    "scope": "openid accounts offline_access",
                ]), session: fixture.session, decision: .allow)
            guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
            return try #require(redirect["code"])
        }
        func exchange(_ code: String, _ id: String, _ key: AssertionKey) async throws -> IssuedTokens {
            try await fixture.exchange(
                code,
                AssertionKey.form(
                    try await key.assertion(of: id, now: fixture.clock), ["redirect_uri": "https://pay.example/cb"]))
        }
        let tokens = try await exchange(try await agree(gone.id), gone.id, key)
        let others = try await exchange(try await agree(kept.id), kept.id, keptKey)
        let own = try await fixture.ownToken(of: gone.id, key)
        let code = try await agree(gone.id)
        let app = try await fixture.tokens()
        for token in [tokens, own] { #expect(try await fixture.isLive(token)) }
        try await fixture.registrations.end(gone.id, by: try await fixture.administrator())
        for token in [tokens, own] { #expect(try await !fixture.isLive(token)) }
        for token in [others, app] { #expect(try await fixture.isLive(token)) }
        #expect(try await fixture.refusalCode { _ = try await exchange(code, gone.id, key) } == "invalid_client")
        #expect(try await fixture.count("grants", where: "client_id = '\(gone.id)'") == 0)
        #expect(try await fixture.grants.consents(of: fixture.session).map(\.clientID) == [kept.id])
        #expect(try await fixture.count("registered_apps", where: "instances = 1") == 1)
        let record = try #require(try await fixture.audit(.registrationEnd).first)
        #expect(record.detail["client"]?.string == gone.id && record.reason == nil)
        await #expect(throws: EngineError(.notFound)) {
            try await fixture.registrations.end(gone.id, by: try await fixture.administrator())
        }
        #expect(try await fixture.count("registered_apps", where: "instances = 1") == 1)
    }

    @Test("A client that ends between its look-up and its grant gets none, and its assertion is spent")
    func endsInBetween() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (registered, key) = try await fixture.instance()
        let form = try ProviderFixture.ownToken(try await key.assertion(of: registered.id, now: fixture.clock))
        let caller = try await fixture.grants.clients.client(of: form, authorization: nil, at: .token)
        let admin = try await fixture.administrator()
        let refused = try await fixture.refusalCode {
            _ = try await fixture.grants.tokens(form, of: caller, proof: nil) {
                // The last moment before the grant is written.
                try await fixture.registrations.end(registered.id, by: admin)
            }
        }
        #expect(refused == "invalid_client")
        #expect(try await fixture.count("grants") == 0)
        #expect(try await fixture.count("client_assertions") == 1)
    }

    @Test("Ends and token requests that race on two nodes leave no grant of an instance that has ended")
    func endRace() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (node, admin) = (try await fixture.secondNode(), try await fixture.administrator())
        for _ in 1...10 {
            let (registered, key) = try await fixture.instance()
            async let end: Void = fixture.registrations.end(registered.id, by: admin)
            async let codes = withThrowingTaskGroup(of: String?.self) { group in
                for _ in 1...4 {
                    group.addTask {
                        try await fixture.refusalCode {
                            _ = try await fixture.ownToken(of: registered.id, key, on: node)
                        }
                    }
                }
                return try await group.reduce(into: [String?]()) { $0.append($1) }
            }
            try await end
            for code in try await codes { #expect(code == nil || code == "invalid_client") }
            fixture.clock.advance(by: 60)
        }
        #expect(try await fixture.count("grants") == 0)
        #expect(try await fixture.count("registered_apps", where: "instances = 0") == 1)
    }

    @Test("A used instance stays, its use is written once a day; an unused one goes with its grants")
    func purge() async throws {
        let app = ProviderFixture.pay {
            $0.days = 30
            $0.client.refreshTokenLifetime = 20 * 86_400
        }
        let fixture = try await ProviderFixture(apps: [app])
        let (used, usedKey) = try await fixture.instance()
        let (unused, unusedKey) = try await fixture.instance()
        let begun = fixture.clock.epochSeconds
        func usedAt() async throws -> Int64? {
            try await fixture.database.run(.read("SELECT used_at FROM client_instances WHERE id = \(used.id)"))
                .first?.integer("used_at")
        }
        _ = try await fixture.userTokens(of: unused.id, unusedKey)
        fixture.clock.advance(by: Self.day / 2)
        _ = try await fixture.ownToken(of: used.id, usedKey)
        let first = begun + Int64(Self.day / 2)
        #expect(try await usedAt() == first)
        fixture.clock.advance(by: Self.day - 1)
        _ = try await fixture.ownToken(of: used.id, usedKey)
        #expect(try await usedAt() == first)
        fixture.clock.advance(by: 1)
        _ = try await fixture.ownToken(of: used.id, usedKey)
        #expect(try await usedAt() == fixture.clock.epochSeconds)
        // Thirty days, and the day for which a use may not be written.
        fixture.clock.advance(by: 29.5 * Self.day - 1)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.count("client_instances") == 2)
        fixture.clock.advance(by: 1)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.count("client_instances", where: "id = '\(used.id)'") == 1)
        #expect(try await fixture.count("client_instances") == 1)
        #expect(try await fixture.count("grants", where: "client_id = '\(unused.id)'") == 0)
        #expect(try await fixture.count("registered_apps", where: "instances = 1") == 1)
        #expect(try await fixture.audit(.registrationEnd).map(\.reason) == ["unused"])
        let refused = try await fixture.refusalCode { _ = try await fixture.ownToken(of: unused.id, unusedKey) }
        #expect(refused == "invalid_client")
        _ = try await fixture.ownToken(of: used.id, usedKey)
    }

    @Test("An instance that never authenticates gives its place back after a week, also where its realm is gone")
    func neverUsed() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (registered, _) = try await fixture.instance()
        let (kept, key) = try await fixture.instance()
        _ = try await fixture.ownToken(of: kept.id, key)
        _ = try await fixture.database.run(
            SQLStatement("UPDATE client_instances SET realm = '/gone' WHERE id = \(registered.id)"))
        fixture.clock.advance(by: 7 * Self.day - 1)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.count("client_instances") == 2)
        fixture.clock.advance(by: 1)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.count("client_instances", where: "id = '\(kept.id)'") == 1)
        #expect(try await fixture.count("client_instances") == 1)
    }

    @Test("Housekeeping deletes initial access tokens that have expired, and more instances than one batch")
    func batches() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (registered, key) = try await fixture.instance()
        _ = try await fixture.ownToken(of: registered.id, key)
        _ = try await fixture.initialToken(days: 365)
        let count = ClientInstance.batch + 3
        for index in 0..<count {
            _ = try await fixture.database.run(
                SQLStatement(
                    """
                    INSERT INTO client_instances
                    SELECT \("pay~\(index)"), realm, app, key_thumbprint, metadata, token_hash, created_at, used_at, 1,
                        app_version, app_platform
                    FROM client_instances WHERE id = \(registered.id)
                    """))
        }
        fixture.clock.advance(by: 8 * Self.day)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.count("client_instances") == 1)
        #expect(try await fixture.count("registration_tokens") == 1)
    }

    @Test("An instance never has more than its app, also after the file has narrowed it")
    func narrowed() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (registered, key) = try await fixture.instance()
        let tokens = try await fixture.userTokens(of: registered.id, key, scope: "openid accounts profile")
        let own = try await fixture.ownToken(of: registered.id, key)
        let less = ProviderFixture.pay {
            $0.client.scopes = ["openid", "profile"]
            $0.client.defaultScopes = []
            $0.client.redirectURIs = ["http://127.0.0.1/cb"]
            $0.client.grantTypes = [.authorizationCode, .refreshToken]
            $0.client.requiresProof = true
        }
        let node = try await fixture.secondNode(apps: [less])
        let client = try #require(try await node.clients.find(registered.id))
        #expect(client.scopes == ["openid", "profile"] && client.requiresProof && client.defaultScopes.isEmpty)
        #expect(!client.allowsRedirect(to: "https://pay.example/cb"))
        #expect(try await node.access(token: tokens.accessToken)?.scopes == ["openid", "profile"])
        #expect(try await node.access(token: own.accessToken)?.scopes == [])
        let refused = try await fixture.refusalCode { _ = try await fixture.ownToken(of: registered.id, key, on: node) }
        #expect(refused == "unauthorized_client")
        let code = try await fixture.refusalCode {
            _ = try await AuthorizationEndpoint(node).answer(
                try ProviderFixture.authorization([
                    "client_id": registered.id, "redirect_uri": "https://pay.example/cb",
                ]), session: fixture.session)
        }
        #expect(code == "redirect_uri_mismatch")
        let refreshed = try await fixture.refresh(
            tokens.refreshToken, AssertionKey.form(try await key.assertion(of: registered.id, now: fixture.clock)),
            keyThumbprint: "thumbprint", on: node)
        #expect(refreshed.scopes == ["openid", "profile"])
        let (instance, app) = try await node.registration.instance(
            registered.id, token: registered.token)
        #expect(
            node.registration.told(instance, of: app, token: registered.token).metadata.scopes == ["openid", "profile"])
        // Without the app, nothing is left.
        let none = try await fixture.secondNode(apps: [])
        #expect(try await none.clients.find(registered.id) == nil)
        #expect(try await none.access(token: tokens.accessToken) == nil)
        // It is not told that it has ended: the file of one node may be wrong.
        for id in [registered.id, "pay~AAAAAAAAAAAAAAAAAAAAAA"] {
            let refused = try await fixture.refusalCode {
                _ = try await none.registration.instance(id, token: registered.token)
            }
            #expect(refused == "temporarily_unavailable")
        }
        // The file is as it was.
        #expect(try await fixture.grants.clients.find(registered.id)?.scopes == ProviderFixture.pay.client.scopes)
    }

    @Test("A new key takes the place of the old one; of two changes at once one is made")
    func change() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (registered, key) = try await fixture.instance()
        let registration = fixture.grants.registration
        let (instance, app) = try await registration.instance(registered.id, token: registered.token)
        let keys = [try AssertionKey(), try AssertionKey()]
        let metadata = try keys.map {
            try InstanceMetadata(
                ProviderFixture.request($0, ["client_id": .string(registered.id), "scope": "openid accounts"]),
                of: app, as: registered.id, clock: fixture.clock)
        }
        async let first = fixture.refusalCode {
            _ = try await registration.change(instance, of: app, to: metadata[0], token: registered.token)
        }
        async let second = fixture.refusalCode {
            _ = try await registration.change(instance, of: app, to: metadata[1], token: registered.token)
        }
        let codes = [try await first, try await second]
        #expect(codes.filter { $0 == nil }.count == 1 && codes.contains("invalid_token"))
        let (new, lost) = codes[0] == nil ? (keys[0], keys[1]) : (keys[1], keys[0])
        for old in [key, lost] {
            let refused = try await fixture.refusalCode { _ = try await fixture.ownToken(of: registered.id, old) }
            #expect(refused == "invalid_client")
        }
        #expect(try await fixture.ownToken(of: registered.id, new).scopes == ["accounts"])
        let record = try #require(try await fixture.audit(.registrationUpdate).first)
        #expect(record.detail["newKey"]?.bool == true && record.detail["client"]?.string == registered.id)
        // Who has looked it up with the old key cannot end it any more.
        #expect(try await fixture.refusalCode { try await registration.end(instance, of: app) } == "invalid_token")
        let (now, _) = try await registration.instance(registered.id, token: registered.token)
        try await registration.end(now, of: app)
        #expect(try await fixture.count("client_instances") == 0)
    }

    @Test("After a restore initial access tokens are void, and instances are as the backup has them")
    func restored() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let token = try await fixture.initialToken(count: 5)
        let key = try AssertionKey()
        let registered = try await fixture.register(key, token: token)
        let tokens = try await fixture.userTokens(of: registered.id, key)
        let outcome = try await RestoredDatabase(fixture.context).fence()
        #expect(outcome.counts[.registrationTokens] == 1)
        let refused = try await fixture.refusalCode { _ = try await fixture.register(AssertionKey(), token: token) }
        #expect(refused == "invalid_token")
        #expect(try await !fixture.isLive(tokens))
        // What the page for operators says: the fence cannot know of ends, and leaves instances as the backup has them.
        fixture.clock.advance(by: 2 * 3600)
        _ = try await fixture.ownToken(of: registered.id, key)
        try await fixture.registrations.end(registered.id, by: try await fixture.administrator())
        let ended = try await fixture.refusalCode { _ = try await fixture.ownToken(of: registered.id, key) }
        #expect(ended == "invalid_client")
    }

    // MARK: - Administrators

    @Test("Only an administrator makes tokens, lists and ends, in their own realm, and each act is on record")
    func administration() async throws {
        let fixture = try await ProviderFixture(apps: [
            ProviderFixture.pay, ProviderFixture.pay { $0.client.id = "zoo" },
        ])
        let registrations = fixture.registrations
        let acts: [(String, @Sendable (LiveSession) async throws -> Void)] = [
            (
                "registration.token",
                {
                    _ = try await registrations.makeToken(
                        for: "pay", count: 1, days: 1, fixture.grants.configuration, by: $0)
                }
            ),
            ("registration.list", { _ = try await registrations.list(of: nil, limit: 10, by: $0) }),
            ("registration.end", { try await registrations.end("pay~AAAAAAAAAAAAAAAAAAAAAA", by: $0) }),
            ("registration.end", { _ = try await registrations.endSome(of: "pay", by: $0) }),
        ]
        for (event, act) in acts {
            await #expect(throws: EngineError.forbidden) { try await act(fixture.session) }
            let record = try #require(try await AuditLog(fixture.context).newest(1).first)
            #expect(record.event.rawValue == event && record.outcome == .refused)
        }
        let admin = try await fixture.administrator()
        for (count, days) in [(0, 1), (1_000_001, 1), (1, 0), (1, 366)] as [(Int64, Int64)] {
            await #expect(throws: EngineError(.invalidRequest)) {
                _ = try await registrations.makeToken(
                    for: "pay", count: count, days: days, fixture.grants.configuration, by: admin)
            }
        }
        await #expect(throws: EngineError(.notFound)) { _ = try await fixture.initialToken("none") }
        let token = try await fixture.initialToken(count: 4)
        for _ in 1...3 { _ = try await fixture.register(AssertionKey(), token: token, ["client_name": "Desk"]) }
        _ = try await fixture.register(
            AssertionKey(), token: try await fixture.initialToken("zoo"), ["software_id": "zoo"])
        let all = try await registrations.list(of: nil, limit: 10, by: admin)
        #expect(all.count == 4 && all.map(\.id) == all.map(\.id).sorted())
        let page = try await registrations.list(of: "pay", after: all[0].id, limit: 1, by: admin)
        #expect(page.map(\.id) == [all[1].id] && page.first?.name == "Desk")
        #expect(try await registrations.endSome(of: "pay", by: admin) == 3)
        #expect(try await registrations.endSome(of: "pay", by: admin) == 0)
        #expect(try await registrations.list(of: nil, limit: 10, by: admin).map(\.app) == ["zoo"])
        let refused = try await fixture.refusalCode { _ = try await fixture.register(AssertionKey(), token: token) }
        #expect(refused == "invalid_token")
    }

    @Test("Who ends an app's initial access tokens is on record once, also where no instance ends with them")
    func endedTokens() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let token = try await fixture.initialToken(count: 4)
        let admin = try await fixture.administrator()
        for _ in 1...2 { #expect(try await fixture.registrations.endSome(of: "pay", by: admin) == 0) }
        let refused = try await fixture.refusalCode { _ = try await fixture.register(AssertionKey(), token: token) }
        #expect(refused == "invalid_token")
        let records = try await fixture.audit(.registrationToken)
        let ends = records.filter { $0.detail["act"]?.string == "end" }
        #expect(records.count == 2 && ends.count == 1)
        let end = try #require(ends.first)
        #expect(end.outcome == .success && end.detail["app"]?.string == "pay" && end.userID == admin.user.id)
    }

    @Test("What is wrong with an app's definition is said")
    func definitions() {
        #expect(ProviderFixture.pay.validate().isEmpty)
        let faults: [(inout OAuthApp) -> Void] = [
            { $0.client.id = "pay~x" }, { $0.client.id = "" }, { $0.client.id = "pay/x" },
            { $0.client.id = String(repeating: "a", count: 65) }, { $0.client.redirectURIs = ["http://pay.example/"] },
            { $0.client.redirectURIs = [] }, { $0.admission = .statement },
            { $0.client.defaultScopes = ["admin"] },
            {
                $0.days = 6
                $0.client.refreshTokenLifetime = 7 * 86_400
            },
        ]
        for fault in faults { #expect(!ProviderFixture.pay(fault).validate().isEmpty) }
    }
}
