import AssentCore
import Crypto
import Foundation

/// A public point whose curve is known from its length, and which is on it.
enum ECIESCurve {
    case p256(P256.KeyAgreement.PublicKey)
    case p384(P384.KeyAgreement.PublicKey)

    /// `nil` unless `point` is uncompressed and on the curve. The compressed form, the hybrid form and infinity are
    /// not.
    init?(_ point: [UInt8]) {
        guard point.first == 0x04 else { return nil }
        switch point.count {
        case 65:
            guard let key = try? P256.KeyAgreement.PublicKey(x963Representation: point) else { return nil }
            self = .p256(key)
        case 97:
            guard let key = try? P384.KeyAgreement.PublicKey(x963Representation: point) else { return nil }
            self = .p384(key)
        default:
            return nil
        }
    }

    var coordinateLength: Int {
        switch self {
        case .p256: 32
        case .p384: 48
        }
    }

    var pointLength: Int { 1 + 2 * coordinateLength }

    /// Security gives keys of up to 256 bits AES-128 and longer ones AES-256.
    var aesKeyLength: Int {
        switch self {
        case .p256: 16
        case .p384: 32
        }
    }

    /// Agrees on a secret with this key; the other half is forgotten.
    func agreeWithFreshKey() throws -> (point: [UInt8], shared: Secret) {
        switch self {
        case .p256(let recipient):
            let ephemeral = P256.KeyAgreement.PrivateKey()
            let shared = try ephemeral.sharedSecretFromKeyAgreement(with: recipient)
            return (Array(ephemeral.publicKey.x963Representation), shared.withUnsafeBytes { Secret(bytes: $0) })
        case .p384(let recipient):
            let ephemeral = P384.KeyAgreement.PrivateKey()
            let shared = try ephemeral.sharedSecretFromKeyAgreement(with: recipient)
            return (Array(ephemeral.publicKey.x963Representation), shared.withUnsafeBytes { Secret(bytes: $0) })
        }
    }
}
