public import AssentCore
import Crypto
import Foundation

/// An encrypted message in compact form that was read but not opened: its header cannot be trusted yet.
public struct SealedJWE: Sendable {
    /// The header as it came.
    public let header: JSONObject

    /// `alg`.
    public let algorithm: KeyManagement

    /// `enc`.
    public let encryption: ContentEncryption

    /// `kid`.
    public let keyID: String?

    /// `typ`.
    public let type: String?

    private let encodedHeader: [UInt8]
    private let encryptedKey: [UInt8]
    private let iv: [UInt8]
    private let ciphertext: [UInt8]
    private let tag: [UInt8]

    /// Reads `header.key.iv.ciphertext.tag`.
    ///
    /// - Parameters:
    ///   - compact: the text.
    ///   - limit: how many bytes are accepted; 256 KiB by default.
    /// - Returns: the message, still closed.
    /// - Throws: ``JOSEError`` with `tooLarge`, `malformed`, `unsupportedAlgorithm`, or `unsupportedExtension` for
    ///   `crit` and `zip` (compressed content can be a bomb and tells its length).
    public static func parse(_ compact: String, limit: Int = 256 << 10) throws(JOSEError) -> SealedJWE {
        try SealedJWE(compact, limit: limit)
    }

    private init(_ compact: String, limit: Int) throws(JOSEError) {
        guard compact.utf8.count <= limit else { throw JOSEError(.tooLarge, "The JWE has more than \(limit) bytes.") }
        let parts = Self.parts(of: compact)
        guard parts.count == 5 else {
            throw JOSEError(.malformed, "A compact JWE has five parts; this has another number.")
        }
        let header = try CompactHeader(encoded: parts[0], refused: ["crit", "zip"])
        algorithm = KeyManagement(rawValue: header.alg)
        encryption = ContentEncryption(rawValue: header.object["enc"]?.string ?? "")
        guard KeyManagement.supported.contains(algorithm), ContentEncryption.supported.contains(encryption) else {
            throw JOSEError(.unsupportedAlgorithm)
        }
        guard let encryptedKey = Base64URL.decode(parts[1]), let iv = Base64URL.decode(parts[2]),
            let ciphertext = Base64URL.decode(parts[3]), let tag = Base64URL.decode(parts[4])
        else {
            throw JOSEError(.malformed, "A part of the JWE is not base64url.")
        }
        guard iv.count == encryption.ivLength, tag.count == ContentEncryption.tagLength else {
            throw JOSEError(.malformed, "The initialization vector or the tag has a wrong length.")
        }
        guard encryptedKey.isEmpty == (algorithm == .dir || algorithm == .ecdhES) else {
            throw JOSEError(
                .malformed, "The JWE has an encrypted key where its algorithm allows none, or none where it needs one.")
        }
        self.header = header.object
        self.encryptedKey = encryptedKey
        self.iv = iv
        self.ciphertext = ciphertext
        self.tag = tag
        keyID = header.keyID
        type = header.type
        encodedHeader = Array(parts[0].utf8)
    }

    /// What stands between the dots, six parts at most. The dots are looked for in an array: to cut the text into
    /// characters takes many times as long.
    private static func parts(of compact: String) -> [Substring] {
        let text = compact.utf8
        var (parts, start, before) = ([Substring](), text.startIndex, 0)
        for (place, byte) in Array(text).enumerated() where byte == UInt8(ascii: ".") && parts.count < 5 {
            let end = text.index(start, offsetBy: place - before)
            parts.append(Substring(text[start..<end]))
            (start, before) = (text.index(after: end), place + 1)
        }
        parts.append(Substring(text[start...]))
        return parts
    }

    /// Opens a message with `ECDH-ES` or `ECDH-ES+A256KW`.
    ///
    /// - Throws: ``JOSEError`` with `algorithmNotAllowed` for another `alg`, `malformed`, `invalidKey` or
    ///   `privateKeyRefused` for the sender's key, `decryptionFailed`; and what the handle throws.
    public func opened(with key: any KeyAgreementKey) async throws -> OpenedJWE {
        guard algorithm == .ecdhES || algorithm == .ecdhESA256KW else {
            throw JOSEError(.algorithmNotAllowed, "\(algorithm) is not allowed here.")
        }
        guard let epk = header["epk"] else { throw JOSEError(.malformed, "The header has no epk.") }
        guard case .ec(let peer) = try JWK(epk).material, peer.curve == .p256 else {
            throw JOSEError(.invalidKey, "The header's epk is not a key on P-256.")
        }
        let shared = try await key.sharedSecret(with: peer.point)
        let derived = try ConcatKDF.key(shared, algorithm: algorithm, encryption: encryption, header: header)
        guard algorithm == .ecdhESA256KW else { return try open(derived) }
        guard let contentKey = try? AES.KeyWrap.unwrap(encryptedKey, using: derived.symmetricKey) else {
            throw JOSEError(.decryptionFailed)
        }
        return try open(Secret(contentKey))
    }

    /// Opens a message with `RSA-OAEP-256`.
    ///
    /// - Throws: ``JOSEError`` with `algorithmNotAllowed` for another `alg`, `decryptionFailed`; and what the handle
    ///   throws.
    public func opened(with key: any KeyTransportKey) async throws -> OpenedJWE {
        guard algorithm == .rsaOAEP256 else {
            throw JOSEError(.algorithmNotAllowed, "\(algorithm) is not allowed here.")
        }
        return try open(try await key.contentKey(encryptedKey))
    }

    /// Opens a message with `dir`.
    ///
    /// - Throws: ``JOSEError`` with `algorithmNotAllowed` for another `alg`, or `decryptionFailed`.
    public func opened(with key: Secret) throws(JOSEError) -> OpenedJWE {
        guard algorithm == .dir else { throw JOSEError(.algorithmNotAllowed, "\(algorithm) is not allowed here.") }
        return try open(key)
    }

    private func open(_ key: Secret) throws(JOSEError) -> OpenedJWE {
        OpenedJWE(
            self,
            plaintext: try encryption.open(ciphertext, tag: tag, key: key, iv: iv, authenticating: encodedHeader))
    }
}

/// A decrypted message. Only the `opened` methods of ``SealedJWE`` make one.
///
/// Except with `dir`, anybody who knows the public key can have written it: who did must come from what is inside.
public struct OpenedJWE: Sendable {
    /// The header, protected by the encryption.
    public let header: JSONObject

    /// `kid`.
    public let keyID: String?

    /// `typ`.
    public let type: String?

    /// The content.
    public let plaintext: [UInt8]

    fileprivate init(_ message: SealedJWE, plaintext: [UInt8]) {
        header = message.header
        keyID = message.keyID
        type = message.type
        self.plaintext = plaintext
    }
}
