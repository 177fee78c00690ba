import AssentCore
import AssentJOSE
import Testing

@Suite("JWE")
struct JWETests {
    static let encryptions: [ContentEncryption] = [.a128GCM, .a256GCM, .a128CBCHS256]
    static let plaintext = Array("who goes there".utf8)
    static let agreement = SoftwareAgreementKey.generate()

    static func directKey(_ encryption: ContentEncryption) -> Secret {
        Secret(bytes: [UInt8](repeating: 3, count: encryption == .a128GCM ? 16 : 32))
    }

    enum Way: String, Sendable, CaseIterable { case agree, wrap, transport, direct }

    static func seal(
        _ way: Way, _ encryption: ContentEncryption, header: JSONObject = JSONObject(),
        plaintext: [UInt8] = plaintext
    ) throws -> String {
        switch way {
        case .agree, .wrap:
            try JWE.encrypt(
                plaintext, to: JWK(publicPoint: agreement.publicPoint, keyID: "e"),
                algorithm: way == .agree ? .ecdhES : .ecdhESA256KW, encryption: encryption, header: header)
        case .transport:
            try JWE.encrypt(
                plaintext, to: JWK(publicKeyInfo: TestKeys.transport.get().publicKeyInfo), algorithm: .rsaOAEP256,
                encryption: encryption, header: header)
        case .direct:
            try JWE.encrypt(plaintext, with: directKey(encryption), encryption: encryption, header: header)
        }
    }

    static func open(_ text: String, _ way: Way, _ encryption: ContentEncryption) async throws -> OpenedJWE {
        let sealed = try SealedJWE.parse(text)
        return switch way {
        case .agree, .wrap: try await sealed.opened(with: agreement)
        case .transport: try await sealed.opened(with: TestKeys.transport.get())
        case .direct: try sealed.opened(with: directKey(encryption))
        }
    }

    @Test("What is encrypted is decrypted, and twice gives two texts", arguments: Way.allCases, encryptions)
    func roundTrip(way: Way, encryption: ContentEncryption) async throws {
        let header = JSONObject(header: ("typ", "x+jwt"), ("apu", "QWxpY2U"), ("apv", "Qm9i"))
        for length in [0, 1, 15, 16, 17, 4096] {
            let plaintext = SystemRandom().bytes(length)
            let text = try Self.seal(way, encryption, header: header, plaintext: plaintext)
            let opened = try await Self.open(text, way, encryption)
            #expect(opened.plaintext == plaintext && opened.type == "x+jwt")
            #expect(try text != Self.seal(way, encryption, header: header, plaintext: plaintext))
        }
        #expect(try SealedJWE.parse(Self.seal(.agree, encryption)).keyID == "e")
    }

    @Test("No message with one bit changed opens", arguments: Way.allCases, encryptions)
    func bitFlips(way: Way, encryption: ContentEncryption) async throws {
        let whole = try CompactParts(Self.seal(way, encryption, header: JSONObject(header: ("apu", "QWxpY2U"))))
        for part in 0..<5 {
            for index in whole.parts[part].indices {
                // RSA decryption is slow, and its block has 256 bytes.
                if way == .transport, part == 1, !index.isMultiple(of: 16) { continue }
                var changed = whole
                changed.parts[part][index] ^= 1 << UInt8.random(in: 0..<8)
                await #expect(throws: JOSEError.self) { try await Self.open(changed.text, way, encryption) }
            }
        }
    }

