import AssentCore
import AssentJOSE
import Crypto
import CryptoExtras
import Foundation
import Testing

/// Debian's `jose` (latchset) as a second opinion, in both directions.
@Suite("JOSE against the jose program", .enabled(if: Program.jose.mustRun, "jose is not installed"))
struct JoseProgramTests {
    static let payload = "a message for the other side"

    private static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    @Test(
        "jose verifies what is signed here, and not when it was changed",
        arguments: [SignatureAlgorithm.es256, .es384, .es512, .rs256, .ps256])
    func theyVerify(algorithm: SignatureAlgorithm) async throws {
        let work = try Workspace()
        let key = try TestKeys.key(algorithm)
        try work.write("key.jwk", JWK(publicKeyInfo: key.publicKeyInfo, algorithm: algorithm).json.serializedBytes())
        let message = try await JWS.sign(
            Array(Self.payload.utf8), header: JSONObject(header: ("typ", "JWT"), ("kid", "k")), with: key)
        try work.write("message", message)
        #expect(try work.jose("jws", "ver", "-i", "message", "-k", "key.jwk", "-O", "-") == Array(Self.payload.utf8))
        var changed = try CompactParts(message)
        changed.parts[1][0] ^= 1
        try work.write("changed", changed.text)
        #expect(try work.jose("jws", "ver", "-i", "changed", "-k", "key.jwk", "-O", "-") == nil)
    }

