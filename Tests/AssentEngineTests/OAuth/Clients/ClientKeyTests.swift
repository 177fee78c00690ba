import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Key sets of clients")
struct ClientKeyTests {
    private static func set(_ keys: [JSONValue]) -> JSONValue { ["keys": .array(keys)] }

    private static func refusal(
        _ json: JSONValue, for algorithms: Set<SignatureAlgorithm> = Set(ClientKeys.usualAlgorithms)
    ) -> JOSEError? {
        do {
            _ = try ClientKeys.listed(json, for: algorithms)
            return nil
        } catch {
            return error
        }
    }

    @Test("An operator's set is read whole, or the key that is wrong is named")
    func listed() throws {
        let (one, two) = (try AssertionKey(keyID: "1"), try AssertionKey(.edDSA, keyID: "2"))
        let json = Self.set([one.jwk.json, two.jwk.json])
        #expect(try ClientKeys.listed(json, for: Set(ClientKeys.usualAlgorithms)).keys == [one.jwk, two.jwk])
        func changed(_ change: (inout JSONObject) -> Void) throws -> JSONValue {
            var object = try #require(one.jwk.json.object)
            change(&object)
            return Self.set([two.jwk.json, .object(object)])
        }
        let mistakes: [(JSONValue, JOSEError.Code)] = [
            (try changed { $0["d"] = "AA" }, .privateKeyRefused),
            (try changed { $0["x"] = $0["y"] }, .invalidKey),
            (try changed { $0["crv"] = "secp256k1" }, .unsupportedKey),
            (try changed { $0["x"] = .string(String(repeating: "A", count: 64 << 10)) }, .malformed),
            (try changed { $0["use"] = "enc" }, .algorithmMismatch),
            (try changed { $0["alg"] = "ES384" }, .algorithmMismatch),
            (try changed { $0["key_ops"] = ["sign"] }, .algorithmMismatch),
            (Self.set([two.jwk.json, try AssertionKey(.es384).jwk.json]), .algorithmMismatch),
            (Self.set([two.jwk.json, ["kty": "oct", "k": "AAAA"]]), .privateKeyRefused),
            (Self.set([two.jwk.json, two.jwk.json]), .malformed), (Self.set([two.jwk.json, "x"]), .malformed),
        ]
        for (json, code) in mistakes {
            let error = Self.refusal(json)
            #expect(error?.code == code, "\(json)")
            #expect(error?.detail.contains("key 2") == true, "\(error?.detail ?? "")")
        }
        #expect(Self.refusal(json, for: [.rs256])?.code == .algorithmMismatch)
        for json: JSONValue in [.null, [], [:], ["keys": [:]], ["keys": "x"]] {
            #expect(Self.refusal(json)?.code == .malformed)
        }
        #expect(Self.refusal(Self.set([]))?.code == .tooLarge)
    }

    @Test("A set of 10,000 keys is refused, in the file and where it is published, and so is one of 33")
    func limits() throws {
        let json = try AssertionKey().jwk.json
        for count in [10_000, 33] {
            let set = Self.set(Array(repeating: json, count: count))
            #expect(Self.refusal(set)?.code == .tooLarge)
            #expect(throws: JOSEError.self) { try ClientKeys.published(set.serializedBytes()) }
        }
        let most = Self.set(Array(repeating: json, count: ClientKeys.limit))
        #expect(try ClientKeys.published(most.serializedBytes()).keys.count == ClientKeys.limit)
    }

