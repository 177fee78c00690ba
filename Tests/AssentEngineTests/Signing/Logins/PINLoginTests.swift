import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Logins with a PIN")
struct PINLoginTests {
    @Test("29: The right PIN makes a bound session, and tokens that nothing renews")
    func right() async throws {
        let world = try await LoginWorld()
        let parts = try await world.typed()
        let tokens = try await world.logIn(parts, scope: "openid accounts offline_access")
        #expect(tokens.refreshToken == nil && tokens.tokenType == "DPoP" && tokens.scopes == ["openid", "accounts"])
        #expect(try jwtClaims(tokens.idToken)["amr"] == ["pin"])
        #expect(try await world.isLive(tokens))
        let token = try #require(tokens.session)
        let session = try #require(try await Sessions(world.signing.base.context).live(token: token))
        #expect(session.kind == .user && !session.isOfJourney && session.authLevel == 3 && session.hasToken)
        #expect(session.sender == .key(thumbprint: world.key.jwk.thumbprint))
        #expect(try await world.count("refresh_tokens") == 0)
        #expect(try await world.count("signing_confirms", "taken_by = 'login:\(parts.jti)'") == 1)
        #expect(try await world.count("signing_proofs", "jti = '\(parts.jti)'") == 1)
        #expect(try await world.signing.audited(.signingLogin, "method") == ["success pin"])
    }

    @Test("What a session of a PIN gives by a code ends with the container, whatever it was asked for")
    func offline() async throws {
        let world = try await LoginWorld()
        let sessions = Sessions(world.signing.base.context)
        let session = try #require(try await world.logIn(try await world.typed()).session)
        let live = try #require(try await sessions.live(token: session))
        let outcome = try await AuthorizationEndpoint(world.provider).answer(
            try ProviderFixture.authorization([
                "client_id": world.instance, "redirect_uri": "https://pay.example/cb",
                "scope": "openid accounts offline_access",
            ]), session: live)
        guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
        let client = try await world.key.assertion(of: world.instance, now: world.clock)
        let tokens = try await world.provider.tokens(
            try ProviderFixture.parameters(
                [
                    "grant_type": "authorization_code", "code": try #require(redirect["code"]),
                    "redirect_uri": "https://pay.example/cb", "code_verifier": ProviderFixture.verifier,
                ], AssertionKey.form(client)))
        #expect(tokens.scopes == ["openid", "accounts"] && tokens.refreshToken != nil)
        #expect(try await world.isLive(tokens))
        try await LoginEnd.block.run(world)
        #expect(try await !world.isLive(tokens))
    }

