import AssentCore
import Crypto
import Foundation
import Testing

@testable import AssentVault

@Suite("ECIES as Apple does it")
struct ECIESTests {
    private struct Vector: Decodable {
        let name: String
        let curve: String
        let hash: String
        let variableIV: Bool
        let privateKeyPKCS8DER: Data
        let ciphertext: Data
        let plaintextUTF8: String
    }

    private struct Vectors: Decodable {
        let vectors: [Vector]
    }

    private static let fixtures = ProcessInfo.processInfo.environment["ASSENT_FIXTURES"]

    @Test("opens what Apple's framework sealed", .enabled(if: fixtures != nil, "ASSENT_FIXTURES is not set"))
    func appleVectors() async throws {
        let directory = try #require(Self.fixtures)
        let file = URL(filePath: directory).appending(path: "apple-ecies/vectors.json")
        let vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file)).vectors
        #expect(vectors.count == 3)
        for vector in vectors {
            let iv = vector.variableIV ? "variable" : "zero"
            let form = try #require(ECIESForm.all.first { $0.iv == iv && $0.digest == vector.hash })
            let key = try TestAgreementKey(pkcs8: Array(vector.privateKeyPKCS8DER))
            let sealed = Array(vector.ciphertext)
            #expect(try await form.scheme.open(sealed, with: key) == Secret(vector.plaintextUTF8), "\(vector.name)")
            for other in ECIESForm.all where other.scheme != form.scheme {
                await #expect(throws: ECIES.notOpened) { try await other.scheme.open(sealed, with: key) }
            }
            if vector.hash == "sha256" {
                #expect(try await VendorSealed.open(sealed, with: key) == Secret(vector.plaintextUTF8))
            }
        }
    }

    @Test(
        "agrees with an independent implementation in both directions",
        .enabled(if: PythonECIES.mustRun, "python3-cryptography is not installed"), arguments: ECIESForm.all)
    func independent(_ form: ECIESForm) async throws {
        for key in [TestAgreementKey.p256(), .p384()] {
            for message in [[], Array("a refresh token".utf8), [UInt8](repeating: 0xA5, count: 4_000)] {
                let theirs = try PythonECIES.seal(message, to: key.publicPoint, form)
                #expect(try await form.scheme.open(theirs, with: key) == Secret(bytes: message))
                let ours = try form.scheme.seal(Secret(bytes: message), to: key.publicPoint)
                #expect(try PythonECIES.open(ours, pkcs8: key.pkcs8, form) == message)
            }
        }
    }

    @Test("derives keys as swift-crypto's own X9.63 function does, over more than one block")
    func derivation() throws {
        let shared = try P256.KeyAgreement.PrivateKey()
            .sharedSecretFromKeyAgreement(with: P256.KeyAgreement.PrivateKey().publicKey)
        let secret = shared.withUnsafeBytes { Secret(bytes: $0) }
        let info = Array("shared info".utf8)
        for count in [1, 16, 31, 32, 33, 64, 100] {
            let expected = shared.x963DerivedSymmetricKey(using: SHA256.self, sharedInfo: info, outputByteCount: count)
            let found = X963KDF.bytes(SHA256.self, from: secret, sharedInfo: info, count: count)
            #expect(SymmetricKey(data: found) == expected)
        }
    }

    @Test("seals the same message differently each time, and never shows it", arguments: ECIESForm.all)
    func fresh(_ form: ECIESForm) async throws {
        let key = TestAgreementKey.p256()
        let message = Secret("only for you")
        let (one, two) = (
            try form.scheme.seal(message, to: key.publicPoint), try form.scheme.seal(message, to: key.publicPoint)
        )
        #expect(one.count == 65 + 12 + 16)
        #expect(one.prefix(65) != two.prefix(65))
        #expect(one.dropFirst(65) != two.dropFirst(65))
        #expect(try await form.scheme.open(one, with: key) == message)
        #expect(try await form.scheme.open(two, with: key) == message)
    }

    @Test("opens nothing in which one bit was flipped", arguments: ECIESForm.all)
    func flippedBits(_ form: ECIESForm) async throws {
        let key = TestAgreementKey.p256()
        let sealed = try form.scheme.seal(Secret("value"), to: key.publicPoint)
        for bit in 0..<(sealed.count * 8) {
            var changed = sealed
            changed[bit / 8] ^= 1 << (bit % 8)
            await #expect(throws: ECIES.notOpened, "bit \(bit)") { try await form.scheme.open(changed, with: key) }
        }
    }

    @Test("opens nothing that was cut off or has something behind it", arguments: ECIESForm.all)
    func truncated(_ form: ECIESForm) async throws {
        for key in [TestAgreementKey.p256(), .p384()] {
            let sealed = try form.scheme.seal(Secret("value"), to: key.publicPoint)
            for length in 0..<sealed.count {
                await #expect(throws: ECIES.notOpened, "\(length) bytes") {
                    try await form.scheme.open(Array(sealed.prefix(length)), with: key)
                }
            }
            await #expect(throws: ECIES.notOpened) { try await form.scheme.open(sealed + [0], with: key) }
            await #expect(throws: ECIES.notOpened) { try await form.scheme.open(sealed + sealed, with: key) }
        }
    }

    @Test("opens nothing for another key, on the same curve or on another")
    func otherKey() async throws {
        let scheme = ECIES.cofactorVariableIVX963SHA256AESGCM
        let sealed = try scheme.seal(Secret("value"), to: TestAgreementKey.p256().publicPoint)
        for key in [TestAgreementKey.p256(), .p384()] {
            await #expect(throws: ECIES.notOpened) { try await scheme.open(sealed, with: key) }
        }
    }

    /// Points that are none: off the curve, out of the field, compressed, hybrid, infinity, of other lengths.
    private static func badPoints(_ good: [UInt8]) -> [String: [UInt8]] {
        let half = (good.count - 1) / 2
        let (x, y) = (good[1...half], good[(half + 1)...])
        var off = good
        off[good.count - 1] ^= 1
        let parity: UInt8 = y.last.map { $0 & 1 } ?? 0
        return [
            "off the curve": off,
            "infinity": [0],
            "infinity, padded": [UInt8](repeating: 0, count: good.count),
            "zero coordinates": [4] + [UInt8](repeating: 0, count: 2 * half),
            "coordinates beyond the field": [4] + [UInt8](repeating: 0xFF, count: 2 * half),
            "compressed": [2 + parity] + Array(x),
            "hybrid": [6 + parity] + Array(x + y),
            "raw": Array(x + y),
            "of another curve's length": [4] + [UInt8](repeating: 1, count: 132),
            "empty": [],
        ]
    }

    @Test("never gives an invalid point to the key, whose device might answer")
    func badEphemeralPoints() async throws {
        for key in [TestAgreementKey.p256(), .p384()] {
            for form in ECIESForm.all {
                let sealed = try form.scheme.seal(Secret("value"), to: key.publicPoint)
                let length = key.publicPoint.count
                for (name, point) in Self.badPoints(Array(sealed.prefix(length))) {
                    await #expect(throws: ECIES.notOpened, "\(name)") {
                        try await form.scheme.open(point + sealed.dropFirst(length), with: key)
                    }
                }
            }
            #expect(key.uses.withLock { $0 } == 0)
        }
    }

    @Test("does not seal for an invalid key")
    func badRecipients() async throws {
        for key in [TestAgreementKey.p256(), .p384()] {
            for (name, point) in Self.badPoints(key.publicPoint) {
                let code = await code {
                    _ = try ECIES.cofactorVariableIVX963SHA256AESGCM.seal(Secret("value"), to: point)
                }
                #expect(code == .invalidInput, "\(name)")
            }
        }
    }

    @Test("has a limit in both directions, which it reaches")
    func limits() async throws {
        let scheme = ECIES.cofactorVariableIVX963SHA256AESGCM
        let key = TestAgreementKey.p256()
        let largest = Secret(bytes: [UInt8](repeating: 7, count: ECIES.byteLimit))
        let sealed = try scheme.seal(largest, to: key.publicPoint)
        #expect(try await scheme.open(sealed, with: key) == largest)
        let larger = Secret(bytes: [UInt8](repeating: 7, count: ECIES.byteLimit + 1))
        #expect(await code { _ = try scheme.seal(larger, to: key.publicPoint) } == .invalidInput)
        #expect(await code { _ = try await scheme.open(sealed + [0], with: key) } == .invalidInput)
    }

    @Test("passes on what the key's device complains about, and trusts no answer of another length")
    func device() async throws {
        struct Device: KeyAgreementKey {
            let publicPoint: [UInt8]
            let answer: Result<Secret, SecretStoreError>
            func sharedSecret(with peer: [UInt8]) async throws -> Secret { try answer.get() }
        }
        let key = TestAgreementKey.p256()
        let scheme = ECIES.cofactorVariableIVX963SHA256AESGCM
        let sealed = try scheme.seal(Secret("value"), to: key.publicPoint)
        let removed = Device(
            publicPoint: key.publicPoint, answer: .failure(SecretStoreError(.keyUnavailable, "The token was removed.")))
        for open in [scheme.open, VendorSealed.open] {
            await #expect(throws: SecretStoreError(.keyUnavailable, "")) { try await open(sealed, removed) }
        }
        for length in [0, 31, 33, 64] {
            let odd = Device(
                publicPoint: key.publicPoint, answer: .success(Secret(bytes: [UInt8](repeating: 0, count: length))))
            await #expect(throws: SecretStoreError(.wrongKey, "")) { try await scheme.open(sealed, with: odd) }
        }
    }
}

