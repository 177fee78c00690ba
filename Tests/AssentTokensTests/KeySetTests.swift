import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import HTTPTypes
import Testing

@Suite struct KeySetTests {
    /// Signs with a key of a new name from now on; publishes it when `published`.
    private func rotate(_ provider: FakeProvider, to name: String, published: Bool = true) throws {
        let key = try SoftwareSigningKey.generate(.es256)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo, keyID: name)
        provider.change {
            $0.key = key
            if published { $0.keys.append(jwk) }
            $0.header["kid"] = .string(name)
        }
    }

    /// A manager that gets new tokens, and so a new ID token, at each call.
    private func askingAlways(_ provider: FakeProvider) async throws -> TokenManager {
        provider.change {
            $0.expiresIn = 0; $0.rotates = false
        }
        return try await provider.signedIn()
    }

    @Test("Keys are fetched once for many tokens, and again after a day")
    func cached() async throws {
        let provider = try FakeProvider()
        let manager = try await askingAlways(provider)
        for _ in 0..<5 { _ = try await manager.tokens() }
        #expect(provider.sent("/jwk_uri").count == 1)
        provider.clock.advance(by: 24 * 3600)
        _ = try await manager.tokens()
        #expect(provider.sent("/jwk_uri").count == 2)
    }

    @Test("Of several keys with one name the one that signed counts, in any order")
    func repeatedNames() async throws {
        for position in 0..<3 {
            let provider = try FakeProvider()
            let right = provider.behaviour.withLock { $0.keys[0] }
            var keys = try (0..<2).map { _ in
                try JWK(publicKeyInfo: SoftwareSigningKey.generate(.es256).publicKeyInfo, keyID: "k1")
            }
            keys.insert(right, at: position)
            provider.change { [keys] in $0.keys = keys }
            _ = try await provider.signedIn().tokens()
            let other = try FakeProvider()
            other.change { [keys] in $0.keys = keys.filter { $0 != right } }
            let manager = try await other.signedIn()
            await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        }
    }

    @Test("The right key under another name is not the one that is named")
    func wrongName() async throws {
        let provider = try FakeProvider()
        let jwk = try JWK(publicKeyInfo: provider.behaviour.withLock { $0.key.publicKeyInfo }, keyID: "k2")
        provider.change { $0.keys = [jwk] }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        // A token that names none is tried with all.
        provider.change { $0.header["kid"] = nil }
        _ = try await manager.tokens()
    }

    @Test("A key that was replaced under the same name is found by one more fetch")
    func replaced() async throws {
        let provider = try FakeProvider()
        let manager = try await askingAlways(provider)
        _ = try await manager.tokens()
        let key = try SoftwareSigningKey.generate(.es256)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo, keyID: "k1")
        provider.change {
            $0.key = key; $0.keys = [jwk]
        }
        provider.clock.advance(by: 60)
        _ = try await manager.tokens()
        #expect(provider.sent("/jwk_uri").count == 2)
    }

    @Test("While the keys cannot be had a token is neither good nor bad, and the provider is not hammered")
    func down() async throws {
        let provider = try FakeProvider()
        let manager = try await askingAlways(provider)
        _ = try await manager.tokens()
        try rotate(provider, to: "k2")
        provider.clock.advance(by: 60)
        provider.change { $0.keysReply = { throw HTTPTransportError(.connectFailed, "down") } }
        for _ in 0..<10 {
            let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
            #expect(error?.code == .transport && error?.isTransient == true)
        }
        #expect(provider.sent("/jwk_uri").count == 2)
        provider.change { $0.keysReply = nil }
        provider.clock.advance(by: 31)
        _ = try await manager.tokens()
        #expect(provider.sent("/jwk_uri").count == 3)
    }

    @Test("A clock that steps back and forth fetches again at most once for each step")
    func clockSteps() async throws {
        let provider = try FakeProvider()
        let manager = try await askingAlways(provider)
        _ = try await manager.tokens()
        provider.clock.advance(by: -7200)
        for _ in 0..<5 { _ = try await manager.tokens(rejecting: manager.storedTokens()?.accessToken) }
        #expect(provider.sent("/jwk_uri").count == 2)
        provider.clock.advance(by: 7200)
        for _ in 0..<5 { _ = try await manager.tokens(rejecting: manager.storedTokens()?.accessToken) }
        #expect(provider.sent("/jwk_uri").count == 2)
    }

    @Test(
        "Keys that cannot be read refuse the tokens, with a reason that is not the token's",
        arguments: [
            { .json(200, ["keys": .array(Array(repeating: [:], count: 101))]) }, { .json(200, [:]) },
            { .json(200, ["keys": "none"]) }, { .json(200, ["keys": [5]]) }, { .json(200, []) },
            { .json(302, [:], headers: [.location: "https://evil.example/keys"]) }, { .json(500, [:]) },
            { HTTPReply(HTTPResponse(status: .ok), body: HTTPBody("<html>")) },
            { HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(#"{"keys":[],"keys":[]}"#)) },
            { HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(#"{"keys":["#)) },
            { HTTPReply(HTTPResponse(status: .ok)) },
        ] as [@Sendable () throws -> HTTPReply])
    func unreadable(reply: @escaping @Sendable () throws -> HTTPReply) async throws {
        let provider = try FakeProvider()
        provider.change { $0.keysReply = reply }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.malformedReply)) { try await manager.tokens() }
        #expect(try await manager.storedTokens() == nil)
        provider.change { $0.keysReply = nil }
        _ = try await manager.tokens()
    }

    @Test("Keys of more than a megabyte are not read, and neither is such a discovery document")
    func huge() async throws {
        let huge = HTTPBody([UInt8](repeating: 0x20, count: (1 << 20) + 1))
        let provider = try FakeProvider()
        provider.change { $0.keysReply = { HTTPReply(HTTPResponse(status: .ok), body: huge) } }
        let manager = try await provider.signedIn()
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.transportError?.code == .bodyTooLarge)
        let other = try FakeProvider()
        other.change { $0.discoveryReply = { HTTPReply(HTTPResponse(status: .ok), body: huge) } }
        let second = await #expect(throws: TokenError.self) { try await other.signedIn().tokens() }
        #expect(second?.transportError?.code == .bodyTooLarge)
    }

    @Test("Bad entries among the keys do not stop the good one")
    func badEntries() async throws {
        let provider = try FakeProvider()
        let good = provider.behaviour.withLock { $0.keys[0].json }
        let bad: [JSONValue] = [
            [:], ["kty": "EC"], ["kty": "XX", "kid": "k1"], ["kty": "oct", "k": "AAAA", "kid": "k1"],
            ["kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "k1"], ["kty": "RSA", "n": "AQ", "e": "AQAB"],
        ]
        provider.change { $0.keysReply = { .json(200, ["keys": .array(bad + [good])]) } }
        _ = try await provider.signedIn().tokens()
    }

    @Test("Without jwks_uri an ID token cannot be checked, so there are no tokens")
    func missing() async throws {
        let provider = try FakeProvider()
        provider.change { $0.discovery["jwks_uri"] = nil }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.unusableEndpoint)) { try await manager.tokens() }
    }
}
