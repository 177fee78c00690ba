import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

/// RS256 beside ES256. Making an RSA key is slow, so each test makes few.
@Suite("The algorithms of ID tokens")
struct IDTokenAlgorithmTests {
    /// A client that says nothing about its algorithm.
    private static let silent = OAuthClient(
        id: "silent", kind: .public, redirectURIs: ["https://bank.example/cb"], scopes: ["openid"])

    private static func header(_ token: Secret?) throws -> (algorithm: SignatureAlgorithm, keyID: String?) {
        let jws = try UnverifiedJWS.parse(try #require(token).reveal())
        return (jws.algorithm, jws.keyID)
    }

    private static func sign(_ keys: ServerKeys, _ algorithm: SignatureAlgorithm) async throws -> Secret {
        try await keys.sign(JSONObject(), type: "JWT", for: .idToken, with: algorithm)
    }

    @Test("A client that says nothing gets RS256, another what it says, and both keys are published before")
    func perClient() async throws {
        let fixture = try await ProviderFixture(clients: [ProviderFixture.bank, Self.silent])
        let published = try await fixture.grants.publishedKeys()
        // Some programs take the first key of a set, and expect RSA.
        #expect(published.keys.compactMap(\.algorithm?.rawValue) == ["RS256", "ES256", "ES256"])
        let rsa = try #require(published.keys.first { $0.algorithm == .rs256 })
        #expect(try #require(rsa.json["n"]?.string.flatMap { Base64URL.decode($0) }).count >= 256)
        #expect(rsa.keyID == rsa.thumbprint && rsa.use == "sig" && rsa.json["d"] == nil)

        let code = try await fixture.code(["client_id": "silent", "scope": "openid"])
        let silent = try await fixture.exchange(code, ["client_id": "silent"])
        let bank = try await fixture.tokens()
        let header = try Self.header(silent.idToken)
        #expect(header.algorithm == .rs256 && header.keyID == rsa.keyID)
        #expect(try Self.header(bank.idToken).algorithm == .es256)
        for tokens in [silent, bank] {
            #expect(try Self.header(tokens.accessToken).algorithm == .es256)
            let idToken = try UnverifiedJWS.parse(try #require(tokens.idToken).reveal())
            _ = try idToken.verified(with: published, algorithms: [.rs256, .es256])
            let claims = try await fixture.grants.claims(ofIDToken: try #require(tokens.idToken), mayHaveExpired: true)
            #expect(claims != nil)
        }
        #expect(try await fixture.grants.publishedKeys().keys.count == 3)
    }

    @Test("Where no client needs it, no RSA key is made")
    func unneeded() async throws {
        let fixture = try await ProviderFixture()
        #expect(try await fixture.grants.publishedKeys().keys.count == 2)
        #expect(try await fixture.count("server_keys") == 2)
    }

    @Test("Nothing but the algorithms of its purpose signs")
    func others() async throws {
        let keys = try await ProviderFixture().grants.keys
        for algorithm: SignatureAlgorithm in [.hs256, .edDSA, .ps256, SignatureAlgorithm(rawValue: "none")] {
            await #expect(throws: EngineError.self) { try await Self.sign(keys, algorithm) }
        }
        await #expect(throws: EngineError.self) {
            try await keys.sign(JSONObject(), type: "at+jwt", for: .accessToken, with: .ps256)
        }
        var client = Self.silent
        for algorithm: SignatureAlgorithm in [.hs256, .ps256, SignatureAlgorithm(rawValue: "none")] {
            client.idTokenAlgorithm = algorithm
            #expect(client.validate() == ["silent: ID tokens are signed with RS256 or ES256"])
        }
    }

    @Test("Requests that need the first RSA key at once, on two nodes, end up with one")
    func creationRace() async throws {
        let fixture = try await ProviderFixture()
        let nodes = [fixture.grants.keys, try await fixture.secondNode().keys]
        let signers = try await withThrowingTaskGroup(of: String?.self) { group in
            for index in 0..<12 {
                group.addTask { try Self.header(try await Self.sign(nodes[index % 2], .rs256)).keyID }
            }
            return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        #expect(signers.count == 1)
        #expect(try await fixture.count("server_keys", where: "algorithm = 'RS256'") == 1)
    }

    @Test("A caller that gives up does not stop the key that others wait for")
    func cancelled() async throws {
        let fixture = try await ProviderFixture()
        let keys = fixture.grants.keys
        let givesUp = Task { try await Self.sign(keys, .rs256) }
        givesUp.cancel()
        _ = try? await givesUp.value
        #expect(try Self.header(try await Self.sign(keys, .rs256)).algorithm == .rs256)
        #expect(try await fixture.count("server_keys", where: "algorithm = 'RS256'") == 1)
    }

    @Test("A rotation replaces the keys of both algorithms, on both nodes, and the old ones go in time or at once")
    func rotation() async throws {
        let fixture = try await ProviderFixture()
        let first = fixture.grants.keys
        let second = try await fixture.secondNode().keys
        let old = [try await Self.sign(first, .es256), try await Self.sign(first, .rs256)]
        for (token, algorithm) in zip(old, [SignatureAlgorithm.es256, .rs256]) {
            #expect(try Self.header(try await Self.sign(second, algorithm)).keyID == Self.header(token).keyID)
        }
        #expect(try await first.rotate(.idToken))
        #expect(
            try await fixture.count("server_keys", where: "purpose = 'id_token' AND retired_at IS NULL") == 2)
        fixture.clock.advance(by: Double(ServerKeys.staleness))
        for (token, algorithm) in zip(old, [SignatureAlgorithm.es256, .rs256]) {
            let fresh = try Self.header(try await Self.sign(second, algorithm))
            #expect(fresh.algorithm == algorithm)
            #expect(fresh.keyID != (try Self.header(token).keyID))
            #expect(try await second.claims(of: token, type: "JWT", for: .idToken) != nil)
            #expect(try await second.claims(of: token, type: "JWT", for: .accessToken) == nil)
        }
        fixture.clock.advance(by: Double(first.retention + ServerKeys.staleness + ServerKeys.hintRetention))
        #expect(try await first.purge() == 2)

        let kept = [try await Self.sign(first, .es256), try await Self.sign(first, .rs256)]
        #expect(try await first.rotate(.idToken, discardingOld: true))
        fixture.clock.advance(by: Double(ServerKeys.staleness))
        for token in kept {
            for node in [first, second] {
                #expect(try await node.claims(of: token, type: "JWT", for: .idToken, includesExpiredKeys: true) == nil)
            }
        }
        #expect(try await fixture.count("server_keys") == 3)
    }
}
