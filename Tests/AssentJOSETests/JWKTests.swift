import AssentCore
import AssentJOSE
import Foundation
import Testing

@Suite("JWK")
struct JWKTests {
    static func json(_ algorithm: SignatureAlgorithm) throws -> JSONObject {
        try #require(JWK(publicKeyInfo: TestKeys.key(algorithm).publicKeyInfo).json.object)
    }

    @Test(
        "A key with any private or symmetric value is refused",
        arguments: ["d", "p", "q", "dp", "dq", "qi", "oth", "k"])
    func privateMembers(name: String) throws {
        for algorithm in [SignatureAlgorithm.es256, .rs256, .edDSA] {
            for value: JSONValue in ["AAAA", nil, 1] {
                var json = try Self.json(algorithm)
                json[name] = value
                #expect(throws: JOSEError(.privateKeyRefused)) { try JWK(.object(json)) }
            }
        }
        #expect(throws: JOSEError.self) { try JWK(["kty": "oct", "k": "AAAA"]) }
    }

    @Test("A point that is not on its curve, at infinity or of another curve's length is refused")
    func points() throws {
        let json = try Self.json(.es256)
        let x = try #require(json["x"]?.string.flatMap { Base64URL.decode($0) })
        let y = try #require(json["y"]?.string.flatMap { Base64URL.decode($0) })
        var flipped = y
        flipped[31] ^= 1
        let zero = [UInt8](repeating: 0, count: 32)
        let max = [UInt8](repeating: 0xFF, count: 32)
        for (x, y) in [(x, flipped), (y, x), (zero, zero), (max, max), (x, [0] + y), (x, Array(y.dropLast())), (x, [])]
        {
            var changed = json
            changed["x"] = .string(Base64URL.encode(x))
            changed["y"] = .string(Base64URL.encode(y))
            #expect(throws: JOSEError(.invalidKey)) { try JWK(.object(changed)) }
        }
        for curve in ["P-384", "P-521"] {
            var changed = json
            changed["crv"] = .string(curve)
            #expect(throws: JOSEError(.invalidKey)) { try JWK(.object(changed)) }
        }
        for curve in ["secp256k1", "P-256K", "p-256", "X25519", "Ed25519", "Ed448", ""] {
            var changed = json
            changed["crv"] = .string(curve)
            #expect(throws: JOSEError(.unsupportedKey)) { try JWK(.object(changed)) }
        }
        #expect(throws: JOSEError(.invalidKey)) { try JWK(publicPoint: [4] + x + flipped) }
        #expect(throws: JOSEError(.invalidKey)) { try JWK(publicPoint: [2] + x) }
        #expect(throws: Never.self) { try JWK(publicPoint: [4] + x + y) }
    }

    @Test("An RSA key that is short, huge, even, padded or has a bad exponent is refused")
    func rsa() throws {
        let json = try Self.json(.rs256)
        let n = try #require(json["n"]?.string.flatMap { Base64URL.decode($0) })
        func refused(_ n: [UInt8], _ e: [UInt8], _ code: JOSEError.Code) {
            var changed = json
            changed["n"] = .string(Base64URL.encode(n))
            changed["e"] = .string(Base64URL.encode(e))
            #expect(throws: JOSEError(code)) { try JWK(.object(changed)) }
        }
        let f4: [UInt8] = [1, 0, 1]
        refused(Array(n.prefix(127)) + [1], f4, .weakKey)
        refused([0x7F] + n.dropFirst(), f4, .weakKey)
        refused([0] + n, f4, .invalidKey)
        refused(n.dropLast() + [0], f4, .invalidKey)
        refused([], f4, .invalidKey)
        refused([1] + [UInt8](repeating: 1, count: 1024), f4, .tooLarge)
        var longest = json
        longest["n"] = .string(Base64URL.encode([UInt8](repeating: 0xFF, count: 1024)))
        _ = try JWK(.object(longest))
        for e: [UInt8] in [[], [0], [1], [2], [0, 1, 0, 1], [1, 0, 0, 0, 1], [UInt8](repeating: 0xFF, count: 256)] {
            refused(n, e, .invalidKey)
        }
    }