    @Test("What jose signs is good here", arguments: [SignatureAlgorithm.es256, .es384, .es512, .rs256, .ps256])
    func theySign(algorithm: SignatureAlgorithm) throws {
        let work = try Workspace()
        try work.write("payload", Self.payload)
        try #require(try work.jose("jwk", "gen", "-i", #"{"alg":"\#(algorithm)"}"#, "-o", "key.jwk") != nil)
        let pub = try #require(try work.jose("jwk", "pub", "-i", "key.jwk", "-o", "-"))
        let jwk = try JWK(JSONValue.parse(pub))
        let text = Self.text(
            try #require(
                try work.jose(
                    "jws", "sig", "-I", "payload", "-k", "key.jwk", "-c", "-s", #"{"protected":{"kid":"x"}}"#)))
        let message = try UnverifiedJWS.parse(text).verified(with: jwk, algorithms: [algorithm])
        #expect(message.payload == Array(Self.payload.utf8) && message.keyID == "x")

        try work.write("pub.jwk", pub)
        let thumbprint = try #require(try work.jose("jwk", "thp", "-i", "pub.jwk", "-a", "S256"))
        #expect(jwk.thumbprint == Self.text(thumbprint))
    }

    @Test("HS256 in both directions")
    func hmac() async throws {
        let work = try Workspace()
        let secret = SystemRandom().bytes(32)
        try work.write("key.jwk", #"{"kty":"oct","alg":"HS256","k":"\#(Base64URL.encode(secret))"}"#)
        try work.write("payload", Self.payload)
        let theirs = Self.text(
            try #require(try work.jose("jws", "sig", "-I", "payload", "-k", "key.jwk", "-c")))
        let message = try UnverifiedJWS.parse(theirs).verified(hmacKey: Secret(bytes: secret))
        #expect(message.payload == Array(Self.payload.utf8))
        try work.write(
            "message", try await JWS.sign(Array(Self.payload.utf8), with: HMACSigningKey(Secret(bytes: secret))))
        #expect(try work.jose("jws", "ver", "-i", "message", "-k", "key.jwk", "-O", "-") == Array(Self.payload.utf8))
    }

    @Test(
        "ECDH-ES and ECDH-ES+A256KW in both directions", arguments: [KeyManagement.ecdhES, .ecdhESA256KW],
        JWETests.encryptions)
    func agreement(algorithm: KeyManagement, encryption: ContentEncryption) async throws {
        let work = try Workspace()
        let secret = P256.KeyAgreement.PrivateKey()
        let key = try SoftwareAgreementKey(privateKey: Secret(bytes: secret.derRepresentation))
        let pub = try JWK(publicPoint: key.publicPoint, use: nil)
        var json = try #require(pub.json.object)
        try work.write("pub.jwk", pub.json.serializedBytes())
        json["d"] = .string(Base64URL.encode(Array(secret.rawRepresentation)))
        try work.write("key.jwk", JSONValue.object(json).serializedBytes())
        try work.write("payload", Self.payload)

        let template = #"{"protected":{"alg":"\#(algorithm)","enc":"\#(encryption)","apu":"QWxpY2U","apv":"Qm9i"}}"#
        let theirs = try work.jose("jwe", "enc", "-I", "payload", "-k", "pub.jwk", "-c", "-i", template)
        let opened = try await SealedJWE.parse(Self.text(try #require(theirs))).opened(with: key)
        #expect(opened.plaintext == Array(Self.payload.utf8))

        let header = JSONObject(header: ("apu", "QWxpY2U"), ("apv", "Qm9i"))
        let ours = try JWE.encrypt(
            Array(Self.payload.utf8), to: pub, algorithm: algorithm, encryption: encryption, header: header)
        try work.write("message", ours)
        #expect(try work.jose("jwe", "dec", "-i", "message", "-k", "key.jwk", "-O", "-") == Array(Self.payload.utf8))
    }

    @Test("dir in both directions", arguments: JWETests.encryptions)
    func direct(encryption: ContentEncryption) throws {
        let work = try Workspace()
        let secret = SystemRandom().bytes(encryption == .a128GCM ? 16 : 32)
        try work.write("key.jwk", #"{"kty":"oct","k":"\#(Base64URL.encode(secret))"}"#)
        try work.write("payload", Self.payload)
        let template = #"{"protected":{"alg":"dir","enc":"\#(encryption)"}}"#
        let theirs = try work.jose("jwe", "enc", "-I", "payload", "-k", "key.jwk", "-c", "-i", template)
        let opened = try SealedJWE.parse(Self.text(try #require(theirs))).opened(with: Secret(bytes: secret))
        #expect(opened.plaintext == Array(Self.payload.utf8))
        try work.write(
            "message",
            try JWE.encrypt(Array(Self.payload.utf8), with: Secret(bytes: secret), encryption: encryption))
        #expect(try work.jose("jwe", "dec", "-i", "message", "-k", "key.jwk", "-O", "-") == Array(Self.payload.utf8))
    }
}

/// jose 11 has no RSA-OAEP-256; OpenSSL takes the part that is RSA's.
@Suite("RSA-OAEP-256 against openssl", .enabled(if: Program.openssl.mustRun, "openssl is not installed"))
struct OpenSSLTests {
    static let padding = ["-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha256"]

    @Test("openssl finds the content key of a message, and a message around its ciphertext opens")
    func oaep() async throws {
        let work = try Workspace()
        let key = try TestKeys.transport.get()
        try work.write("key.der", key.privateKey.revealBytes())
        let pub = try JWK(publicKeyInfo: key.publicKeyInfo)
        let whole = try CompactParts(JWE.encrypt(Array("secret".utf8), to: pub, algorithm: .rsaOAEP256))
        try work.write("encrypted", whole.parts[1])
        let base = ["pkeyutl", "-inkey", "key.der", "-keyform", "DER"] + Self.padding
        let contentKey = try #require(
            try Program.openssl.run(base + ["-decrypt", "-in", "encrypted"], in: work.url))
        let opened = try ContentEncryption.a256GCM.open(
            whole.parts[3], tag: whole.parts[4], key: Secret(bytes: contentKey), iv: whole.parts[2],
            authenticating: Array(Base64URL.encode(whole.parts[0]).utf8))
        #expect(opened == Array("secret".utf8))

        try work.write("contentKey", contentKey)
        var theirs = whole
        theirs.parts[1] = try #require(
            try Program.openssl.run(base + ["-encrypt", "-in", "contentKey"], in: work.url))
        #expect(theirs.parts[1] != whole.parts[1])
        #expect(try await SealedJWE.parse(theirs.text).opened(with: key).plaintext == Array("secret".utf8))
    }
}
