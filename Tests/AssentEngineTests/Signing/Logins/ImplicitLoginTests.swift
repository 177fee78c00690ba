import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Implicit logins")
struct ImplicitLoginTests {
    @Test("The device key alone gets the app's implicit scopes, for as long as one access token")
    func right() async throws {
        let world = try await LoginWorld()
        let tokens = try await world.logIn(try world.implicit())
        #expect(tokens.scopes == ["accounts"] && tokens.tokenType == "DPoP")
        #expect(tokens.refreshToken == nil && tokens.idToken == nil && tokens.session == nil)
        let check = try await world.provider.check(
            accessToken: tokens.accessToken, keyThumbprint: world.key.jwk.thumbprint)
        guard case .granted(let grant) = check else { throw UnexpectedOutcome() }
        let owner = try #require(grant.owner)
        let session = try #require(owner.session)
        #expect(owner.user.id == world.container.sub && owner.amr == ["IMPLICIT_AUTHENTICATION"])
        #expect(session.kind == .implicit && session.authLevel == 0 && !session.isOfJourney && !session.hasToken)
        #expect(session.expiresAt == world.clock.epochSeconds + tokens.expiresIn)
        #expect(try await world.signing.audited(.signingLogin, "method") == ["success implicit"])
        world.signing.base.clock.advance(by: Double(tokens.expiresIn))
        #expect(try await !world.isLive(tokens))
    }

    @Test("Introspection says how a user was signed in, of which app the installation is, and whose key is needed")
    func introspected() async throws {
        let world = try await LoginWorld()
        let logins = [
            (try await world.logIn(try await world.typed()), "user", "pin"),
            (try await world.logIn(try world.implicit()), "implicit", "IMPLICIT_AUTHENTICATION"),
        ]
        for (tokens, kind, method) in logins {
            let client = try await world.key.assertion(of: world.instance, now: world.clock)
            let told = try await TokenIntrospection(world.provider).answer(
                try ProviderFixture.parameters(
                    [:], AssertionKey.form(client, ["token": tokens.accessToken.reveal()])))
            #expect(told["active"] == true && told["assent_kind"]?.string == kind)
            #expect(told["sub"]?.string == world.container.sub && told["app_identifier"] == "pay")
            #expect(told["amr"] == [.string(method)])
            #expect(told["cnf"] == ["jkt": .string(world.key.jwk.thumbprint)])
        }
    }

