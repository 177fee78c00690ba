import AssentCore
import AssentJOSE
import Foundation
import Testing

@Suite("Software signing keys")
struct SoftwareSigningKeyTests {
    static let algorithms: [SignatureAlgorithm] = [.es256, .es384, .es512, .rs256, .ps256, .edDSA]

    @Test("A new key signs what its public key verifies, also after it was kept as PKCS#8", arguments: algorithms)
    func roundTrip(algorithm: SignatureAlgorithm) async throws {
        let key = try SoftwareSigningKey.generate(algorithm, rsaBits: 2048)
        let kept = try SoftwareSigningKey(algorithm: algorithm, privateKey: key.privateKey)
        #expect(kept.publicKeyInfo == key.publicKeyInfo)
        let text = try await JWS.sign(
            Array("content".utf8), header: JSONObject([.init(name: "kid", value: "k")]), with: kept)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo, keyID: "k", algorithm: algorithm)
        let message = try UnverifiedJWS.parse(text).verified(with: jwk, algorithms: [algorithm])
        #expect(message.payload == Array("content".utf8))
        #expect(message.keyID == "k")
        #expect(try JWK(jwk.json) == jwk)
    }

    @Test("A key is not taken for another algorithm's", arguments: algorithms, algorithms)
    func wrongAlgorithm(made: SignatureAlgorithm, taken: SignatureAlgorithm) throws {
        let rsa: Set<SignatureAlgorithm> = [.rs256, .ps256]
        let key = try SoftwareSigningKey.generate(made, rsaBits: 2048).privateKey
        if made == taken || rsa.isSuperset(of: [made, taken]) {
            #expect(throws: Never.self) { try SoftwareSigningKey(algorithm: taken, privateKey: key) }
        } else {
            #expect(throws: JOSEError(.invalidKey)) { try SoftwareSigningKey(algorithm: taken, privateKey: key) }
        }
    }

    @Test("A short RSA key is neither made nor taken")
    func shortRSA() {
        #expect(throws: JOSEError(.weakKey)) { try SoftwareSigningKey.generate(.rs256, rsaBits: 1024) }
        #expect(throws: JOSEError(.tooLarge)) { try SoftwareSigningKey.generate(.rs256, rsaBits: 8200) }
    }

    @Test("HMAC and unknown algorithms have no software key pair", arguments: ["HS256", "none", "RS512", ""])
    func unsupported(name: String) {
        let algorithm = SignatureAlgorithm(rawValue: name)
        #expect(throws: JOSEError(.unsupportedAlgorithm)) { try SoftwareSigningKey.generate(algorithm) }
        #expect(throws: JOSEError(.unsupportedAlgorithm)) {
            try SoftwareSigningKey(algorithm: algorithm, privateKey: Secret("x"))
        }
    }

    @Test("An HMAC key of less than 32 bytes is refused")
    func shortHMAC() async throws {
        #expect(throws: JOSEError(.weakKey)) { try HMACSigningKey(Secret(bytes: Array(repeating: 7, count: 31))) }
        let key = try HMACSigningKey(Secret(bytes: Array(repeating: 7, count: 32)))
        let text = try await JWS.sign([1], with: key)
        #expect(throws: JOSEError(.weakKey)) { try UnverifiedJWS.parse(text).verified(hmacKey: Secret("short")) }
    }

    @Test("Nothing of a private key shows in its description or dump")
    func redaction() throws {
        let key = try SoftwareSigningKey.generate(.es256)
        var text = "\(key) \(String(reflecting: key))"
        dump(key, to: &text)
        let agreement = SoftwareAgreementKey.generate()
        text += "\(agreement)"
        dump(agreement, to: &text)
        #expect(!text.contains("PrivateKey") && !text.contains("backing") && text.utf8.count < 400)
    }
}