    @Test("Of a published set what cannot be used is left out; what is not a set is refused")
    func published() throws {
        let key = try AssertionKey()
        let set = Self.set([key.jwk.json, ["kty": "oct", "k": "AAAA"], ["kty": "new"]])
        #expect(try ClientKeys.published(set.serializedBytes()).keys == [key.jwk])
        let twice = #"{"keys":[],"keys":[]}"#
        for text in [
            "", "x", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[1]}"#, twice,
            #"{"keys":[],"x":"\#(String(repeating: "x", count: 64 << 10))"}"#,
            #"{"keys":"# + String(repeating: "[", count: 50_000),
        ] {
            #expect(throws: JOSEError.self, "\(text.prefix(40))") { try ClientKeys.published(Array(text.utf8)) }
        }
    }

    @Test("A client with keys that do not fit is refused at the start")
    func validation() throws {
        let key = try AssertionKey()
        #expect(AssertionKey.client([key]).validate().isEmpty)
        #expect(!AssertionKey.client([]).validate().isEmpty)
        for algorithms: Set<SignatureAlgorithm> in [[], [.hs256], [.es384], [.rs256], [.es256, .hs256]] {
            #expect(!AssertionKey.client([key], algorithms: algorithms).validate().isEmpty)
        }
    }

    @Test("The metadata offer private_key_jwt, with its algorithms, where a client uses it")
    func metadata() async throws {
        let without = try await ProviderFixture().grants.metadata()
        let key = try AssertionKey()
        let old = AssertionKey.client([try AssertionKey(.rs256)], id: "old", algorithms: [.rs256])
        let fixture = try await ProviderFixture(clients: [AssertionKey.client([key]), old])
        let with = fixture.grants.metadata()
        for endpoint in ["token", "revocation", "introspection"] {
            let methods = "\(endpoint)_endpoint_auth_methods_supported"
            let algorithms = "\(endpoint)_endpoint_auth_signing_alg_values_supported"
            #expect(without[methods]?.strings?.contains("private_key_jwt") == false)
            #expect(without[algorithms] == nil)
            #expect(with[methods]?.strings?.contains("private_key_jwt") == true)
            #expect(with[algorithms]?.strings == ["ES256", "PS256", "EdDSA", "RS256"])
        }
        #expect(with["introspection_endpoint_auth_methods_supported"]?.strings?.contains("none") == false)
    }

    // MARK: - Keys at an address

    /// Key sets of clients, and what was asked for.
    private final class Sets: ClientKeySets {
        let known: [String: JWKSet]
        let asked = Locked<[String]>([])

        init(_ known: [String: JWKSet]) { self.known = known }

        func keys(at url: String, keyID: String?, algorithm: SignatureAlgorithm) async throws -> JWKSet {
            asked.withLock { $0.append("\(url) \(keyID ?? "-") \(algorithm.rawValue)") }
            guard let set = known[url] else { throw EngineError.unavailable }
            return set
        }
    }

    private static func remote(_ id: String) -> OAuthClient {
        var client = AssertionKey.client([], id: id)
        client.kind = .keyed(ClientKeys(.fetched("https://\(id).example/jwks")))
        return client
    }

    @Test("Keys at an address are fetched for an assertion that could be right; without them the answer is \"later\"")
    func fetched() async throws {
        let key = try AssertionKey(keyID: "one")
        let fixture = try await ProviderFixture(clients: [Self.remote("office"), Self.remote("agency")])
        let sets = Sets(["https://office.example/jwks": JWKSet([key.jwk])])
        func provider(_ sets: Sets?) throws -> OAuthProvider {
            try OAuthProvider(
                fixture.context, keys: fixture.grants.keys, configuration: fixture.grants.configuration,
                keySets: sets)
        }
        let node = try provider(sets)
        let assertion = try await key.assertion(now: fixture.clock) { $0["kid"] = "one" }
        _ = try await node.tokens(try ProviderFixture.ownToken(assertion))
        #expect(sets.asked.withLock { $0 } == ["https://office.example/jwks one ES256"])
        await #expect(throws: OAuthError.invalidClient) {
            try await node.tokens(try ProviderFixture.ownToken(assertion))
        }
        let unknown = try await AssertionKey().assertion(now: fixture.clock) { $0["kid"] = "two" }
        await #expect(throws: OAuthError.invalidClient) {
            try await node.tokens(try ProviderFixture.ownToken(unknown))
        }
        let down = try await key.assertion(of: "agency", now: fixture.clock)
        await #expect(throws: OAuthError.unavailable) { try await node.tokens(try ProviderFixture.ownToken(down)) }
        let count = sets.asked.withLock { $0.count }
        // Nothing is fetched for what cannot be right.
        for wrong in [
            try await AssertionKey(.rs256).assertion(now: fixture.clock),
            try await key.assertion(of: "nobody", now: fixture.clock), "x", assertion + ".",
        ] {
            await #expect(throws: OAuthError.invalidClient) {
                try await node.tokens(try ProviderFixture.ownToken(wrong))
            }
        }
        #expect(sets.asked.withLock { $0.count } == count)
        // A provider that fetches nothing lets nobody in.
        let fresh = try await key.assertion(now: fixture.clock)
        let without = try provider(nil)
        await #expect(throws: OAuthError.unavailable) {
            try await without.tokens(try ProviderFixture.ownToken(fresh))
        }
    }
}