    @Test("Scopes beyond the app's implicit ones are not given")
    func scopes() async throws {
        let world = try await LoginWorld()
        let some = try await world.logIn(try world.implicit(), scope: "openid accounts profile offline_access")
        #expect(some.scopes == ["accounts"] && some.idToken == nil && some.refreshToken == nil)
        #expect(
            try await world.refusal { try await world.logIn(try world.implicit(), scope: "profile") } == "invalid_scope"
        )
    }

    @Test("Where a file was narrowed, tokens that remembered users have got before have less at once")
    func narrowed() async throws {
        let world = try await LoginWorld(implicit: ["accounts", "profile"])
        let tokens = try await world.logIn(try world.implicit(), scope: "accounts profile")
        #expect(Set(tokens.scopes) == ["accounts", "profile"])
        let typed = try await world.logIn(try await world.typed(), scope: "accounts profile")
        for implicit in [["accounts", "profile"], ["accounts"], ["profile"]] {
            let node = try LoginWorld.node(world.database, of: world.signing, implicit: implicit)
            func scopes(_ tokens: IssuedTokens) async throws -> Set<String> {
                let check = try await node.check(
                    accessToken: tokens.accessToken, keyThumbprint: world.key.jwk.thumbprint)
                guard case .granted(let grant) = check else { throw UnexpectedOutcome() }
                return Set(grant.scopes)
            }
            #expect(try await scopes(tokens) == Set(implicit))
            // Who has typed the PIN is not only remembered.
            #expect(try await scopes(typed) == ["accounts", "profile"])
        }
        let node = try LoginWorld.node(world.database, of: world.signing, implicit: ["accounts"])
        let refusal = try await world.refusal {
            try await world.logIn(try world.implicit(), scope: "profile", on: node)
        }
        #expect(refusal == "invalid_scope")
    }

    @Test("Where a file was changed to let no remembered user in, their tokens count no more, and spend no proof")
    func switchedOff() async throws {
        let world = try await LoginWorld()
        let implicit = try await world.logIn(try world.implicit())
        let typed = try await world.logIn(try await world.typed(), scope: "accounts")
        let files: [(implicit: [String]?, counts: Bool)] = [(["accounts"], true), (nil, false), (["accounts"], true)]
        for file in files {
            let node = try LoginWorld.node(world.database, of: world.signing, implicit: file.implicit)
            for (tokens, counts) in [(implicit, file.counts), (typed, true)] {
                let check = try await node.check(
                    accessToken: tokens.accessToken, keyThumbprint: world.key.jwk.thumbprint)
                let isGranted = if case .granted = check { true } else { false }
                #expect(isGranted == counts)
                if !counts {
                    guard case .refused(.kindDisabled) = check else { throw UnexpectedOutcome() }
                }
                // What nodes ask that share a database, before they spend the proof beside the token.
                let claims = try #require(try await node.accessClaims(tokens.accessToken))
                let lookUp = claims.composed(for: node)
                let taking = try await world.database.run(
                    .read("SELECT count(*) AS n FROM \(lookUp.source) AND \(lookUp.isValid())"))
                #expect(try taking.first?.integer("n") == (counts ? 1 : 0))
            }
        }
    }

    /// A node whose file has the app's users asked for their consent.
    private static func asking(_ world: LoginWorld) throws -> OAuthProvider {
        let context = world.provider.context
        var configuration = world.provider.configuration
        configuration.apps["pay"]?.client.consentImplied = false
        return try OAuthProvider(context, keys: ServerKeys(context), configuration: configuration)
    }

    @Test("Where the app's users are asked, one who is only remembered gets what they have agreed to before, no more")
    func consent() async throws {
        let world = try await LoginWorld()
        let (node, user) = (try Self.asking(world), world.signing.base.ana)
        func refusal(_ parts: LoginWorld.Parts) async throws -> String? {
            try await world.refusal { try await world.logIn(parts, on: node) }
        }
        let parts = try world.implicit()
        #expect(try await refusal(parts) == "invalid_grant consent_required")
        _ = try await world.logIn(try await world.typed(), scope: "openid", on: node)
        #expect(try await refusal(parts) == "invalid_grant consent_required")
        let agreed = try await node.consents(of: user)
        #expect(agreed.map(\.clientID) == [world.instance] && agreed.map(\.scopes) == [["openid"]])
        #expect(try await world.count("grants", "client_id = '\(world.instance)'") == 1)
        let refused = try await AuditLog(node.context).newest(10_000)
            .filter { $0.event == .signingLogin && $0.outcome == .refused }
        #expect(refused.map(\.reason) == ["consent_required", "consent_required"])

        _ = try await world.logIn(try await world.typed(), scope: "accounts", on: node)
        // The same login again: what was refused has spent nothing of it.
        let tokens = try await world.logIn(parts, on: node)
        #expect(tokens.scopes == ["accounts"])
        #expect(try await world.isLive(tokens))
        #expect(try await node.withdrawConsent(to: world.instance, by: user))
        #expect(try await !world.isLive(tokens))
        #expect(try await refusal(try world.implicit()) == "invalid_grant consent_required")
        #expect(try await node.consents(of: user).isEmpty)
    }

    @Test("A consent that is taken back while an implicit login is done by it gives nothing, and does not come back")
    func consentTakenBack() async throws {
        let world = try await LoginWorld()
        let (node, user) = (try Self.asking(world), world.signing.base.ana)
        _ = try await world.logIn(try await world.typed(), scope: "accounts", on: node)
        let grants = try await world.count("grants")
        let parts = try world.implicit()
        let refusal = try await world.refusal {
            try await world.logIn(parts, on: node) {
                _ = try await node.withdrawConsent(to: world.instance, by: user)
            }
        }
        #expect(refusal == "invalid_grant")
        #expect(try await node.consents(of: user).isEmpty)
        #expect(try await world.count("grants") == grants)
    }

    @Test("It is off unless the app says so")
    func disabled() async throws {
        let world = try await LoginWorld(implicit: nil)
        #expect(try await world.refusal(try world.implicit()) == "invalid_grant implicit_disabled")
    }

    @Test("An app cannot let remembered users have what an identity stands for")
    func definition() {
        for scopes in [["openid"], ["offline_access"], ["unknown"], []] {
            #expect(!ProviderFixture.pay { $0.implicitScopes = scopes }.validate().isEmpty)
        }
        #expect(ProviderFixture.pay { $0.implicitScopes = ["accounts"] }.validate().isEmpty)
        let without = ProviderFixture.pay {
            $0.implicitScopes = ["accounts"]
            $0.client.grantTypes.remove(.jwtBearer)
        }
        #expect(!without.validate().isEmpty)
    }

    @Test("31 It works after a logout, and a login counts once")
    func afterLogout() async throws {
        let world = try await LoginWorld()
        _ = try await Sessions(world.signing.base.context).endAll(userID: world.container.sub)
        let parts = try world.implicit()
        #expect(try await world.refusal(parts) == nil)
        #expect(try await world.refusal(parts) == "invalid_grant")
        let refused = try await AuditLog(world.signing.base.context).newest(10_000)
            .filter { $0.event == .signingLogin && $0.outcome == .refused }
        #expect(refused.map(\.reason) == ["repeated"] && refused.first?.userID == world.container.sub)
        #expect(refused.first?.detail["did"]?.string == world.did.text)
        #expect(refused.first?.detail["client"]?.string == world.instance)
    }

    @Test("An evaluation in a device key's login is refused: only a key behind the PIN may name one")
    func evaluation() async throws {
        let world = try await LoginWorld()
        var parts = try await world.typed()
        parts.key = world.device.deviceKey
        #expect(try await world.refusal(parts) == "invalid_grant")
    }

    @Test(
        "31 A block, a revocation, a wipe, a removal and a lock end it at the next request, to each node",
        arguments: LoginEnd.allCases)
    func ends(_ end: LoginEnd) async throws {
        let world = try await LoginWorld()
        let tokens = try await world.logIn(try world.implicit())
        // The other one has looked the token up before, and is told nothing of the end.
        let nodes = [world.provider, try world.secondNode()]
        for node in nodes { #expect(try await world.isLive(tokens, on: node)) }
        try await end.run(world)
        for node in nodes { #expect(try await !world.isLive(tokens, on: node)) }
        #expect(try await world.refusal(try world.implicit()) == end.refusal)
    }

    @Test("A PIN that an administrator or a restore has locked also stops implicit logins, until its user unlocks it")
    func locked() async throws {
        let world = try await LoginWorld()
        let signing = world.signing
        let (root, fresh) = (SigningCaller(try await world.administrator()), signing.ana)
        let before = try world.implicit()
        _ = try await signing.provider.slots.act(root, did: world.did.text, .lock, on: "signing")
        #expect(try await world.refusal(before) == "invalid_grant locked")
        _ = try await signing.provider.slots.act(fresh, did: world.did.text, .unlock, on: "signing")
        #expect(try await world.refusal(before) == nil)
        _ = try await RestoredDatabase(signing.base.context).fence(keepingSessions: true)
        // What the client signs must be from after the restore.
        signing.base.clock.advance(by: 120)
        let after = try world.implicit()
        let refusal = try await world.refusal(after)
        #expect(refusal == "invalid_grant locked")
        _ = try await signing.provider.slots.act(fresh, did: world.did.text, .unlock, on: "signing")
        let refusalOfUnlocked = try await world.refusal(after)
        #expect(refusalOfUnlocked == nil)
    }

    @Test("A lock of the PIN stops an implicit login that was judged before it")
    func lockedMeanwhile() async throws {
        let world = try await LoginWorld()
        let root = SigningCaller(try await world.administrator())
        let key = try ProtocolKey(world.device.deviceKey).thumbprint
        _ = try await world.signing.provider.slots.act(root, did: world.did.text, .lock, on: "signing")
        let now = world.clock.epochSeconds
        func use(isImplicit: Bool) async throws {
            let use = LoginSQL.use(key: key, of: world.did, isImplicit: isImplicit, at: now)
            _ = try await world.database.run([SQLStatement(use, expecting: .exactly(1))])
        }
        await #expect(throws: StoreError.self) { try await use(isImplicit: true) }
        try await use(isImplicit: false)
    }

    @Test("Of a block and logins at once, no login is left that came before it")
    func race() async throws {
        try await LoginWorld.race { try await LoginEnd.block.run($0) }
    }

    /// Whoever has the device's files has its device key, the installation's key, and all that is stored.
    @Test("30: A thief with the device's files gets the implicit scopes, and nothing that lasts or needs the PIN")
    func thief() async throws {
        let world = try await LoginWorld()
        _ = try await world.logIn(try await world.typed())
        let tokens = try await world.logIn(try world.implicit(), scope: "openid accounts offline_access")
        #expect(tokens.scopes == ["accounts"] && tokens.refreshToken == nil && tokens.session == nil)
        #expect(try await world.count("refresh_tokens") == 0)
        // The sealed key is in the files, and does not open; what the user has typed was taken by their login.
        var parts = try world.implicit()
        parts.key = try .generate(.es256)
        #expect(try await world.refusal(parts) == "invalid_grant")
        let pin = try #require(world.pin)
        for _ in 0..<5 { #expect(try await pin.unlock("0000") == nil) }
        #expect(try await refusal { _ = try await pin.unlock("2580") } == "locked")
    }
}