    @Test("No beginning of a message opens", arguments: Way.allCases)
    func truncation(way: Way) async throws {
        let text = try Self.seal(way, .a256GCM)
        for length in 0..<text.utf8.count where way != .transport || length.isMultiple(of: 7) {
            await #expect(throws: JOSEError.self) {
                try await Self.open(String(text.prefix(length)), way, .a256GCM)
            }
        }
        for suffix in [".", "=", "AAAA", "\n"] {
            await #expect(throws: JOSEError.self) { try await Self.open(text + suffix, way, .a256GCM) }
        }
    }

    @Test("A wrong key and a wrong part give the same answer", arguments: encryptions)
    func uniformFailure(encryption: ContentEncryption) async throws {
        for way in [Way.agree, .wrap] {
            let sealed = try SealedJWE.parse(Self.seal(way, encryption))
            await #expect(throws: JOSEError(.decryptionFailed)) {
                try await sealed.opened(with: SoftwareAgreementKey.generate())
            }
        }
        for (way, part) in [
            (Way.wrap, 1), (.wrap, 3), (.wrap, 4), (.direct, 2), (.direct, 3), (.direct, 4), (.transport, 1),
        ] {
            var changed = try CompactParts(Self.seal(way, encryption))
            changed.parts[part][3] ^= 0x10
            await #expect(throws: JOSEError(.decryptionFailed)) { try await Self.open(changed.text, way, encryption) }
        }
        let other = Secret(bytes: [UInt8](repeating: 4, count: encryption == .a128GCM ? 16 : 32))
        #expect(throws: JOSEError(.decryptionFailed)) {
            try SealedJWE.parse(Self.seal(.direct, encryption)).opened(with: other)
        }
        #expect(throws: JOSEError(.decryptionFailed)) {
            try SealedJWE.parse(Self.seal(.direct, encryption)).opened(with: Secret("short"))
        }
    }

    @Test("A short tag, a wrong initialization vector and a key where none may be are refused")
    func shapes() throws {
        for way in Way.allCases {
            let whole = try CompactParts(Self.seal(way, .a256GCM))
            for (part, value) in [(4, Array(whole.parts[4].prefix(12))), (4, []), (2, []), (2, whole.parts[2] + [0])] {
                var changed = whole
                changed.parts[part] = value
                #expect(throws: JOSEError(.malformed)) { try SealedJWE.parse(changed.text) }
            }
            var changed = whole
            changed.parts[1] = whole.parts[1].isEmpty ? [1] : []
            #expect(throws: JOSEError(.malformed)) { try SealedJWE.parse(changed.text) }
        }
    }

    @Test("A sender's key that is off the curve, on another, private or absent is refused")
    func ephemeralKeys() async throws {
        let whole = try CompactParts(Self.seal(.agree, .a256GCM))
        let good = try #require(JSONValue.parse(whole.parts[0])["epk"]?.object)
        let p384 = try JWK(publicKeyInfo: TestKeys.key(.es384).publicKeyInfo).json
        var off = good
        off["y"] = good["x"]
        var zero = good
        zero["x"] = .string(Base64URL.encode([UInt8](repeating: 0, count: 32)))
        zero["y"] = zero["x"]
        var secret = good
        secret["d"] = "AAAA"
        let cases: [(JSONValue?, JOSEError.Code)] = [
            (.object(off), .invalidKey), (.object(zero), .invalidKey), (p384, .invalidKey),
            (.object(secret), .privateKeyRefused), (nil, .malformed), ("x", .malformed), ([:], .malformed),
        ]
        for (epk, code) in cases {
            let text = try whole.withHeader { $0["epk"] = epk }
            await #expect(throws: JOSEError(code)) { try await SealedJWE.parse(text).opened(with: Self.agreement) }
        }
        await #expect(throws: JOSEError(.invalidKey)) {
            try await Self.agreement.sharedSecret(with: [4] + [UInt8](repeating: 1, count: 64))
        }
    }

    @Test(
        "Compression, extensions and other algorithms are refused",
        arguments: [
            ("zip", "DEF", JOSEError(.unsupportedExtension)), ("crit", ["exp"], JOSEError(.unsupportedExtension)),
            ("alg", "RSA1_5", JOSEError(.unsupportedAlgorithm)), ("alg", "RSA-OAEP", JOSEError(.unsupportedAlgorithm)),
            ("alg", "PBES2-HS256+A128KW", JOSEError(.unsupportedAlgorithm)),
            ("alg", "none", JOSEError(.unsupportedAlgorithm)),
            ("alg", 1, JOSEError(.malformed)), ("enc", "A192GCM", JOSEError(.unsupportedAlgorithm)),
            ("enc", nil, JOSEError(.unsupportedAlgorithm)), ("enc", 1, JOSEError(.unsupportedAlgorithm)),
            ("kid", 1, JOSEError(.malformed)),
        ] as [(String, JSONValue?, JOSEError)])
    func headers(name: String, value: JSONValue?, error: JOSEError) throws {
        let text = try CompactParts(Self.seal(.agree, .a256GCM)).withHeader { $0[name] = value }
        #expect(throws: error) { try SealedJWE.parse(text) }
    }

    @Test("A message is opened only in the way of its algorithm")
    func wrongWay() async throws {
        let sealed = try SealedJWE.parse(Self.seal(.agree, .a256GCM))
        await #expect(throws: JOSEError(.algorithmNotAllowed)) {
            try await sealed.opened(with: TestKeys.transport.get())
        }
        #expect(throws: JOSEError(.algorithmNotAllowed)) { try sealed.opened(with: Self.directKey(.a256GCM)) }
        let direct = try SealedJWE.parse(Self.seal(.direct, .a256GCM))
        await #expect(throws: JOSEError(.algorithmNotAllowed)) { try await direct.opened(with: Self.agreement) }
    }

    @Test("Nothing is encrypted to a key that is not for it")
    func wrongRecipients() throws {
        let signing = try JWK(publicKeyInfo: TestKeys.key(.es256).publicKeyInfo, use: "sig")
        let rsa = try JWK(publicKeyInfo: TestKeys.transport.get().publicKeyInfo)
        let p384 = try JWK(publicKeyInfo: TestKeys.key(.es384).publicKeyInfo)
        let bound = try JWK(publicKeyInfo: rsa.publicKeyInfo, algorithm: .rs256)
        let recipients: [(JWK, KeyManagement)] = [
            (signing, .ecdhES), (rsa, .ecdhES), (p384, .ecdhES), (p384, .rsaOAEP256), (bound, .rsaOAEP256), (rsa, .dir),
        ]
        for (key, algorithm) in recipients {
            #expect(throws: JOSEError(.algorithmMismatch)) { try JWE.encrypt([1], to: key, algorithm: algorithm) }
        }
        #expect(throws: JOSEError(.unsupportedAlgorithm)) {
            try JWE.encrypt([1], to: rsa, algorithm: KeyManagement(rawValue: "RSA1_5"))
        }
        #expect(throws: JOSEError(.invalidKey)) { try JWE.encrypt([1], with: Secret("short")) }
        for name in ["alg", "enc", "epk", "zip", "crit", "p2c"] {
            #expect(throws: JOSEError(.malformed)) {
                try JWE.encrypt([1], with: Self.directKey(.a256GCM), header: JSONObject(header: (name, "DEF")))
            }
        }
    }

    @Test("A message past the limit, or of other than five parts, is refused")
    func bounds() throws {
        let text = try Self.seal(.direct, .a256GCM)
        #expect(throws: JOSEError(.tooLarge)) { try SealedJWE.parse(text, limit: text.utf8.count - 1) }
        for text in ["", "....", ".....", "a.b.c", text + ".AAAA"] {
            #expect(throws: JOSEError(.malformed)) { try SealedJWE.parse(text) }
        }
    }
}