@Suite("What the vendors' iOS SDKs sealed")
struct VendorSealedTests {
    @Test("is opened in the form that they write now and in the old one, and goes back in the new one")
    func bothForms() async throws {
        let key = TestAgreementKey.p256()
        let session = Secret(#"{"value":"AQIC…","successUrl":"/console","realm":"/alpha"}"#)
        for scheme in [ECIES.cofactorVariableIVX963SHA256AESGCM, .cofactorX963SHA256AESGCM] {
            #expect(try await VendorSealed.open(scheme.seal(session, to: key.publicPoint), with: key) == session)
        }
        let exported = try VendorSealed.seal(session, to: key.publicPoint)
        #expect(try await ECIES.cofactorVariableIVX963SHA256AESGCM.open(exported, with: key) == session)
    }

    @Test("is never returned as it is when it cannot be opened")
    func plaintextOrForeign() async throws {
        let key = TestAgreementKey.p256()
        let foreign = try VendorSealed.seal(Secret("value"), to: TestAgreementKey.p256().publicPoint)
        let otherHash = try ECIES.cofactorVariableIVX963SHA384AESGCM.seal(Secret("value"), to: key.publicPoint)
        for value in [[], Array("an SSO token that was stored in plaintext".utf8), foreign, otherHash] {
            await #expect(throws: ECIES.notOpened) { try await VendorSealed.open(value, with: key) }
        }
    }
}
