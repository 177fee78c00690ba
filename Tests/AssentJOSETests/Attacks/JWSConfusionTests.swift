import AssentCore
import AssentJOSE
import Testing

@Suite("JWS: confusion of algorithms, headers and keys")
struct JWSConfusionTests {
    @Test(
        "No algorithm and unknown algorithms are refused",
        arguments: ["none", "None", "NONE", "", "HS384", "HS512", "RS512", "PS384", "ES256K", "es256", "dir", "Ed448"])
    func unsupported(name: String) async throws {
        let key = try TestKeys.key(.es256)
        let header = JSONValue.object(JSONObject(header: ("alg", .string(name)))).serialized()
        let text = try await signRaw(header: header, with: key)
        #expect(throws: JOSEError(.unsupportedAlgorithm)) { try UnverifiedJWS.parse(text) }
        let unsigned = text.prefix { $0 != "." } + ".e30."
        #expect(throws: JOSEError(.unsupportedAlgorithm)) { try UnverifiedJWS.parse(String(unsigned)) }
    }

    @Test("A public key in any form is never an HMAC key", arguments: TestKeys.all)
    func publicKeyAsSecret(algorithm: SignatureAlgorithm) async throws {
        let key = try TestKeys.key(algorithm)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo, keyID: "k")
        for secret in [key.publicKeyInfo, jwk.json.serializedBytes(), Array(jwk.thumbprint.utf8)] {
            let text = try await JWS.sign(
                [1], header: JSONObject(header: ("kid", "k")), with: HMACSigningKey(Secret(bytes: secret)))
            let message = try UnverifiedJWS.parse(text)
            let algorithms: Set<SignatureAlgorithm> = [algorithm, .hs256]
            #expect(throws: JOSEError(.algorithmNotAllowed)) { try message.verified(with: jwk, algorithms: algorithms) }
            #expect(throws: JOSEError(.algorithmNotAllowed)) {
                try message.verified(with: JWKSet([jwk]), algorithms: algorithms)
            }
        }
    }

    @Test("A message with a public key algorithm is not taken by the HMAC way in")
    func hmacEntry() async throws {
        let text = try await JWS.sign([1], with: TestKeys.key(.es256))
        #expect(throws: JOSEError(.algorithmNotAllowed)) {
            try UnverifiedJWS.parse(text).verified(hmacKey: Secret(bytes: [UInt8](repeating: 0, count: 32)))
        }
    }

    @Test("Only what the caller allows is accepted")
    func allowList() async throws {
        let key = try TestKeys.key(.es256)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo)
        let message = try UnverifiedJWS.parse(try await JWS.sign([1], with: key))
        for algorithms: Set<SignatureAlgorithm> in [[], [.es384], [.rs256, .edDSA]] {
            #expect(throws: JOSEError(.algorithmNotAllowed)) { try message.verified(with: jwk, algorithms: algorithms) }
        }
    }

    @Test("A key verifies only its own algorithms", arguments: TestKeys.all, TestKeys.all)
    func mismatch(algorithm: SignatureAlgorithm, other: SignatureAlgorithm) async throws {
        let rsa: Set<SignatureAlgorithm> = [.rs256, .ps256]
        let key = try TestKeys.key(algorithm)
        let header = JSONValue.object(JSONObject(header: ("alg", .string(other.rawValue)))).serialized()
        let text = try await signRaw(header: header, with: key)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo)
        let message = try UnverifiedJWS.parse(text)
        if algorithm == other {
            #expect(throws: Never.self) { try message.verified(with: jwk, algorithms: [other]) }
        } else if rsa.isSuperset(of: [algorithm, other]) {
            #expect(throws: JOSEError(.invalidSignature)) { try message.verified(with: jwk, algorithms: [other]) }
            let bound = try JWK(publicKeyInfo: key.publicKeyInfo, algorithm: algorithm)
            #expect(throws: JOSEError(.algorithmMismatch)) { try message.verified(with: bound, algorithms: [other]) }
        } else {
            #expect(throws: JOSEError(.algorithmMismatch)) { try message.verified(with: jwk, algorithms: [other]) }
            #expect(throws: JOSEError(.noMatchingKey)) {
                try message.verified(with: JWKSet([jwk]), algorithms: [other])
            }
        }
    }

    @Test("A key's use and operations are respected")
    func use() async throws {
        let key = try TestKeys.key(.es256)
        let text = try await JWS.sign([1], with: key)
        let message = try UnverifiedJWS.parse(text)
        func jwk(_ name: String, _ value: JSONValue) throws -> JWK {
            var object = try #require(JWK(publicKeyInfo: key.publicKeyInfo).json.object)
            object[name] = value
            return try JWK(.object(object))
        }
        for bad in [
            try jwk("use", "enc"), try jwk("key_ops", ["sign"]), try jwk("key_ops", []), try jwk("alg", "ES384"),
        ] {
            #expect(throws: JOSEError(.algorithmMismatch)) { try message.verified(with: bad, algorithms: [.es256]) }
        }
        for good in [try jwk("use", "sig"), try jwk("key_ops", ["verify"]), try jwk("alg", "ES256")] {
            #expect(throws: Never.self) { try message.verified(with: good, algorithms: [.es256]) }
        }
    }

    @Test(
        "A header member of the wrong type, or one that demands an extension, is refused",
        arguments: [
            (#"{"alg":256}"#, JOSEError(.malformed)), (#"{"alg":null}"#, JOSEError(.malformed)),
            (#"{"alg":["ES256"]}"#, JOSEError(.malformed)), (#"{}"#, JOSEError(.malformed)),
            (#"[]"#, JOSEError(.malformed)), (#""ES256""#, JOSEError(.malformed)), ("", JOSEError(.malformed)),
            (#"{"alg":"ES256","kid":1}"#, JOSEError(.malformed)),
            (#"{"alg":"ES256","kid":null}"#, JOSEError(.malformed)),
            (#"{"alg":"ES256","typ":["JWT"]}"#, JOSEError(.malformed)),
            (#"{"alg":"ES256","cty":{}}"#, JOSEError(.malformed)),
            (#"{"alg":"none","alg":"ES256"}"#, JOSEError(.malformed)),
            (#"{"alg":"ES256","kid":"a","kid":"b"}"#, JOSEError(.malformed)),
            (#"{"alg":"ES256","\u0061lg":"none"}"#, JOSEError(.malformed)),
            (#"{"alg":"ES256"}x"#, JOSEError(.malformed)), (#"{"alg":"ES256",}"#, JOSEError(.malformed)),
            (#"{"alg":"ES256","crit":["exp"],"exp":1}"#, JOSEError(.unsupportedExtension)),
            (#"{"alg":"ES256","crit":[]}"#, JOSEError(.unsupportedExtension)),
            (#"{"alg":"ES256","crit":"b64"}"#, JOSEError(.unsupportedExtension)),
            (#"{"alg":"ES256","crit":null}"#, JOSEError(.unsupportedExtension)),
            (#"{"alg":"ES256","b64":false,"crit":["b64"]}"#, JOSEError(.unsupportedExtension)),
            (#"{"alg":"ES256","b64":false}"#, JOSEError(.unsupportedExtension)),
            (#"{"alg":"ES256","x":[[[[[[[[[[[]]]]]]]]]]]}"#, JOSEError(.malformed)),
        ])
    func headers(header: String, error: JOSEError) async throws {
        let text = try await signRaw(header: header, with: TestKeys.key(.es256))
        #expect(throws: error) { try UnverifiedJWS.parse(text) }
    }

    @Test("A signer's caller cannot set what the signer must", arguments: ["alg", "crit", "b64"])
    func reserved(name: String) async throws {
        let key = try TestKeys.key(.es256)
        await #expect(throws: JOSEError(.malformed)) {
            try await JWS.sign([1], header: JSONObject(header: (name, "none")), with: key)
        }
        await #expect(throws: JOSEError(.malformed)) {
            try await JWS.sign([1], header: JSONObject(header: ("kid", "a"), ("kid", "b")), with: key)
        }
    }

    @Test("A key in the header is not trusted because it is there")
    func embeddedKey() async throws {
        let (trusted, attacker) = (try TestKeys.key(.es256), try TestKeys.key(.es256))
        let jwk = try JWK(publicKeyInfo: attacker.publicKeyInfo)
        let header = JSONObject(
            header: ("jwk", jwk.json), ("jku", "https://attacker.example/jwks"), ("x5c", ["AAAA"]))
        let text = try await JWS.sign([1], header: header, with: attacker)
        let key = try JWK(publicKeyInfo: trusted.publicKeyInfo)
        #expect(throws: JOSEError(.invalidSignature)) {
            try UnverifiedJWS.parse(text).verified(with: key, algorithms: [.es256])
        }
    }

    @Test("kid picks the key: an unknown one fits none, a shared one all that have it, none at all every key")
    func keyIDs() async throws {
        let keys = try (0..<3).map { _ in try TestKeys.key(.es256) }
        let ids: [String?] = ["a", "a", nil]
        let set = JWKSet(try zip(keys, ids).map { try JWK(publicKeyInfo: $0.publicKeyInfo, keyID: $1) })
        func verify(_ index: Int, _ kid: String?) async throws {
            let header = kid.map { JSONObject(header: ("kid", .string($0))) } ?? JSONObject()
            let text = try await JWS.sign([1], header: header, with: keys[index])
            _ = try UnverifiedJWS.parse(text).verified(with: set, algorithms: [.es256])
        }
        try await verify(0, "a")
        try await verify(1, "a")
        for index in 0..<3 { try await verify(index, nil) }
        await #expect(throws: JOSEError(.invalidSignature)) { try await verify(2, "a") }
        for kid in ["b", "", "A", "a\u{301}"] {
            await #expect(throws: JOSEError(.noMatchingKey)) { try await verify(0, kid) }
        }
        let single = try JWK(publicKeyInfo: keys[0].publicKeyInfo, keyID: "a")
        let text = try await JWS.sign([1], header: JSONObject(header: ("kid", "b")), with: keys[0])
        #expect(throws: JOSEError(.noMatchingKey)) {
            try UnverifiedJWS.parse(text).verified(with: single, algorithms: [.es256])
        }
    }

    @Test("What a broken key handle gives is not passed on as a signature")
    func brokenHandle() async throws {
        struct Broken: SigningKey {
            let algorithm: SignatureAlgorithm
            let publicKeyInfo: [UInt8] = []
            let count: Int
            func signature(for message: [UInt8]) async throws -> [UInt8] { [UInt8](repeating: 1, count: count) }
        }
        for (algorithm, count) in [(SignatureAlgorithm.es256, 70), (.es512, 128), (.rs256, 0), (.edDSA, 63)] {
            await #expect(throws: JOSEError(.keyFailed)) {
                try await JWS.sign([1], with: Broken(algorithm: algorithm, count: count))
            }
        }
        await #expect(throws: JOSEError(.unsupportedAlgorithm)) {
            try await JWS.sign([1], with: Broken(algorithm: .init(rawValue: "none"), count: 1))
        }
    }
}
