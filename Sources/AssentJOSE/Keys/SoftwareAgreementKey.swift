public import AssentCore
import Crypto
import Foundation

/// A P-256 private key in this process's memory that agrees on secrets (ECDH).
public struct SoftwareAgreementKey: KeyAgreementKey {
    private let key: P256.KeyAgreement.PrivateKey

    private init(_ key: P256.KeyAgreement.PrivateKey) {
        self.key = key
    }

    /// Makes a new key.
    public static func generate() -> SoftwareAgreementKey {
        SoftwareAgreementKey(P256.KeyAgreement.PrivateKey())
    }

    /// Takes a key that was kept, as PKCS#8 DER.
    ///
    /// - Throws: ``JOSEError`` with `invalidKey`.
    public init(privateKey: Secret) throws(JOSEError) {
        do {
            key = try P256.KeyAgreement.PrivateKey(derRepresentation: privateKey.revealBytes())
        } catch {
            throw JOSEError(.invalidKey, "The bytes are not a PKCS#8 private key on P-256.")
        }
    }

    /// The private key as PKCS#8 DER, to be kept in a ``/AssentCore/SecretStore``.
    public var privateKey: Secret { Secret(bytes: key.derRepresentation) }

    /// The public part as an uncompressed point.
    public var publicPoint: [UInt8] { Array(key.publicKey.x963Representation) }

    /// The x coordinate of the shared point.
    ///
    /// - Throws: ``JOSEError`` with `invalidKey` when `peer` is not an uncompressed point on P-256.
    public func sharedSecret(with peer: [UInt8]) async throws -> Secret {
        guard peer.count == 65, let peer = try? P256.KeyAgreement.PublicKey(x963Representation: peer) else {
            throw JOSEError(.invalidKey, "The peer's key is not a point on P-256.")
        }
        return try key.sharedSecretFromKeyAgreement(with: peer).withUnsafeBytes { Secret(bytes: $0) }
    }
}

extension SoftwareAgreementKey: CustomStringConvertible, CustomReflectable {
    /// Nothing of the key.
    public var description: String { "SoftwareAgreementKey(P-256)" }

    /// A mirror without children, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
