public import AssentCore
import Crypto
import CryptoExtras
import Foundation

/// Encrypting in the compact form of RFC 7516.
public enum JWE {
    /// Header members that are never the caller's to set.
    private static let reserved = ["alg", "enc", "epk", "crit", "zip", "iv", "tag", "p2s", "p2c"]

    /// Encrypts to the holder of a private key.
    ///
    /// - Parameters:
    ///   - plaintext: the content.
    ///   - recipient: their public key; its `kid` goes into the header.
    ///   - algorithm: `ECDH-ES` or `ECDH-ES+A256KW` to a P-256 key, `RSA-OAEP-256` to an RSA key.
    ///   - encryption: how the content is encrypted.
    ///   - header: further members, for example `typ`, `cty`, `apu`, `apv`.
    ///   - random: where content keys and initialization vectors come from.
    /// - Returns: `header.key.iv.ciphertext.tag`.
    /// - Throws: ``JOSEError`` with `algorithmMismatch` when the key is not for this, `unsupportedAlgorithm`, or
    ///   `malformed` for a forbidden header member.
    public static func encrypt(
        _ plaintext: [UInt8], to recipient: JWK, algorithm: KeyManagement, encryption: ContentEncryption = .a256GCM,
        header: JSONObject = JSONObject(), random: any RandomSource = SystemRandom()
    ) throws(JOSEError) -> String {
        try checkUse(of: recipient, algorithm: algorithm)
        var members = try protected(algorithm, encryption, header)
        if members["kid"] == nil { members["kid"] = recipient.keyID.map(JSONValue.string) }
        let contentKey: Secret
        var encryptedKey: [UInt8] = []
        switch (algorithm, recipient.material) {
        case (.ecdhES, .ec(let peer)) where peer.curve == .p256,
            (.ecdhESA256KW, .ec(let peer)) where peer.curve == .p256:
            let (shared, epk) = try agree(with: peer.point)
            members["epk"] = epk
            let key = try ConcatKDF.key(shared, algorithm: algorithm, encryption: encryption, header: members)
            if algorithm == .ecdhES {
                contentKey = key
            } else {
                contentKey = Secret(bytes: random.bytes(encryption.keyLength))
                encryptedKey = try wrap(contentKey, with: key)
            }
        case (.rsaOAEP256, .rsa(let modulus, let exponent)):
            contentKey = Secret(bytes: random.bytes(encryption.keyLength))
            do {
                encryptedKey = Array(
                    try _RSA.Encryption.PublicKey(n: modulus, e: exponent)
                        .encrypt(contentKey.revealBytes(), padding: .PKCS1_OAEP_SHA256))
            } catch {
                throw JOSEError(.keyFailed, "The content could not be encrypted.")
            }
        default:
            throw JOSEError(.algorithmMismatch, "The key is not for \(algorithm).")
        }
        return try assemble(plaintext, members, encryptedKey, contentKey, encryption, random)
    }

    /// Encrypts with a key that both sides have (`dir`).
    ///
    /// - Parameters:
    ///   - plaintext: the content.
    ///   - key: exactly as long as `encryption` needs: 16 bytes for A128GCM, 32 for the others.
    ///   - encryption: how the content is encrypted.
    ///   - header: further members, for example `kid`.
    ///   - random: where initialization vectors come from.
    /// - Returns: `header..iv.ciphertext.tag`.
    /// - Throws: ``JOSEError`` with `invalidKey`, `unsupportedAlgorithm`, or `malformed` for a forbidden header member.
    public static func encrypt(
        _ plaintext: [UInt8], with key: Secret, encryption: ContentEncryption = .a256GCM,
        header: JSONObject = JSONObject(), random: any RandomSource = SystemRandom()
    ) throws(JOSEError) -> String {
        try assemble(plaintext, protected(.dir, encryption, header), [], key, encryption, random)
    }

    private static func checkUse(of key: JWK, algorithm: KeyManagement) throws(JOSEError) {
        let operations: Set<String> =
            algorithm == .rsaOAEP256 ? ["wrapKey", "encrypt"] : ["deriveKey", "deriveBits", "wrapKey"]
        guard key.use.map({ $0 == "enc" }) ?? true, key.algorithm.map({ $0.rawValue == algorithm.rawValue }) ?? true,
            key.keyOps.map({ !operations.isDisjoint(with: $0) }) ?? true
        else {
            throw JOSEError(.algorithmMismatch, "The key is not for \(algorithm).")
        }
    }

    private static func protected(
        _ algorithm: KeyManagement, _ encryption: ContentEncryption, _ header: JSONObject
    ) throws(JOSEError) -> JSONObject {
        guard KeyManagement.supported.contains(algorithm), ContentEncryption.supported.contains(encryption) else {
            throw JOSEError(.unsupportedAlgorithm, "\(algorithm) with \(encryption) is not supported.")
        }
        for name in reserved where header[name] != nil {
            throw JOSEError(.malformed, "The header member \(name) is set here: leave it out.")
        }
        guard header.duplicateNames.isEmpty else {
            throw JOSEError(.malformed, "A member of the header is there twice.")
        }
        return JSONObject(
            [
                .init(name: "alg", value: .string(algorithm.rawValue)),
                .init(name: "enc", value: .string(encryption.rawValue)),
            ] + header.members)
    }

    private static func agree(with point: [UInt8]) throws(JOSEError) -> (Secret, JSONValue) {
        let ephemeral = P256.KeyAgreement.PrivateKey()
        do {
            let peer = try P256.KeyAgreement.PublicKey(x963Representation: point)
            let shared = try ephemeral.sharedSecretFromKeyAgreement(with: peer).withUnsafeBytes { Secret(bytes: $0) }
            return (shared, try JWK(publicPoint: Array(ephemeral.publicKey.x963Representation), use: nil).json)
        } catch {
            throw JOSEError(.keyFailed, "The keys could not agree on a secret.")
        }
    }

    private static func wrap(_ key: Secret, with wrapping: Secret) throws(JOSEError) -> [UInt8] {
        do {
            return Array(try AES.KeyWrap.wrap(key.symmetricKey, using: wrapping.symmetricKey))
        } catch {
            throw JOSEError(.keyFailed, "The content key could not be wrapped.")
        }
    }

    private static func assemble(
        _ plaintext: [UInt8], _ header: JSONObject, _ encryptedKey: [UInt8], _ key: Secret,
        _ encryption: ContentEncryption, _ random: any RandomSource
    ) throws(JOSEError) -> String {
        let encoded = Base64URL.encode(JSONValue.object(header).serializedBytes())
        let iv = random.bytes(encryption.ivLength)
        let (ciphertext, tag) = try encryption.seal(
            plaintext, key: key, iv: iv, authenticating: Array(encoded.utf8))
        return ([encoded] + [encryptedKey, iv, ciphertext, tag].map { Base64URL.encode($0) }).joined(separator: ".")
    }
}
