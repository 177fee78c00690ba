package import AssentCore
import Crypto
import CryptoExtras
import Foundation

/// How a JWE's content is encrypted and authenticated: its `enc` (RFC 7518 §5).
public struct ContentEncryption: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The value of `enc`.
    public let rawValue: String

    /// Takes the value of `enc` as it is.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The value of `enc`.
    public var description: String { rawValue }

    /// AES-GCM with a key of 128 bits.
    public static let a128GCM = ContentEncryption(rawValue: "A128GCM")
    /// AES-GCM with a key of 256 bits.
    public static let a256GCM = ContentEncryption(rawValue: "A256GCM")
    /// AES-CBC and HMAC-SHA-256, 128 bits each.
    public static let a128CBCHS256 = ContentEncryption(rawValue: "A128CBC-HS256")

    static let supported: Set<ContentEncryption> = [.a128GCM, .a256GCM, .a128CBCHS256]

    /// Bytes of the content encryption key.
    var keyLength: Int { self == .a128GCM ? 16 : 32 }

    /// Bytes of the initialization vector.
    var ivLength: Int { self == .a128CBCHS256 ? 16 : 12 }

    static let tagLength = 16

    package func seal(
        _ plaintext: [UInt8], key: Secret, iv: [UInt8], authenticating header: [UInt8]
    ) throws(JOSEError) -> (ciphertext: [UInt8], tag: [UInt8]) {
        guard key.count == keyLength, iv.count == ivLength else {
            throw JOSEError(.invalidKey, "The content key or the initialization vector has a wrong length.")
        }
        do {
            if self == .a128CBCHS256 {
                let keys = CBCKeys(key)
                let ciphertext = Array(
                    try AES._CBC.encrypt(plaintext, using: keys.encryption, iv: AES._CBC.IV(ivBytes: iv)))
                return (ciphertext, keys.tag(header, iv, ciphertext))
            }
            let box = try AES.GCM.seal(
                plaintext, using: key.symmetricKey, nonce: AES.GCM.Nonce(data: iv), authenticating: header)
            return (Array(box.ciphertext), Array(box.tag))
        } catch {
            throw JOSEError(.keyFailed, "The content could not be encrypted.")
        }
    }

    package func open(
        _ ciphertext: [UInt8], tag: [UInt8], key: Secret, iv: [UInt8], authenticating header: [UInt8]
    ) throws(JOSEError) -> [UInt8] {
        guard key.count == keyLength, iv.count == ivLength, tag.count == Self.tagLength else {
            throw JOSEError(.decryptionFailed)
        }
        do {
            if self == .a128CBCHS256 {
                let keys = CBCKeys(key)
                guard ConstantTime.equal(keys.tag(header, iv, ciphertext), tag) else {
                    throw JOSEError(.decryptionFailed)
                }
                return Array(try AES._CBC.decrypt(ciphertext, using: keys.encryption, iv: AES._CBC.IV(ivBytes: iv)))
            }
            let box = try AES.GCM.SealedBox(nonce: AES.GCM.Nonce(data: iv), ciphertext: ciphertext, tag: tag)
            return Array(try AES.GCM.open(box, using: key.symmetricKey, authenticating: header))
        } catch {
            throw JOSEError(.decryptionFailed)
        }
    }
}

/// The two halves of an A128CBC-HS256 key (RFC 7518 §5.2.2.1).
private struct CBCKeys {
    let authentication: SymmetricKey
    let encryption: SymmetricKey

    init(_ key: Secret) {
        (authentication, encryption) = key.withUnsafeBytes { bytes in
            (SymmetricKey(data: bytes.prefix(16)), SymmetricKey(data: bytes.dropFirst(16)))
        }
    }

    func tag(_ header: [UInt8], _ iv: [UInt8], _ ciphertext: [UInt8]) -> [UInt8] {
        var code = HMAC<SHA256>(key: authentication)
        code.update(data: header)
        code.update(data: iv)
        code.update(data: ciphertext)
        code.update(data: bigEndian(UInt64(header.count) * 8))
        return Array(code.finalize().prefix(ContentEncryption.tagLength))
    }
}

func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
}
