import AssentCore
import Crypto
import CryptoExtras
import Foundation

extension SignatureAlgorithm {
    /// What `AssentJOSE` signs and verifies with. `none` is not among them.
    static let supported: Set<SignatureAlgorithm> = [.es256, .es384, .es512, .rs256, .ps256, .edDSA, .hs256]

    /// The one length that a signature has, or `nil` when it depends on the key.
    var signatureLength: Int? {
        switch self {
        case .es256, .edDSA: 64
        case .es384: 96
        case .es512: 132
        case .hs256: 32
        default: nil
        }
    }
}

extension KeyMaterial {
    /// Whether `signature` is that of `message`. `false` also for a signature of the wrong length or a wrong algorithm.
    func isValid(_ signature: [UInt8], for message: [UInt8], algorithm: SignatureAlgorithm) -> Bool {
        guard fits(algorithm) else { return false }
        if let length = algorithm.signatureLength, signature.count != length { return false }
        do {
            switch self {
            case .ec(let key): return try key.isValid(signature, for: message)
            case .rsa(let modulus, let exponent):
                guard signature.count == modulus.count else { return false }
                return try _RSA.Signing.PublicKey(n: modulus, e: exponent).isValidSignature(
                    _RSA.Signing.RSASignature(rawRepresentation: signature), for: SHA256.hash(data: message),
                    padding: algorithm == .ps256 ? .PSS : .insecurePKCS1v1_5)
            case .ed25519(let bytes):
                return try Curve25519.Signing.PublicKey(rawRepresentation: bytes)
                    .isValidSignature(signature, for: message)
            }
        } catch {
            return false
        }
    }
}

extension ECKey {
    fileprivate func isValid(_ signature: [UInt8], for message: [UInt8]) throws -> Bool {
        // The message is hashed here, where its type is known: swift-crypto would do it by generic code.
        switch verifier {
        case .p256(let key):
            key.isValidSignature(
                try P256.Signing.ECDSASignature(rawRepresentation: signature), for: SHA256.hash(data: message))
        case .p384(let key):
            key.isValidSignature(
                try P384.Signing.ECDSASignature(rawRepresentation: signature), for: SHA384.hash(data: message))
        case .p521(let key):
            key.isValidSignature(
                try P521.Signing.ECDSASignature(rawRepresentation: signature), for: SHA512.hash(data: message))
        }
    }
}
