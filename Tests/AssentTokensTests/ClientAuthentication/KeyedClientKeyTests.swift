import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("The key by which a client authenticates") struct KeyedClientKeyTests {
    private static let away = KeyProviderError(.unavailable, "It is not there.", suggestion: "Insert it.")
    private static let gone = KeyProviderError(.keyLost, "It is gone.")

    private func signedIn() async throws -> (FakeProvider, KeyRing, ClientDoor, TokenManager) {
        let provider = try FakeProvider()
        let ring = KeyRing()
        let door = ClientDoor(try await ClientKey.make(named: "bank", at: ring).keySet, clock: provider.clock)
        provider.authenticates(by: door)
        let manager = try await provider.clientSignedIn(ring)
        _ = try await manager.tokens()
        return (provider, ring, door, manager)
    }

    @Test("Its key set has the public half alone, named by its thumbprint")
    func keySet() async throws {
        let key = try await ClientKey.make(named: "bank", at: KeyRing())
        let json = try #require(key.keySet.json["keys"]?.array?.first)
        #expect(json["kid"]?.string == key.publicKey.thumbprint && json["alg"] == "ES256" && json["use"] == "sig")
        let names = Set(json.object?.members.map(\.name) ?? [])
        #expect(names == ["kty", "crv", "x", "y", "kid", "use", "alg"] && key.keySet.keys.count == 1)
    }

    @Test("A key is made once; another takes its place only when that is said, and other keys stay")
    func making() async throws {
        let ring = KeyRing()
        _ = try await ring.makeSigningKey(named: "bank", algorithm: .es256)
        let first = try await ClientKey.make(named: "bank", at: ring)
        await #expect(throws: KeyProviderError(.keyExists, "")) { try await ClientKey.make(named: "bank", at: ring) }
        #expect(try await ClientKey.find(named: "bank", at: ring).publicKey == first.publicKey)
        let second = try await ClientKey.make(named: "bank", at: ring, replacing: true)
        #expect(second.publicKey.thumbprint != first.publicKey.thumbprint)
        #expect(ring.names == ["bank", "client.bank"])
    }

    @Test(
        "A name that no key can have is refused", arguments: ["", "a b", "a/b", "ä", String(repeating: "n", count: 58)])
    func name(name: String) async throws {
        let ring = KeyRing()
        await #expect(throws: KeyProviderError(.invalidInput, "")) { try await ClientKey.make(named: name, at: ring) }
        #expect(ring.made == 0)
        let error = await #expect(throws: TokenError.self) { try await ClientKey.find(named: name, at: ring) }
        #expect(error?.code == .clientKeyMissing)
    }

    @Test("Only ES256, PS256 and EdDSA sign assertions", arguments: [SignatureAlgorithm.rs256, .es384, .es512, .hs256])
    func algorithm(algorithm: SignatureAlgorithm) async throws {
        let ring = KeyRing()
        await #expect(throws: TokenError.like(.invalidConfiguration)) {
            try await ClientKey.make(named: "bank", algorithm: algorithm, at: ring)
        }
        #expect(ring.made == 0)
        guard algorithm != .hs256 else { return }
        // Somebody else made it.
        _ = try await ring.makeSigningKey(named: "client.bank", algorithm: algorithm)
        let provider = try FakeProvider()
        let manager = try await provider.clientSignedIn(ring)
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.code == .clientKeyUnavailable && error?.detail.contains(algorithm.rawValue) == true)
        #expect(error?.isTransient == false && provider.sent("/access_token").isEmpty)
    }

    @Test("PS256 and EdDSA do as well", arguments: [SignatureAlgorithm.ps256, .edDSA])
    func otherAlgorithms(algorithm: SignatureAlgorithm) async throws {
        let provider = try FakeProvider()
        let ring = KeyRing()
        let key = try await ClientKey.make(named: "bank", algorithm: algorithm, at: ring)
        let door = ClientDoor(key.keySet, clock: provider.clock)
        provider.authenticates(by: door)
        _ = try await provider.clientSignedIn(ring).tokens()
        #expect(door.taken.count == 1)
    }

    @Test("Without its key the client asks for nothing, makes none, and keeps what it has")
    func missing() async throws {
        let (provider, ring, _, first) = try await signedIn()
        let stored = try await first.tokens()
        for failure in [nil, Self.gone] {
            ring.change { state in
                state.keys = [:]
                state.failure = failure
            }
            let manager = try await other(provider, ring)
            provider.clock.advance(by: 601)
            let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
            #expect(error?.code == .clientKeyMissing && error?.isTransient == false)
            #expect(error?.suggestion?.contains("register") == true)
            #expect(try await manager.storedTokens() == stored)
        }
        #expect(provider.sent("/access_token").count == 1 && ring.made == 1)
    }

    @Test("A key that cannot be used now is an error of its own, and the next try works without a trace of it")
    func unavailable() async throws {
        let (provider, ring, _, _) = try await signedIn()
        let manager = try await other(provider, ring)
        provider.clock.advance(by: 601)
        ring.change { $0.failure = Self.away }
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.code == .clientKeyUnavailable && error?.suggestion == "Insert it." && error?.isTransient == true)
        ring.change { ($0.failure, $0.signingFailure) = (nil, KeyProviderError(.wrongSecret, "The PIN is wrong.")) }
        let wrong = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(wrong?.code == .clientKeyUnavailable && wrong?.isTransient == false)
        // Nothing was sent, so no attempt is noted that the server might have answered.
        #expect(await provider.store.names().allSatisfy { !$0.hasPrefix("refresh.") })
        ring.change { $0.signingFailure = nil }
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
    }

    @Test("A sign-out whose key cannot be used is finished when it can, and one whose key is gone says so")
    func signOut() async throws {
        let (provider, ring, door, manager) = try await signedIn()
        ring.change { $0.signingFailure = KeyProviderError(.userAbsent, "Nobody gave the PIN.") }
        let result = await manager.signOut()
        #expect(result.undone.map(\.step) == [.revokeTokens] && result.undone.allSatisfy(\.isKept))
        #expect(try await manager.storedTokens() == nil && provider.sent("/token/revoke").isEmpty)
        ring.change { $0.signingFailure = nil }
        #expect(try await manager.retrySignOuts().isEmpty && door.taken.count == 3)

        let (second, empty, _, lost) = try await signedIn()
        empty.change { $0.signingFailure = Self.gone }
        let untold = await lost.signOut()
        #expect(untold.undone.map(\.step) == [.revokeTokens] && untold.undone.allSatisfy { !$0.isKept })
        #expect(second.sent("/token/revoke").isEmpty)
    }

    @Test("The user is not sent to a browser by a client that has no key")
    func browser() async throws {
        struct Browser: RedirectReceiver {
            let opened = Locked(0)
            var redirectURI: String { "http://127.0.0.1/callback" }

            func receive(
                opening url: String, accepting accepts: @escaping @Sendable (String) -> Bool
            ) async throws -> String {
                opened.withLock { $0 += 1 }
                return ""
            }
        }
        let browser = Browser()
        let manager = try FakeProvider().manager {
            $0.clientAuthentication = .privateKeyJWT(keys: KeyRing(), named: "bank")
        }
        await #expect(throws: TokenError.like(.clientKeyMissing)) { try await manager.signIn(through: browser) }
        #expect(browser.opened.withLock { $0 } == 0)
    }

    @Test("A server that does not know the key: the error says what to register, and the next request has the new key")
    func refused() async throws {
        let (provider, ring, door, manager) = try await signedIn()
        let old = try await ClientKey.find(named: "bank", at: ring)
        let new = try await ClientKey.make(named: "bank", at: ring, replacing: true)
        door.state.withLock { $0.keys = new.keySet }
        provider.clock.advance(by: 601)
        // The session is still there, so its code goes out with the new key at once.
        _ = try await manager.tokens()
        #expect(provider.tokenRequests("refresh_token").count == 1)
        door.state.withLock { $0.keys = old.keySet }
        provider.clock.advance(by: 601)
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.code == .tokenRefused && error?.oauthError == "invalid_client" && error?.status == 401)
        #expect(error?.detail.contains("assertion") == true)
        let advice = error?.suggestion ?? ""
        #expect(
            advice.contains("client key bank (kid \(new.publicKey.thumbprint))") && advice.contains("private_key_jwt"))
    }

    @Test("A server that refuses the client without a word: the next request has the key that is there now")
    func silent() async throws {
        let (provider, ring, door, manager) = try await signedIn()
        let new = try await ClientKey.make(named: "bank", at: ring, replacing: true)
        door.state.withLock { $0.keys = new.keySet }
        let good = try #require(provider.behaviour.withLock { $0.tokenReply })
        provider.change {
            $0.tokenReply = { form in
                let reply = try await good(form)
                return reply?.status == 401 ? HTTPReply(HTTPResponse(status: .forbidden)) : reply
            }
        }
        provider.clock.advance(by: 601)
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
        #expect(provider.tokenRequests("refresh_token").count == 1 && door.taken.count == 2)
    }

    @Test("Neither what is configured nor what fails shows an assertion")
    func redaction() async throws {
        let (provider, ring, door, manager) = try await signedIn()
        door.state.withLock { $0.keys = JWKSet([]) }
        provider.clock.advance(by: 601)
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        let undone = await manager.signOut().undone
        var shown = ""
        dump(error, to: &shown)
        dump(undone, to: &shown)
        dump(manager.configuration.clientAuthentication, to: &shown, maxDepth: 4)
        let key = try await ClientKey.find(named: "bank", at: ring)
        dump(key, to: &shown)
        #expect(Mirror(reflecting: key).children.map(\.label) == ["publicKey"])
        #expect("\(key)" == "client key \(key.publicKey.thumbprint) (ES256)")
        shown += "\(error.map(\.explanation) ?? "")\(manager.configuration)"
        #expect(door.texts.count >= 4)
        for text in door.texts {
            for part in text.split(separator: ".") { #expect(!shown.contains(part)) }
        }
    }

    /// Another process with the same store and key provider.
    private func other(_ provider: FakeProvider, _ ring: KeyRing) async throws -> TokenManager {
        try provider.manager { $0.clientAuthentication = .privateKeyJWT(keys: ring, named: "bank") }
    }
}
