import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("An installation that registers") struct RegistrationTests {
    private let clock = ManualClock()
    private let ring = KeyRing()

    private func registration(
        _ provider: FakeProvider, configure: (inout TokenConfiguration) -> Void = { _ in }
    ) throws -> AppRegistration {
        try #require(try provider.installation(ring, configure: configure).registration)
    }

    /// Two ways to one server, for two installations.
    private func pair() throws -> (FakeProvider, FakeProvider, RegistrationDoor) {
        let (provider, door) = try FakeProvider.registering(clock: clock)
        let (other, _) = try FakeProvider.registering(clock: clock)
        other.registers(by: door)
        // Else both would draw the same numbers.
        _ = try other.manager()
        return (provider, other, door)
    }

    @Test("The request has the app, one public key and what this installation needs, and a proof by that key")
    func request() async throws {
        let (provider, door) = try FakeProvider.registering(clock: clock, initialToken: "initial")
        let instance = try await registration(provider) {
            $0.registration = RegistrationConfiguration(
                keys: ring, initialAccessToken: Secret("initial"), softwareStatement: Secret("a.b.c"),
                clientName: "Ana's laptop")
            $0.registration?.softwareVersion = "7.1"
        }.register()
        #expect(instance.clientID == "bank-app~1" && instance.clientName == "Ana's laptop")
        #expect(instance.scopes == ["openid", "accounts"])
        #expect(instance.registeredAt == Date(timeIntervalSince1970: Double(clock.epochSeconds)))
        let sent = try #require(provider.registrations.first)
        #expect(provider.registrations.count == 1 && sent.request.method == .post)
        #expect(sent.field("Content-Type") == "application/json" && sent.field("Authorization") == "Bearer initial")
        let names = Set(sent.json.object?.members.map(\.name) ?? [])
        #expect(
            names == [
                "software_id", "jwks", "token_endpoint_auth_method", "redirect_uris", "scope", "client_name",
                "software_version", "software_statement", "assent_platform",
            ])
        #expect(sent.json["software_id"] == "bank-app" && sent.json["software_statement"] == "a.b.c")
        #expect(sent.json["redirect_uris"]?.strings == [redirectURI] && sent.json["scope"] == "openid accounts")
        let keys = try #require(sent.json["jwks"]?["keys"]?.array)
        #expect(keys.count == 1 && keys.first?["d"] == nil && keys.first?["alg"] == "ES256")
        #expect(door.proofs.seen.map(\.thumbprint) == [instance.keyThumbprint])
    }

    @Test("Whoever asks for tokens registers first, and is then this client everywhere, with its key")
    func tokens() async throws {
        let (provider, door) = try FakeProvider.registering(clock: clock)
        let manager = try provider.installation(ring)
        try await manager.install(Session(token: Secret("SESS")))
        let tokens = try await manager.tokens()
        #expect(tokens.idToken?.claims.aud == ["bank-app~1"])
        clock.advance(by: 601)
        _ = try await manager.tokens()
        #expect(await manager.signOut().isComplete)
        let forms = (provider.sent("/access_token") + provider.sent("/token/revoke")).map(\.form)
        #expect(forms.map { $0["client_id"] } == Array(repeating: "bank-app~1", count: 4))
        #expect(provider.sent("/authorize").map { $0.query["client_id"] } == ["bank-app~1"])
        #expect(door.registered == 1 && door.state.withLock { $0.assertions.count } == 4)
        // Signing out is not the end of the registration.
        #expect(try await manager.registration?.current()?.clientID == "bank-app~1")
    }

    @Test("With bound tokens there are two keys: the installation's, and the one that tokens belong to")
    func bound() async throws {
        let (provider, door) = try FakeProvider.registering(clock: clock)
        let manager = try provider.installation(ring) { $0.dpop = .on(keys: ring) }
        provider.change { $0.tokenType = "DPoP" }
        try await manager.install(Session(token: Secret("SESS")))
        let tokens = try await manager.tokens()
        #expect(tokens.isBound && ring.made == 2)
        let own = try await manager.registration?.current()?.keyThumbprint
        #expect(own != nil && tokens.keyThumbprint != own && door.proofs.seen.map(\.thumbprint) == [own])
    }

    @Test("A manager that is let go of leaves no registration behind", arguments: [false, true])
    func released(isBound: Bool) throws {
        let (provider, _) = try FakeProvider.registering(clock: clock)
        weak var kept: AppRegistration?
        func use() throws {
            let manager = try provider.installation(ring) { if isBound { $0.dpop = .installation } }
            kept = manager.registration
            #expect(kept != nil)
        }
        try use()
        #expect(kept == nil)
    }

    @Test("Managers that are made with one configuration prove each the key of its own registration")
    func oneConfiguration() async throws {
        let (provider, other, _) = try pair()
        let dpop = DPoPConfiguration.installation
        let first = try provider.installation(ring) { $0.dpop = dpop }
        let second = try other.installation(ring) { $0.dpop = dpop }
        for (manager, server) in [(first, provider), (second, other)] {
            server.change { $0.tokenType = "DPoP" }
            let own = try await manager.registration?.register().keyThumbprint
            try await manager.install(Session(token: Secret("SESS")))
            let tokens = try await manager.tokens()
            #expect(own != nil && tokens.keyThumbprint == own)
        }
    }

    @Test("Many processes register once: one key, one client, one client id for all")
    func once() async throws {
        let (provider, door) = try FakeProvider.registering(clock: clock)
        let processes = try (0..<8).map { _ in try provider.installation(ring) }
        let ids = try await withThrowingTaskGroup(of: String?.self) { group in
            for process in processes {
                for _ in 0..<4 { group.addTask { try await process.registration?.register().clientID } }
            }
            return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        #expect(ids == ["bank-app~1"] && door.registered == 1 && provider.registrations.count == 1)
        #expect(ring.made == 1)
    }

    @Test("Two stores that share a key provider are two installations, and each ends its own alone")
    func twoStores() async throws {
        let (provider, other, door) = try pair()
        let (first, second) = (try registration(provider), try registration(other))
        #expect(try await first.register().clientID != second.register().clientID && ring.names.count == 2)
        try await first.unregister()
        #expect(door.clientIDs == ["bank-app~2"] && ring.names.count == 1)
        #expect(try await second.current()?.clientID == "bank-app~2")
    }

    @Test("What the server gave is stored before anybody gets it; a store that refuses it leaves no client behind")
    func storedFirst() async throws {
        let (provider, door) = try FakeProvider.registering(clock: clock)
        let store = RefusingStore(provider.store, with: .diskFull)
        let manager = TokenManager(
            configuration: try configuration(), transport: InMemoryTransport { try await provider.answer($0) },
            store: store, clock: clock, random: SeededRandom(seed: 1))
        let registration = try #require(manager.registration)
        door.change { $0.registeredHook = { store.refuses.withLock { $0 = true } } }
        await #expect(throws: TokenError.like(.storageFailed)) { try await registration.register() }
        #expect(door.registered == 1 && door.clientIDs.isEmpty)
        store.refuses.withLock { $0 = false }
        door.change { $0.registeredHook = {} }
        #expect(try await registration.register().clientID == "bank-app~2")
        // The key of the first is destroyed.
        #expect(ring.made == 2 && ring.names.count == 1)
    }

    @Test("33 After a wipe of the store an installation registers again, with another key")
    func wipe() async throws {
        let (provider, door) = try FakeProvider.registering(clock: clock)
        let registration = try registration(provider)
        let first = try await registration.register()
        await provider.store.removeAll()
        #expect(try await registration.current() == nil)
        let second = try await registration.register()
        #expect(second.clientID == "bank-app~2" && second.keyThumbprint != first.keyThumbprint)
        #expect(door.registered == 2)
    }

    @Test("A key that is gone for good, or that was replaced, makes the installation register again")
    func lostKey() async throws {
        let (provider, door) = try FakeProvider.registering(clock: clock)
        let registration = try registration(provider)
        let first = try await registration.register()
        ring.change { $0.keys = [:] }
        let second = try await registration.register()
        #expect(second.clientID == "bank-app~2" && second.keyThumbprint != first.keyThumbprint)
        let foreign = try SoftwareSigningKey.generate(.es256)
        ring.change { state in for name in state.keys.keys { state.keys[name] = foreign } }
        #expect(try await registration.register().clientID == "bank-app~3" && door.registered == 3)
        // One that is not there now is another matter.
        ring.change { $0.failure = KeyProviderError(.unavailable, "It is not there.") }
        await #expect(throws: TokenError.like(.clientKeyUnavailable)) { try await registration.register() }
        ring.change { $0.failure = nil }
        #expect(try await registration.register().clientID == "bank-app~3" && door.registered == 3)
    }

    @Test("A nonce is taken from the refusal, and the same request goes out once more with another proof")
    func nonce() async throws {
        let (provider, door) = try FakeProvider.registering(clock: clock, nonce: "n-1")
        #expect(try await registration(provider).register().clientID == "bank-app~1")
        let sent = provider.registrations
        #expect(sent.count == 2 && sent[0].body == sent[1].body && Set(door.proofs.texts).count == 2)
    }

    @Test("A server that is never content with a nonce is asked twice, and nothing is registered")
    func endlessNonces() async throws {
        let (provider, door) = try FakeProvider.registering(clock: clock, nonce: "n")
        door.proofs.change { $0.isNeverContent = true }
        let error = await #expect(throws: TokenError.self) { try await registration(provider).register() }
        #expect(error?.code == .registrationRefused && error?.oauthError == "use_dpop_nonce")
        #expect(provider.registrations.count == 2 && door.registered == 0)
    }

    @Test("Neither configuration, registration nor error shows a token")
    func redaction() async throws {
        let (provider, door) = try FakeProvider.registering(clock: clock, initialToken: "initial-secret")
        let registration = try registration(provider) {
            $0.registration = RegistrationConfiguration(keys: ring, initialAccessToken: Secret("initial-secret"))
        }
        let instance = try await registration.register()
        door.change { $0.management = RegistrationDoor.error(401, "invalid_dpop_proof", scheme: "DPoP") }
        let error = await #expect(throws: TokenError.self) { try await registration.unregister() }
        var shown = "\(instance) \(error?.explanation ?? "")"
        dump(instance, to: &shown)
        dump(error, to: &shown)
        let settings = RegistrationConfiguration(keys: ring, initialAccessToken: Secret("initial-secret"))
        dump(settings.initialAccessToken, to: &shown)
        #expect(!shown.contains("initial-secret") && !shown.contains("registration-token-1"))
    }

    private func configuration() throws -> TokenConfiguration {
        var configuration = try TokenConfiguration(
            issuer: issuer, clientID: "bank-app", redirectURI: redirectURI, scopes: ["openid", "accounts"])
        configuration.registration = RegistrationConfiguration(keys: ring)
        return configuration
    }
}