    @Test("A session of a PIN is no fresh authentication")
    func freshness() async throws {
        let world = try await LoginWorld()
        let tokens = try await world.logIn(try await world.typed())
        let token = try #require(tokens.session)
        let session = try #require(try await Sessions(world.signing.base.context).live(token: token))
        #expect(
            try await refusal { _ = try await world.signing.provider.invites.make(SigningCaller(session), user: nil) }
                == "fresh_authentication_required")
        #expect(
            try await refusal {
                _ = try await world.signing.provider.slots.act(
                    SigningCaller(session), did: world.did.text, .unlock, on: "signing")
            } == "fresh_authentication_required")
    }

    /// What is wrong with a login, and what it is refused with.
    enum Wrong: String, CaseIterable, CustomTestStringConvertible {
        case container, user, audience, instanceKey, nonce, foreignKey, deviceKey, signKey, early, late, noEvaluation,
            otherEvaluation

        var testDescription: String { rawValue }

        func change(_ parts: inout LoginWorld.Parts, _ world: LoginWorld) throws {
            let id = SigningID(random: SystemRandom())
            switch self {
            case .container: parts.did = id
            case .user: parts.sub = world.signing.base.ben.user.id
            case .audience: parts.audience = "https://am.example/am/oauth2/realms/root/realms/beta"
            case .instanceKey: parts.jkt = try ProtocolKey(parts.key).thumbprint
            case .nonce: parts.nonce = "another"
            case .foreignKey: parts.key = try .generate(.es256)
            case .deviceKey: parts.key = world.device.deviceKey
            case .signKey: parts.key = try #require(world.device.keys.withLock { $0["payments"] })
            case .early: parts.issuedAt += 600
            case .late: parts.issuedAt -= 600
            case .noEvaluation: parts.unl = nil
            case .otherEvaluation: parts.unl = id
            }
        }

        var refusal: String {
            [.noEvaluation, .otherEvaluation].contains(self) ? "invalid_grant unlock_required" : "invalid_grant"
        }
    }

    @Test(
        "A login that is wrong in one place is refused and spends nothing: the right one goes on",
        arguments: Wrong.allCases)
    func wrong(_ wrong: Wrong) async throws {
        let world = try await LoginWorld()
        let right = try await world.typed()
        var parts = right
        try wrong.change(&parts, world)
        let sessions = try await world.count("sessions")
        #expect(try await world.refusal(parts) == wrong.refusal)
        #expect(try await world.count("sessions") == sessions)
        #expect(try await world.count("grants") == 0)
        #expect(try await world.count("signing_confirms", "taken_by IS NOT NULL") == 0)
        #expect(try await world.refusal(right) == nil)
    }

    @Test("A text that is no login, or is cut off or too long, is refused")
    func malformed() async throws {
        let world = try await LoginWorld()
        let right = try await world.typed().signed
        let proof = TokenRequestProof(keyThumbprint: world.key.jwk.thumbprint, nonce: "nonce")
        for text in [
            ".", "a.b.c", String(right.dropLast()), String(right.dropLast(40)), right + "A",
            String(repeating: "A", count: 8000), right.replacing(".", with: ".."),
        ] {
            let refusal = try await world.refusal { try await world.send(text, proof: proof) }
            #expect(refusal == "invalid_grant", "\(text.prefix(20))")
        }
        #expect(try await world.refusal { try await world.send(right, proof: proof) } == nil)
    }

    @Test("A proof by another key, without a nonce, or none, gets nothing")
    func proofs() async throws {
        let world = try await LoginWorld()
        let assertion = try await world.typed().signed
        let other = try AssertionKey().jwk.thumbprint
        for proof in [
            nil, TokenRequestProof(keyThumbprint: world.key.jwk.thumbprint),
            TokenRequestProof(keyThumbprint: other, nonce: "nonce"),
        ] {
            #expect(
                try await world.refusal { try await world.send(assertion, proof: proof) } == "invalid_dpop_proof")
        }
    }

    @Test("Another installation cannot use the container, not even with its keys")
    func otherInstance() async throws {
        let world = try await LoginWorld()
        let other = try AssertionKey()
        let id = try await LoginWorld.register(other, world.provider)
        var parts = try await world.typed()
        parts.jkt = try #require(KeyThumbprint(text: other.jwk.thumbprint))
        let assertion = try await parts.signed
        let proof = TokenRequestProof(keyThumbprint: other.jwk.thumbprint, nonce: "nonce")
        #expect(
            try await world.refusal { try await world.send(assertion, proof: proof, by: other, as: id) }
                == "invalid_grant")
    }

    @Test("A container whose invite no installation has made signs nobody in")
    func withoutInstance() async throws {
        let world = try await LoginWorld()
        let (device, container, _) = try await LoginWorld.enrolled(world.signing, of: nil)
        var parts = try world.implicit()
        (parts.did, parts.key) = (container.did, device.deviceKey)
        #expect(try await world.refusal(parts) == "invalid_grant")
    }

    @Test("An evaluation of another container, or of five minutes ago, opens nothing")
    func evaluations() async throws {
        let world = try await LoginWorld()
        let (_, _, otherPIN) = try await LoginWorld.enrolled(world.signing, of: world.key)
        let pin = try #require(otherPIN)
        let opened = try #require(try await pin.open("2580"))
        var parts = try await world.typed()
        let own = parts.unl
        parts.unl = try opened.unl
        #expect(try await world.refusal(parts) == "invalid_grant unlock_required")
        world.signing.base.clock.advance(by: 300)
        (parts.unl, parts.issuedAt) = (own, Int(world.clock.epochSeconds))
        #expect(try await world.refusal(parts) == "invalid_grant unlock_required")
    }

    @Test("An evaluation of another slot of the same container opens nothing")
    func otherSlot() async throws {
        let world = try await LoginWorld()
        let parts = try await world.typed()
        let unl = try #require(parts.unl)
        func move(to slot: PasswordSlot) async throws {
            _ = try await world.database.run(
                SQLStatement(
                    "UPDATE signing_confirms SET slot = \(slot) WHERE did = \(world.did) AND unl = \(unl)",
                    expecting: .exactly(1)))
        }
        for slot in PasswordSlot.allCases where slot != .signing {
            try await move(to: slot)
            #expect(try await world.refusal(parts) == "invalid_grant unlock_required", "\(slot)")
        }
        #expect(try await world.count("signing_confirms", "taken_by IS NOT NULL") == 0)
        try await move(to: .signing)
        #expect(try await world.refusal(parts) == nil)
    }

    @Test("A login counts once, and an evaluation for one login")
    func once() async throws {
        let world = try await LoginWorld()
        let parts = try await world.typed()
        #expect(try await world.refusal(parts) == nil)
        #expect(try await world.refusal(parts) == "invalid_grant unlock_required")
        var other = parts
        other.jti = SigningID(random: SystemRandom())
        #expect(try await world.refusal(other) == "invalid_grant unlock_required")
        var again = try await world.typed()
        again.jti = parts.jti
        #expect(try await world.refusal(again) == "invalid_grant")
        #expect(try await world.count("grants") == 1)
    }

    @Test("Sent to two nodes at once, one login of one evaluation has tokens")
    func race() async throws {
        let world = try await LoginWorld()
        let base = world.signing.base
        let second = try await TestDatabase.location(base.path).open(clock: base.clock)
        let other = try LoginWorld.node(second, of: world.signing)
        let parts = try await world.typed()
        let before = try await world.count("sessions")
        let winners = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<12 {
                var own = parts
                if index % 3 == 0 { own.jti = SigningID(random: SystemRandom()) }
                group.addTask { [own] in
                    (try? await world.logIn(own, on: index % 2 == 0 ? world.provider : other)) != nil
                }
            }
            return await group.reduce(into: 0) { count, won in if won { count += 1 } }
        }
        #expect(winners == 1)
        #expect(try await world.count("sessions") == before + 1)
        #expect(try await world.count("grants") == 1)
    }

    @Test("An `auth` key without a PIN signs nobody in")
    func withoutPIN() async throws {
        let world = try await LoginWorld(hasPIN: false)
        var parts = try world.implicit()
        parts.key = try #require(world.device.keys.withLock { $0["sign-in"] })
        #expect(try await world.refusal(parts) == "invalid_grant")
        parts.unl = SigningID(random: SystemRandom())
        #expect(try await world.refusal(parts) == "invalid_grant")
    }

    @Test("29: A locked PIN says so, with and without an evaluation")
    func locked() async throws {
        let world = try await LoginWorld()
        let parts = try await world.typed()
        let root = SigningCaller(try await world.administrator())
        _ = try await world.signing.provider.slots.act(root, did: world.did.text, .lock, on: "signing")
        #expect(try await world.refusal(parts) == "invalid_grant locked")

        let guessed = try await LoginWorld()
        let pin = try #require(guessed.pin)
        for _ in 0..<5 { #expect(try await pin.unlock("0000") == nil) }
        var late = try guessed.implicit()
        (late.key, late.unl) = (
            try #require(guessed.device.keys.withLock { $0["sign-in"] }), SigningID(random: SystemRandom())
        )
        #expect(try await guessed.refusal(late) == "invalid_grant locked")
    }

    @Test("29: After a change the new PIN signs in, and the old one is a wrong PIN")
    func changed() async throws {
        let world = try await LoginWorld()
        let pin = try #require(world.pin)
        let opened = try #require(try await pin.open("2580"))
        let fresh = try await pin.begin(opened, "7391")
        _ = try await pin.commit(opened, from: 0)
        pin.kept.withLock { old in
            let (r, next, last) = (old.r, old.next, old.last)
            old = fresh
            (old.r, old.next, old.last) = (r, next, last)
        }
        #expect(try await pin.unlock("2580") == nil)
        let typed = try #require(try await pin.open("7391"))
        var parts = try world.implicit()
        (parts.unl, parts.key) = (try typed.unl, typed.key)
        let tokens = try await world.logIn(parts)
        #expect(try await world.isLive(tokens))
        #expect(try await world.count("signing_confirms", "taken_by = 'login:\(parts.jti)'") == 1)
    }

    @Test("A lock of the PIN or of its user that comes while a login is judged leaves no login")
    func lockedMeanwhile() async throws {
        let world = try await LoginWorld()
        let (signing, root) = (world.signing, try await world.administrator())
        let first = try await world.typed()
        let byPIN = try await world.refusal {
            try await world.logIn(first) {
                let caller = SigningCaller(root)
                _ = try await signing.provider.slots.act(caller, did: world.did.text, .lock, on: "signing")
            }
        }
        #expect(byPIN == "invalid_grant locked")
        _ = try await signing.provider.slots.act(signing.ana, did: world.did.text, .unlock, on: "signing")
        let second = try await world.typed()
        let users = Administration(world.provider.context)
        let byUser = try await world.refusal {
            try await world.logIn(second) { try await users.setActive(false, of: "ana", by: root) }
        }
        #expect(byUser == "invalid_grant")
        #expect(try await world.count("sessions", "did IS NOT NULL") == 0)
        #expect(try await world.count("grants") == 0)
        #expect(try await world.count("signing_confirms", "taken_by IS NOT NULL") == 0)
        #expect(try await world.count("signing_proofs", "jti IN ('\(first.jti)', '\(second.jti)')") == 0)

        // The key says it by itself: that a lock also counts up the user's epoch is another thing.
        let key = try ProtocolKey(second.key).thumbprint
        let use = LoginSQL.use(key: key, of: world.did, isImplicit: false, at: world.clock.epochSeconds)
        func useKey() async throws { _ = try await world.database.run([SQLStatement(use, expecting: .exactly(1))]) }
        await #expect(throws: StoreError(.unexpectedCount, "")) { try await useKey() }
        try await users.setActive(true, of: "ana", by: root)
        try await useKey()
    }

    @Test("A container whose keys have expired says so")
    func expired() async throws {
        let world = try await LoginWorld(settings: { $0.keyLifetime = 86400 })
        var parts = try await world.typed()
        world.signing.base.clock.advance(by: 86400)
        parts.issuedAt = Int(world.clock.epochSeconds)
        #expect(try await world.refusal(parts) == "invalid_grant expired")
    }

    @Test("29: What ends a container's logins ends its sessions and tokens at once", arguments: LoginEnd.allCases)
    func ends(_ end: LoginEnd) async throws {
        let world = try await LoginWorld()
        let tokens = try await world.logIn(try await world.typed())
        let (next, second) = (try await world.typed(), try world.secondNode())
        #expect(try await world.isLive(tokens, on: second))
        try await end.run(world)
        for node in [world.provider, second] { #expect(try await !world.isLive(tokens, on: node)) }
        let sessions = Sessions(world.signing.base.context)
        let token = try #require(tokens.session)
        #expect(try await sessions.live(token: token) == nil)
        #expect(try await world.refusal(next) == end.refusal)
        #expect(try await world.count("signing_confirms", "taken_by = 'login:\(next.jti)'") == 0)
    }

    @Test("A removed installation takes its containers with it, and no other ones")
    func removal() async throws {
        let world = try await LoginWorld()
        let (_, foreign, _) = try await LoginWorld.enrolled(world.signing, of: nil)
        try await LoginEnd.removal.run(world)
        let devices = world.signing.provider.devices
        #expect(try await devices.find(world.did.text)?.state == .revoked)
        #expect(try await devices.find(foreign.did.text)?.state == .active)
        #expect(try await world.count("signing_slots", "did = '\(world.did)' AND sealed_k IS NOT NULL") == 0)
        #expect(try await world.count("signing_keys", "did = '\(world.did)' AND state = 'ACTIVE'") == 0)
    }

    @Test("The list of installations says how many containers of each have not ended")
    func listed() async throws {
        let world = try await LoginWorld()
        let (_, second, _) = try await LoginWorld.enrolled(world.signing, of: world.key)
        let bare = try await LoginWorld.register(AssertionKey(), world.provider)
        let root = try await world.administrator()
        let registrations = RegistrationAdministration(Administration(world.provider.context))
        func containers(of id: String) async throws -> Int64? {
            try await registrations.list(of: "pay", limit: 10, by: root).first { $0.id == id }?.containers
        }
        #expect(try await containers(of: world.instance) == 2)
        #expect(try await containers(of: bare) == 0)
        _ = try await world.signing.provider.devices.change(SigningCaller(root), did: second.did.text, .block)
        #expect(try await containers(of: world.instance) == 2, "it may be let in again")
        _ = try await world.signing.provider.devices.change(SigningCaller(root), did: second.did.text, .revoke)
        #expect(try await containers(of: world.instance) == 1)
    }

    @Test("The removal of an installation writes down the end of each container that it ends, and of no other one")
    func removalRecords() async throws {
        let world = try await LoginWorld()
        let (_, second, _) = try await LoginWorld.enrolled(world.signing, of: world.key)
        let (_, ended, _) = try await LoginWorld.enrolled(world.signing, of: world.key)
        let (_, foreign, _) = try await LoginWorld.enrolled(world.signing, of: nil)
        let root = SigningCaller(try await world.administrator())
        _ = try await world.signing.provider.devices.change(root, did: ended.did.text, .revoke)
        let log = AuditLog(world.signing.base.context)
        try await LoginEnd.removal.run(world)
        let written = try await log.newest(1000)
        let records = written.filter { $0.detail["why"] == "registration" }
        #expect(Set(records.compactMap { $0.detail["did"]?.string }) == [world.did.text, second.did.text])
        #expect(records.count == 2 && Set(records.compactMap(\.position)).count == 2)
        for record in records {
            #expect(record.event == .signingContainer && record.outcome == .success && record.realm == "/alpha")
            #expect(record.userID == world.container.sub && record.detail["step"] == "revoked")
            #expect(record.detail["client"]?.string == world.instance)
        }
        #expect(try await world.signing.provider.devices.find(foreign.did.text)?.state == .active)
    }
}
