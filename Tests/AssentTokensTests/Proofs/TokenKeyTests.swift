import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("The key that tokens are bound to") struct TokenKeyTests {
    private static let gone = KeyProviderError(.keyLost, "It is gone.")
    private static let away = KeyProviderError(.unavailable, "It is not there.", suggestion: "Insert it.")

    private func signedIn() async throws -> (FakeProvider, KeyRing, TokenManager) {
        let provider = try FakeProvider()
        let ring = KeyRing()
        provider.binds(ProofDoor(provider.clock))
        let manager = try await provider.boundSignedIn(ring)
        _ = try await manager.tokens()
        return (provider, ring, manager)
    }

    @Test("Managers that race for the first tokens share one key, which is made under the lease")
    func race() async throws {
        let provider = try FakeProvider()
        let (door, ring) = (ProofDoor(provider.clock, nonce: "n"), KeyRing())
        provider.binds(door)
        let managers = try (0..<8).map { _ in try provider.bound(ring) }
        try await managers[0].install(Session(token: Secret("SESS")))
        let sets = try await withThrowingTaskGroup(of: TokenSet.self) { group in
            for manager in managers { group.addTask { try await manager.tokens() } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(sets.map(\.keyThumbprint)).count == 1 && Set(sets.map { $0.accessToken.reveal() }).count == 1)
        #expect(ring.made == 1 && ring.names.count == 1 && door.seen.count == 1)
        // Each of them can go on with it.
        provider.clock.advance(by: 601)
        for manager in managers.reversed() {
            #expect(try await manager.tokens().keyThumbprint == sets[0].keyThumbprint)
        }
        #expect(Set(door.seen.map(\.thumbprint)).count == 1)
    }

    @Test("Stores that share a key provider have a key each, and a sign-out takes only its own")
    func stores() async throws {
        let (_, ring, manager) = try await signedIn()
        let other = try FakeProvider()
        other.binds(ProofDoor(other.clock))
        // The same seed would be the same name.
        _ = try other.manager()
        _ = try await other.boundSignedIn(ring).tokens()
        #expect(ring.names.count == 2)
        #expect(await manager.signOut().localFailure == nil)
        #expect(ring.names.count == 1)
        #expect(try await other.bound(ring).tokens().isBound)
    }

    @Test("A lost key without a session: sign in again, nothing is sent as a bearer token, and the tokens are revoked")
    func lost() async throws {
        let (provider, ring, _) = try await signedIn()
        ring.change { $0.keys = [:] }
        let record = await provider.store.names().first { $0.hasPrefix("session.") }
        try await provider.store.update(try #require(record), to: nil, expected: .any)
        let manager = try provider.bound(ring)
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.code == .signInNeeded && error?.signInReason == .keyLost && error?.isTransient == false)
        #expect(try await manager.storedTokens() == nil)
        #expect(provider.sent("/token/revoke").map { $0.form["token"] } == ["refresh+1&=%", "access-1"])
        #expect(provider.tokenRequests("refresh_token").isEmpty && ring.made == 1)
        let bearer = provider.exchanges.withLock { $0 }.filter { $0.field("Authorization") != nil }
        #expect(bearer.isEmpty)
    }

    @Test("A lost key with a session: the session gets tokens of a new key")
    func renewed() async throws {
        for failure in [nil, Self.gone] {
            let (provider, ring, first) = try await signedIn()
            let old = try await first.tokens().keyThumbprint
            ring.change { state in
                state.keys = [:]
                state.failure = failure
            }
            let manager = try provider.bound(ring)
            if failure != nil {
                // The provider says itself that the key is gone, and takes no new one yet.
                await #expect(throws: TokenError.self) { try await manager.tokens() }
                ring.change { $0.failure = nil }
            }
            let tokens = try await manager.tokens()
            #expect(tokens.isBound && tokens.keyThumbprint != old && ring.made == 2 && ring.names.count == 1)
        }
    }

    @Test("Another key of the same name is not the key of the tokens")
    func exchanged() async throws {
        let (provider, ring, first) = try await signedIn()
        let stored = try await first.tokens()
        let foreign = try SoftwareSigningKey.generate(.es256)
        ring.change { state in for name in state.keys.keys { state.keys[name] = foreign } }
        let count = provider.sent("/access_token").count
        let tokens = try await provider.bound(ring).tokens()
        #expect(tokens.accessToken != stored.accessToken && tokens.keyThumbprint != stored.keyThumbprint)
        // The old refresh token was not shown with the foreign key.
        #expect(provider.tokenRequests("refresh_token").isEmpty && provider.sent("/access_token").count == count + 1)
    }

    @Test("A key that cannot be used now is an error of its own, and removes nothing")
    func unavailable() async throws {
        let (provider, ring, first) = try await signedIn()
        let stored = try await first.tokens()
        ring.change { $0.failure = Self.away }
        let manager = try provider.bound(ring)
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.code == .keyUnavailable && error?.suggestion == "Insert it.")
        #expect(try await manager.storedTokens() == stored && provider.sent("/token/revoke").isEmpty)
        ring.change { $0.failure = nil }
        #expect(try await manager.tokens() == stored)
    }

    @Test("A provider that can make no key: no tokens are asked for")
    func cannotMake() async throws {
        let provider = try FakeProvider()
        let ring = KeyRing()
        ring.change { $0.failure = Self.away }
        let manager = try await provider.boundSignedIn(ring)
        await #expect(throws: TokenError.like(.keyUnavailable)) { try await manager.tokens() }
        #expect(provider.sent("/authorize").isEmpty && provider.sent("/access_token").isEmpty)
    }

    @Test("Bound tokens without a provider in the configuration are not used, and stay")
    func off() async throws {
        let (provider, _, first) = try await signedIn()
        let stored = try await first.tokens()
        let manager = try provider.manager()
        await #expect(throws: TokenError.like(.keyUnavailable)) { try await manager.tokens() }
        #expect(try await manager.storedTokens() == stored)
    }

    @Test("What is stored of bound tokens cannot be read as bearer tokens, whatever is taken from it")
    func stored() async throws {
        let (provider, ring, _) = try await signedIn()
        try await provider.tampering(with: "tokens.") {
            await #expect(throws: TokenError.like(.storageFailed)) { try await provider.bound(ring).tokens() }
        }
    }

    @Test("The sign-out removes the key after the tokens; what cannot be removed is told, and used again")
    func signOut() async throws {
        let (provider, ring, manager) = try await signedIn()
        ring.change { $0.failure = Self.away }
        let told = await manager.signOut()
        #expect(told.localFailure?.code == .keyUnavailable && ring.names.count == 1)
        #expect(try await manager.storedTokens() == nil)
        ring.change { $0.failure = nil }
        try await manager.install(Session(token: Secret("SESS")))
        #expect(try await manager.tokens().isBound && ring.made == 1)
        #expect(await manager.signOut().isComplete)
        #expect(ring.names.isEmpty)
        #expect(await provider.store.names().isEmpty)
    }

    @Test("Revoking the tokens removes their key; the session gets tokens of a new one")
    func revoke() async throws {
        let (_, ring, manager) = try await signedIn()
        let old = try await manager.tokens().keyThumbprint
        #expect(await manager.revoke().isComplete)
        #expect(ring.names.isEmpty)
        let new = try await manager.tokens()
        #expect(new.isBound && new.keyThumbprint != old && ring.made == 2)
    }

    @Test("Where the binding is kept, tokens are bound from the sign-in that bound them until the sign-out")
    func kept() async throws {
        let provider = try FakeProvider()
        let ring = KeyRing()
        let later = try provider.manager { $0.dpop = .kept(keys: ring) }
        try await later.install(Session(token: Secret("S1")))
        #expect(try await !later.tokens().isBound)
        provider.binds(ProofDoor(provider.clock))
        try await provider.boundSignedIn(ring).install(Session(token: Secret("S2")))
        let bound = try await provider.bound(ring).tokens()
        provider.clock.advance(by: 2)
        #expect(try await later.tokens() == bound)
        try await later.install(Session(token: Secret("S3")))
        #expect(try await later.tokens().keyThumbprint == bound.keyThumbprint)
        #expect(await later.signOut().isComplete)
        provider.change { ($0.tokenReply, $0.tokenType) = (nil, "Bearer") }
        try await later.install(Session(token: Secret("S4")))
        #expect(try await !later.tokens().isBound)
        #expect(ring.names.isEmpty)
    }
}
