import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("Token requests with proofs") struct ProvedTokenRequestTests {
    @Test(
        "happy-path-no-dpop-nonce: code and refresh are proved by one key, with and without rotation",
        arguments: [true, false])
    func noNonce(rotates: Bool) async throws {
        let provider = try FakeProvider()
        let (door, ring) = (ProofDoor(provider.clock), KeyRing())
        provider.binds(door)
        let manager = try await provider.boundSignedIn(ring)
        let first = try await manager.tokens()
        provider.change { $0.rotates = rotates }
        for _ in 0..<2 {
            provider.clock.advance(by: 601)
            let next = try await manager.tokens()
            #expect(next.isBound && next.keyThumbprint == first.keyThumbprint)
        }
        #expect(door.asked == 3 && door.seen.count == 3 && Set(door.texts).count == 3)
        #expect(Set(door.seen.map(\.thumbprint)) == [try #require(first.keyThumbprint)])
        #expect(door.seen.allSatisfy { $0.nonce == nil })
        #expect(provider.sent("/authorize").map { $0.query["dpop_jkt"] } == [first.keyThumbprint])
        #expect(ring.made == 1)
        // What a refresh leaves is what another process finds.
        let other = try provider.bound(ring)
        #expect(try await other.storedTokens()?.keyThumbprint == first.keyThumbprint)
        #expect(try await other.tokens() == manager.tokens())
    }

    @Test("A mandatory nonce: the first request goes out twice, the next ones have the newest nonce at once")
    func nonce() async throws {
        let provider = try FakeProvider()
        let (door, ring) = (ProofDoor(provider.clock, nonce: "first", renews: true), KeyRing())
        provider.binds(door)
        let manager = try await provider.boundSignedIn(ring)
        _ = try await manager.tokens()
        let codes = provider.tokenRequests("authorization_code")
        #expect(codes.count == 2 && codes[0].body == codes[1].body)
        #expect(door.seen.map(\.nonce) == ["first"] && Set(door.texts).count == 2)
        // The nonce of the reply with the tokens.
        provider.clock.advance(by: 601)
        _ = try await manager.tokens()
        #expect(provider.tokenRequests("refresh_token").count == 1 && door.seen.last?.nonce == "r-2")
        // One that the server has given up meanwhile.
        door.change { $0.nonce = "other" }
        provider.clock.advance(by: 601)
        #expect(try await manager.tokens().accessToken == Secret("access-3"))
        #expect(provider.tokenRequests("refresh_token").count == 3 && door.seen.last?.nonce == "other")
    }

    @Test("A server that is content with no nonce is asked twice, and nothing is removed")
    func endless() async throws {
        let provider = try FakeProvider()
        let (door, ring) = (ProofDoor(provider.clock), KeyRing())
        provider.binds(door)
        let manager = try await provider.boundSignedIn(ring)
        let stored = try await manager.tokens()
        door.change { $0.isNeverContent = true }
        provider.clock.advance(by: 550)
        // Within the threshold the old ones still do.
        #expect(try await manager.tokens() == stored)
        #expect(provider.tokenRequests("refresh_token").count == 2)
        provider.clock.advance(by: 60)
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.code == .tokenRefused && error?.oauthError == "use_dpop_nonce")
        #expect(provider.tokenRequests("refresh_token").count == 4 && Set(door.texts).count == 5)
        door.change { ($0.isNeverContent, $0.nonce) = (false, nil) }
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
        #expect(provider.tokenRequests("refresh_token").count == 5)
    }

    @Test(
        "An answer that wants a nonce and gives no usable one is final",
        arguments: [[], [""], ["a b"], ["a\"b"], ["one", "two"], [String(repeating: "n", count: 513)]])
    func unusable(values: [String]) async throws {
        let provider = try FakeProvider()
        let ring = KeyRing()
        let name = try #require(HTTPField.Name("DPoP-Nonce"))
        provider.change {
            $0.tokenReply = { _ in
                var fields = HTTPFields()
                for value in values { fields.append(HTTPField(name: name, value: value)) }
                return .json(400, ["error": "use_dpop_nonce"], headers: fields)
            }
        }
        let manager = try await provider.boundSignedIn(ring)
        await #expect(throws: TokenError.like(.tokenRefused)) { try await manager.tokens() }
        #expect(provider.sent("/access_token").count == 1)
        #expect(try await manager.storedTokens() == nil)
    }

    @Test("token-type-case-insensitivity", arguments: ["DPoP", "dpop", "DPOP", "dPoP"])
    func tokenType(type: String) async throws {
        let provider = try FakeProvider()
        provider.binds(ProofDoor(provider.clock), tokenType: .string(type))
        #expect(try await provider.boundSignedIn(KeyRing()).tokens().isBound)
    }

    @Test(
        "Tokens that are not bound are refused although a proof was sent, and nothing is stored",
        arguments: ["Bearer", "bearer", "DPoP2", "", 1, nil] as [JSONValue?])
    func unbound(type: JSONValue?) async throws {
        let provider = try FakeProvider()
        provider.binds(ProofDoor(provider.clock), tokenType: type)
        let manager = try await provider.boundSignedIn(KeyRing())
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.code == .unboundTokens && error?.suggestion?.contains("DPoP") == true)
        #expect(try await manager.storedTokens() == nil)
        // A refresh that ends so keeps the bound tokens.
        provider.change { $0.tokenType = "DPoP" }
        let stored = try await manager.tokens()
        provider.change { $0.tokenType = type }
        provider.clock.advance(by: 601)
        await #expect(throws: TokenError.like(.unboundTokens)) { try await manager.tokens() }
        #expect(try await manager.storedTokens() == stored)
    }

    @Test("Bound tokens are refused where no proof was sent")
    func unasked() async throws {
        let provider = try FakeProvider()
        provider.change { $0.tokenType = "DPoP" }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.malformedReply)) { try await manager.tokens() }
    }

    @Test("Stored bearer tokens stay bearer tokens when the switch is turned on, until a new sign-in")
    func before() async throws {
        let provider = try FakeProvider()
        _ = try await provider.signedIn().tokens()
        let ring = KeyRing()
        let manager = try provider.bound(ring)
        provider.clock.advance(by: 601)
        #expect(try await !manager.tokens().isBound)
        #expect(provider.sent("/access_token").allSatisfy { $0.field("DPoP") == nil } && ring.made == 0)
        provider.binds(ProofDoor(provider.clock))
        try await manager.install(Session(token: Secret("NEW")))
        #expect(try await manager.tokens().isBound && ring.made == 1)
    }

    @Test("Only ES256, ES384, PS256 and EdDSA sign proofs", arguments: [SignatureAlgorithm.rs256, .es512, .hs256])
    func algorithm(algorithm: SignatureAlgorithm) async throws {
        let provider = try FakeProvider()
        let ring = KeyRing()
        let manager = try await provider.signedIn { $0.dpop = .on(keys: ring, algorithm: algorithm) }
        await #expect(throws: TokenError.like(.invalidConfiguration)) { try await manager.tokens() }
        #expect(ring.made == 0 && provider.sent("/access_token").isEmpty)
    }

    @Test("The userinfo endpoint gets the token with a proof, and once more with the nonce that it wants")
    func userInfo() async throws {
        let provider = try FakeProvider()
        provider.binds(ProofDoor(provider.clock))
        let manager = try await provider.boundSignedIn(KeyRing())
        let token = try await manager.tokens().accessToken
        let door = ProofDoor(provider.clock, nonce: "n")
        provider.change {
            $0.other = { exchange in
                #expect(exchange.field("Authorization") == "DPoP \(token.reveal())")
                guard let error = door.refusal(of: exchange, token: token) else { return .json(200, ["sub": "ana"]) }
                var fields = door.fields
                fields[.wwwAuthenticate] = "DPoP error=\"\(error)\""
                return .json(401, [:], headers: fields)
            }
        }
        #expect(try await manager.userInfo().sub == "ana")
        #expect(door.asked == 2 && door.seen.count == 1)
    }
}
