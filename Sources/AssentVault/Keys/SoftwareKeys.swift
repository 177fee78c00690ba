import AssentCore
import Crypto
import Foundation

/// A P-256 signing key in this process's memory.
struct SoftwareSigner: SigningKey {
    private let key: P256.Signing.PrivateKey

    init(_ raw: Secret) throws {
        key = try raw.withUnsafeBytes { try P256.Signing.PrivateKey(rawRepresentation: $0) }
    }

    var algorithm: SignatureAlgorithm { .es256 }

    var publicKeyInfo: [UInt8] { Array(key.publicKey.derRepresentation) }

    func signature(for message: [UInt8]) async throws -> [UInt8] {
        Array(try key.signature(for: message).rawRepresentation)
    }
}

/// A P-256 key agreement key in this process's memory.
struct SoftwareAgreement: KeyAgreementKey {
    private let key: P256.KeyAgreement.PrivateKey

    init(_ raw: Secret) throws {
        key = try raw.withUnsafeBytes { try P256.KeyAgreement.PrivateKey(rawRepresentation: $0) }
    }

    var publicPoint: [UInt8] { Array(key.publicKey.x963Representation) }

    func sharedSecret(with peer: [UInt8]) async throws -> Secret {
        guard peer.count == 65, let point = try? P256.KeyAgreement.PublicKey(x963Representation: peer) else {
            throw KeyProviderError(
                .invalidInput, "The peer's key is not an uncompressed point of P-256. Ask the peer for another.")
        }
        return try key.sharedSecretFromKeyAgreement(with: point).withUnsafeBytes { Secret(bytes: $0) }
    }
}
