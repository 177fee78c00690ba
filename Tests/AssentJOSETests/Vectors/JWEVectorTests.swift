import AssentCore
import AssentJOSE
import Crypto
import Foundation
import Testing

@Suite("JWE: published examples")
struct JWEVectorTests {
    static func agreementKey(_ d: String) throws -> SoftwareAgreementKey {
        let key = try P256.KeyAgreement.PrivateKey(rawRepresentation: try #require(Base64URL.decode(d)))
        return try SoftwareAgreementKey(privateKey: Secret(bytes: key.derRepresentation))
    }

    @Test("RFC 7518 appendix C: both sides derive the key")
    func concatKDF() async throws {
        let alice = try Self.agreementKey("0_NxaRPUMQoAJt50Gz8YiTr8gRTwyEaCumd-MToTmIo")
        let bob = try Self.agreementKey("VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw")
        for shared in [
            try await alice.sharedSecret(with: bob.publicPoint), try await bob.sharedSecret(with: alice.publicPoint),
        ] {
            let key = ConcatKDF.key(
                shared, algorithm: "A128GCM", apu: Array("Alice".utf8), apv: Array("Bob".utf8), length: 16)
            #expect(Base64URL.encode(key.revealBytes()) == "VqqN6vgjbSBcIijNcacQGg")
        }
    }

    @Test("RFC 7518 appendix B.1: A128CBC-HS256")
    func cbc() throws {
        let key = Secret(bytes: 0..<32)
        let plaintext = Array(
            ("A cipher system must not be required to be secret, and it must be able to fall into the hands of the enemy "
                + "without inconvenience").utf8)
        let iv = try #require(Hex.decode("1af38c2dc2b96ffdd86694092341bc04"))
        let header = Array("The second principle of Auguste Kerckhoffs".utf8)
        let (ciphertext, tag) = try ContentEncryption.a128CBCHS256.seal(
            plaintext, key: key, iv: iv, authenticating: header)
        #expect(
            Hex.encode(ciphertext)
                == "c80edfa32ddf39d5ef00c0b468834279a2e46a1b8049f792f76bfe54b903a9c9a94ac9b47ad2655c5f10f9aef71427e2fc6f"
                + "9b3f399a221489f16362c703233609d45ac69864e3321cf82935ac4096c86e133314c54019e8ca7980dfa4b9cf1b384c486f3a54"
                + "c51078158ee5d79de59fbd34d848b3d69550a67646344427ade54b8851ffb598f7f80074b9473c82e2db")
        #expect(Hex.encode(tag) == "652c3fa36b0a7c5b3219fab3a30bc1c4")
        #expect(
            try ContentEncryption.a128CBCHS256.open(ciphertext, tag: tag, key: key, iv: iv, authenticating: header)
                == plaintext)
    }

    @Test("RFC 7520 §5.5: ECDH-ES with A128CBC-HS256")
    func cookbook() async throws {
        let text =
            "eyJhbGciOiJFQ0RILUVTIiwia2lkIjoibWVyaWFkb2MuYnJhbmR5YnVja0BidWNrbGFuZC5leGFtcGxlIiwiZXBrIjp7Imt0eSI6IkVDIiwi"
            + "Y3J2IjoiUC0yNTYiLCJ4IjoibVBVS1RfYkFXR0hJaGcwVHBqanFWc1AxclhXUXVfdndWT0hIdE5rZFlvQSIsInkiOiI4QlFBc0ltR2VBUzQ2"
            + "ZnlXdzVNaFlmR1RUMElqQnBGdzJTUzM0RHY0SXJzIn0sImVuYyI6IkExMjhDQkMtSFMyNTYifQ..yc9N8v5sYyv3iGQT926IUg."
            + "BoDlwPnTypYq-ivjmQvAYJLb5Q6l-F3LIgQomlz87yW4OPKbWE1zSTEFjDfhU9IPIOSA9Bml4m7iDFwA-1ZXvHteLDtw4R1XRGMEsDIqAYts"
            + "kTTmzmzNa-_q4F_evAPUmwlO-ZG45Mnq4uhM1fm_D9rBtWolqZSF3xGNNkpOMQKF1Cl8i8wjzRli7-IXgyirlKQsbhhqRzkv8IcY6aHl24j0"
            + "3C-AR2le1r7URUhArM79BY8soZU0lzwI-sD5PZ3l4NDCCei9XkoIAfsXJWmySPoeRb2Ni5UZL4mYpvKDiwmyzGd65KqVw7MsFfI_K767G9C9"
            + "Azp73gKZD0DyUn1mn0WW5LmyX_yJ-3AROq8p1WZBfG-ZyJ6195_JGG2m9Csg.WCCkNa-x4BeB9hIDIfFuhg"
        let key = try Self.agreementKey("r_kHyZ-a06rmxM3yESK84r1otSg-aQcVStkRhA-iCM8")
        let sealed = try SealedJWE.parse(text)
        #expect(sealed.keyID == "meriadoc.brandybuck@buckland.example")
        let opened = try await sealed.opened(with: key)
        let plaintext = String(decoding: opened.plaintext, as: UTF8.self)
        #expect(plaintext.hasPrefix("You can trust us to stick with you through thick and thin"))
        #expect(plaintext.hasSuffix("We are your friends, Frodo."))
    }
}