    @Test(
        "What is not a JWK is refused",
        arguments: [
            "[]", "{}", "1", #"{"kty":1}"#, #"{"kty":"EC","crv":"P-256"}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"AAAA"}"#, #"{"kty":"RSA","n":1,"e":"AQAB"}"#,
        ])
    func malformed(text: String) throws {
        let json = try JSONValue.parse(text)
        #expect(throws: JOSEError.self) { try JWK(json) }
    }

    @Test("Members of the wrong type and a repeated member are refused")
    func memberTypes() throws {
        for name in ["kid", "alg", "use", "key_ops"] {
            for value: JSONValue in [1, [1], nil, .string(String(repeating: "a", count: 1025))] {
                var json = try Self.json(.es256)
                json[name] = value
                #expect(throws: JOSEError(.malformed)) { try JWK(.object(json)) }
            }
        }
        let json = try Self.json(.es256)
        let twice = JSONObject(json.members + [.init(name: "kty", value: "RSA")])
        #expect(throws: JOSEError(.malformed)) { try JWK(.object(twice)) }
    }

    @Test("A key comes back from JSON and from public key info, with one thumbprint", arguments: TestKeys.all)
    func roundTrip(algorithm: SignatureAlgorithm) throws {
        let info = try TestKeys.key(algorithm).publicKeyInfo
        let key = try JWK(publicKeyInfo: info, keyID: "k1", algorithm: algorithm, use: "sig")
        var json = try #require(key.json.object)
        json["key_ops"] = ["verify"]
        json["x5t"] = "dropped"
        let read = try JWK(.object(JSONObject(json.members.reversed())))
        #expect(read.publicKeyInfo == info && read.thumbprint == key.thumbprint)
        #expect(read.keyID == "k1" && read.algorithm == algorithm && read.use == "sig" && read.keyOps == ["verify"])
        #expect(read.json["x5t"] == nil)
        #expect(try JWK(publicKeyInfo: info).thumbprint == key.thumbprint)
    }

    @Test(
        "Public key info that is cut, extended, changed in its frame or of a short key is refused",
        arguments: TestKeys.all)
    func publicKeyInfo(algorithm: SignatureAlgorithm) throws {
        let info = try TestKeys.key(algorithm).publicKeyInfo
        for length in 0..<info.count {
            #expect(throws: JOSEError.self) { try JWK(publicKeyInfo: Array(info.prefix(length))) }
        }
        for index in 0..<12 {
            var changed = info
            changed[index] ^= 1
            #expect(throws: JOSEError.self) { try JWK(publicKeyInfo: changed) }
        }
        #expect(throws: JOSEError.self) { try JWK(publicKeyInfo: info + [0]) }
        #expect(throws: JOSEError(.tooLarge)) { try JWK(publicKeyInfo: [UInt8](repeating: 0x30, count: 5000)) }
    }

    @Test("A set leaves out what it does not understand and keeps the rest in order")
    func set() throws {
        var first = try Self.json(.es256)
        first["kid"] = "a"
        var second = try Self.json(.edDSA)
        second["kid"] = "a"
        var secret = try Self.json(.es256)
        secret["d"] = "AAAA"
        let set = try JWKSet([
            "keys": [
                ["kty": "AKP", "alg": "ML-DSA-65"], .object(first), ["kty": "oct", "k": "AAAA"], .object(secret),
                ["kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"], .object(second), [:],
            ]
        ])
        #expect(set.keys.map(\.keyID) == ["a", "a"])
        #expect(set.candidates(keyID: "a", algorithm: nil).count == 2)
        #expect(set.candidates(keyID: "a", algorithm: .edDSA) == [set.keys[1]])
        #expect(set.candidates(keyID: nil, algorithm: .es256) == [set.keys[0]])
        #expect(set.candidates(keyID: "b", algorithm: .es256).isEmpty)
        #expect(try JWKSet(set.json) == set)
    }

    @Test("Something that is not a set, or a set that is too long, is refused")
    func badSets() throws {
        for json: JSONValue in [[], [:], ["keys": [:]], ["keys": nil], ["keys": ["x"]], ["keys": [nil]]] {
            #expect(throws: JOSEError(.malformed)) { try JWKSet(json) }
        }
        #expect(throws: Never.self) { try JWKSet(["keys": .array([JSONValue](repeating: [:], count: 100))]) }
        #expect(throws: JOSEError(.tooLarge)) {
            try JWKSet(["keys": .array([JSONValue](repeating: [:], count: 101))])
        }
    }
}
