public import AssentCore
import Crypto
import CryptoExtras
import Foundation

/// A handle of a private key that content keys are encrypted to with RSA-OAEP-256 (RFC 7518 §4.3).
public protocol KeyTransportKey: Sendable {
    /// The public part as DER SubjectPublicKeyInfo.
    var publicKeyInfo: [UInt8] { get }

    /// The content key in `encryptedKey`. Throws when it was not encrypted to this key, without saying why.
    func contentKey(_ encryptedKey: [UInt8]) async throws -> Secret
}

/// An RSA private key in this process's memory that content keys are encrypted to.
public struct SoftwareTransportKey: KeyTransportKey {
    /// The private key as PKCS#8 DER, to be kept in a ``/AssentCore/SecretStore``.
    public let privateKey: Secret

    /// The public part as DER SubjectPublicKeyInfo.
    public let publicKeyInfo: [UInt8]

    /// Makes a new key.
    ///
    /// - Throws: ``JOSEError`` with `weakKey` or `tooLarge` when `bits` is not in 2048 to 8192.
    public static func generate(bits: Int = 3072) throws(JOSEError) -> SoftwareTransportKey {
        try SoftwareTransportKey(privateKey: SoftwareSigningKey.generate(.rs256, rsaBits: bits).privateKey)
    }

    /// Takes a key that was kept, as PKCS#8 DER.
    ///
    /// - Throws: ``JOSEError`` with `invalidKey`, `weakKey` or `tooLarge`.
    public init(privateKey: Secret) throws(JOSEError) {
        publicKeyInfo = try SoftwareSigningKey(algorithm: .rs256, privateKey: privateKey).publicKeyInfo
        self.privateKey = privateKey
    }

    /// The content key in `encryptedKey`.
    ///
    /// - Throws: ``JOSEError`` with `decryptionFailed`.
    public func contentKey(_ encryptedKey: [UInt8]) async throws -> Secret {
        // swift-crypto's type is not `Sendable`, so it cannot be kept.
        guard let key = try? _RSA.Encryption.PrivateKey(derRepresentation: privateKey.revealBytes()),
            let bytes = try? key.decrypt(encryptedKey, padding: .PKCS1_OAEP_SHA256)
        else {
            throw JOSEError(.decryptionFailed)
        }
        return Secret(bytes: bytes)
    }
}

extension SoftwareTransportKey: CustomStringConvertible, CustomReflectable {
    /// Nothing of the key.
    public var description: String { "SoftwareTransportKey(RSA)" }

    /// A mirror without children, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
