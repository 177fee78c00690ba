import AssentCore
import AssentJOSE
import Testing

@Suite("JWS: tampering")
struct JWSTamperingTests {
    @Test("No message with one bit changed is good", arguments: TestKeys.all)
    func bitFlips(algorithm: SignatureAlgorithm) async throws {
        let key = try TestKeys.key(algorithm)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo)
        let text = try await JWS.sign(Array("pay 10 to Bob".utf8), header: JSONObject(header: ("kid", "a")), with: key)
        #expect(throws: Never.self) { try UnverifiedJWS.parse(text).verified(with: jwk, algorithms: [algorithm]) }
        let whole = try CompactParts(text)
        for part in 0..<3 {
            for index in whole.parts[part].indices {
                var changed = whole
                changed.parts[part][index] ^= 1 << UInt8.random(in: 0..<8)
                #expect(throws: JOSEError.self) {
                    try UnverifiedJWS.parse(changed.text).verified(with: jwk, algorithms: Set(TestKeys.all))
                }
            }
        }
    }

    @Test("No HS256 message with one bit changed is good")
    func hmacBitFlips() async throws {
        let secret = Secret(bytes: SystemRandom().bytes(32))
        let whole = try CompactParts(try await JWS.sign(Array("pay 10".utf8), with: HMACSigningKey(secret)))
        for part in 0..<3 {
            for index in whole.parts[part].indices {
                for bit in 0..<8 {
                    var changed = whole
                    changed.parts[part][index] ^= 1 << UInt8(bit)
                    #expect(throws: JOSEError.self) {
                        try UnverifiedJWS.parse(changed.text).verified(hmacKey: secret)
                    }
                }
            }
        }
        #expect(throws: JOSEError(.invalidSignature)) {
            try UnverifiedJWS.parse(whole.text).verified(hmacKey: Secret(bytes: SystemRandom().bytes(32)))
        }
    }

    @Test(
        "No beginning of a message and no longer message is good",
        arguments: [SignatureAlgorithm.es256, .edDSA, .rs256])
    func truncation(algorithm: SignatureAlgorithm) async throws {
        let key = try TestKeys.key(algorithm)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo)
        let text = try await JWS.sign(Array("payload".utf8), with: key)
        for length in 0..<text.utf8.count {
            #expect(throws: JOSEError.self) {
                try UnverifiedJWS.parse(String(text.prefix(length))).verified(with: jwk, algorithms: [algorithm])
            }
        }
        for suffix in ["A", "AA", "AAAA", ".", ".AA", "=", "\n", " ", "\0"] {
            #expect(throws: JOSEError.self) {
                try UnverifiedJWS.parse(text + suffix).verified(with: jwk, algorithms: [algorithm])
            }
        }
    }

    @Test("Each part has one spelling: padding, other alphabets and spare bits are refused")
    func nonCanonical() async throws {
        let key = try TestKeys.key(.es256)
        let text = try await JWS.sign([0xFB, 0xFF, 0xFE, 0x01], with: key)
        let parts = text.split(separator: ".").map(String.init)
        #expect(parts[1] == "-__-AQ")
        for payload in ["-__-AQ==", "+//+AQ", "-__-AR", "-__-A", "-__ -AQ", "-__-AQ\n"] {
            #expect(throws: JOSEError(.malformed)) {
                try UnverifiedJWS.parse("\(parts[0]).\(payload).\(parts[2])")
            }
        }
        // 64 bytes leave four spare bits in the last character.
        #expect(throws: JOSEError(.malformed)) {
            let other = parts[2].dropLast() + (parts[2].hasSuffix("A") ? "B" : parts[2].hasSuffix("Q") ? "R" : "h")
            return try UnverifiedJWS.parse("\(parts[0]).\(parts[1]).\(other)")
        }
    }

    @Test("r and s of 0, of the group's order, in DER, or of another length are refused")
    func ecdsaForms() async throws {
        let key = try TestKeys.key(.es256)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo)
        let whole = try CompactParts(try await JWS.sign([1, 2, 3], with: key))
        let good = whole.parts[2]
        let order = try #require(Hex.decode("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"))
        let zero = [UInt8](repeating: 0, count: 32)
        let (r, s) = (Array(good[..<32]), Array(good[32...]))
        func der(_ value: [UInt8]) -> [UInt8] { [2, 33, 0] + value }
        let forms: [[UInt8]] = [
            [], zero + zero, zero + s, r + zero, order + s, r + order, order + order, good + [0], [0] + good,
            Array(good.dropLast()), Array(good.dropFirst()), [0x30, 70] + der(r) + der(s), s + r,
            [UInt8](repeating: 0xFF, count: 64), zero + r + zero + s,
        ]
        for form in forms {
            var changed = whole
            changed.parts[2] = form
            #expect(throws: JOSEError(.invalidSignature)) {
                try UnverifiedJWS.parse(changed.text).verified(with: jwk, algorithms: [.es256])
            }
        }
    }

    @Test("Another key's signature is not good, nor is that of another message", arguments: TestKeys.all)
    func otherKey(algorithm: SignatureAlgorithm) async throws {
        let one = try SoftwareSigningKey.generate(algorithm, rsaBits: 2048)
        let other = try TestKeys.key(algorithm)
        let text = try await JWS.sign([1], with: one)
        let jwk = try JWK(publicKeyInfo: other.publicKeyInfo)
        #expect(throws: JOSEError(.invalidSignature)) {
            try UnverifiedJWS.parse(text).verified(with: jwk, algorithms: [algorithm])
        }
        var swapped = try CompactParts(text)
        swapped.parts[2] = try CompactParts(try await JWS.sign([2], with: one)).parts[2]
        let own = try JWK(publicKeyInfo: one.publicKeyInfo)
        #expect(throws: JOSEError(.invalidSignature)) {
            try UnverifiedJWS.parse(swapped.text).verified(with: own, algorithms: [algorithm])
        }
    }

    @Test("A message past the limit is refused before anything is decoded")
    func oversized() async throws {
        let key = try TestKeys.key(.es256)
        let text = try await JWS.sign([UInt8](repeating: 1, count: 48 << 10), with: key)
        #expect(throws: JOSEError(.tooLarge)) { try UnverifiedJWS.parse(text) }
        #expect(throws: Never.self) { try UnverifiedJWS.parse(text, limit: 1 << 20) }
        let small = try await JWS.sign([1], with: key)
        #expect(throws: Never.self) { try UnverifiedJWS.parse(small, limit: small.utf8.count) }
        #expect(throws: JOSEError(.tooLarge)) { try UnverifiedJWS.parse(small, limit: small.utf8.count - 1) }
    }

    @Test(
        "Text with other than three parts is refused",
        arguments: ["", ".", "..", "...", "a", "e30.e30", "e30.e30.e30.e30", "e30.e30.e30.e30.e30"])
    func parts(text: String) {
        #expect(throws: JOSEError(.malformed)) { try UnverifiedJWS.parse(text) }
    }
}
