public import AssentCore
import Crypto
import CryptoExtras
import Foundation

/// A private key in this process's memory that signs with ES256, ES384, ES512, RS256, PS256 or EdDSA.
public struct SoftwareSigningKey: SigningKey {
    private enum Backing: Sendable {
        case p256(P256.Signing.PrivateKey)
        case p384(P384.Signing.PrivateKey)
        case p521(P521.Signing.PrivateKey)
        case rsa(_RSA.Signing.PrivateKey)
        case ed25519(Curve25519.Signing.PrivateKey)
    }

    /// What it signs with.
    public let algorithm: SignatureAlgorithm

    /// The public part as DER SubjectPublicKeyInfo.
    public let publicKeyInfo: [UInt8]

    private let backing: Backing

    private init(_ algorithm: SignatureAlgorithm, _ backing: Backing) {
        self.algorithm = algorithm
        self.backing = backing
        publicKeyInfo =
            switch backing {
            case .p256(let key): Array(key.publicKey.derRepresentation)
            case .p384(let key): Array(key.publicKey.derRepresentation)
            case .p521(let key): Array(key.publicKey.derRepresentation)
            case .rsa(let key): Array(key.publicKey.derRepresentation)
            case .ed25519(let key): Array(key.publicKey.derRepresentation)
            }
    }

    /// Makes a new key.
    ///
    /// - Parameters:
    ///   - algorithm: what it is to sign with.
    ///   - rsaBits: the size of an RSA key, 2048 to 8192; not looked at for other algorithms.
    /// - Returns: a key that nobody has seen yet.
    /// - Throws: ``JOSEError`` with `unsupportedAlgorithm`, or `weakKey` or `tooLarge` for `rsaBits`.
    public static func generate(
        _ algorithm: SignatureAlgorithm, rsaBits: Int = 3072
    ) throws(JOSEError) -> SoftwareSigningKey {
        switch algorithm {
        case .es256: return SoftwareSigningKey(algorithm, .p256(P256.Signing.PrivateKey()))
        case .es384: return SoftwareSigningKey(algorithm, .p384(P384.Signing.PrivateKey()))
        case .es512: return SoftwareSigningKey(algorithm, .p521(P521.Signing.PrivateKey()))
        case .edDSA: return SoftwareSigningKey(algorithm, .ed25519(Curve25519.Signing.PrivateKey()))
        case .rs256, .ps256:
            try checkSize(rsaBits)
            do {
                return SoftwareSigningKey(
                    algorithm, .rsa(try _RSA.Signing.PrivateKey(keySize: .init(bitCount: rsaBits))))
            } catch {
                throw JOSEError(.keyFailed, "An RSA key of \(rsaBits) bits could not be made.")
            }
        default: throw JOSEError(.unsupportedAlgorithm, "\(algorithm) is not supported.")
        }
    }

    /// Takes a key that was kept.
    ///
    /// - Parameters:
    ///   - algorithm: what it is to sign with.
    ///   - privateKey: PKCS#8 (RFC 5208) as DER; for Ed25519 without the optional public key (RFC 8410 §7, version 1).
    /// - Throws: ``JOSEError`` with `unsupportedAlgorithm`, `invalidKey` when this is not a key for the algorithm,
    ///   `weakKey` or `tooLarge` for the size of an RSA key.
    public init(algorithm: SignatureAlgorithm, privateKey: Secret) throws(JOSEError) {
        let backing: Backing
        do {
            let der = privateKey.revealBytes()
            switch algorithm {
            case .es256: backing = .p256(try P256.Signing.PrivateKey(derRepresentation: der))
            case .es384: backing = .p384(try P384.Signing.PrivateKey(derRepresentation: der))
            case .es512: backing = .p521(try P521.Signing.PrivateKey(derRepresentation: der))
            case .rs256, .ps256: backing = .rsa(try _RSA.Signing.PrivateKey(unsafeDERRepresentation: der))
            case .edDSA:
                let key = try Curve25519.Signing.PrivateKey(derRepresentation: der)
                // swift-crypto does not look at the algorithm in there, which may be X25519's.
                guard ConstantTime.equal(Array(key.derRepresentation), der) else { throw JOSEError(.invalidKey) }
                backing = .ed25519(key)
            default: throw JOSEError(.unsupportedAlgorithm, "\(algorithm) is not supported.")
            }
        } catch let error as JOSEError {
            throw error
        } catch {
            throw JOSEError(.invalidKey, "The bytes are not a PKCS#8 private key for \(algorithm).")
        }
        if case .rsa(let key) = backing { try Self.checkSize(key.keySizeInBits) }
        self.init(algorithm, backing)
    }

    private static func checkSize(_ bits: Int) throws(JOSEError) {
        guard bits >= KeyMaterial.rsaBits.lowerBound else { throw JOSEError(.weakKey, "The RSA key has \(bits) bits.") }
        guard bits <= KeyMaterial.rsaBits.upperBound else {
            throw JOSEError(.tooLarge, "The RSA key has \(bits) bits.")
        }
    }

    /// The private key as PKCS#8 DER, to be kept in a ``/AssentCore/SecretStore``.
    public var privateKey: Secret {
        switch backing {
        case .p256(let key): Secret(bytes: key.derRepresentation)
        case .p384(let key): Secret(bytes: key.derRepresentation)
        case .p521(let key): Secret(bytes: key.derRepresentation)
        case .rsa(let key): Secret(bytes: key.pkcs8DERRepresentation)
        case .ed25519(let key): Secret(bytes: key.derRepresentation)
        }
    }

    /// Signs `message`. The result has JOSE's form (RFC 7518 §3).
    public func signature(for message: [UInt8]) async throws -> [UInt8] {
        switch backing {
        case .p256(let key): Array(try key.signature(for: message).rawRepresentation)
        case .p384(let key): Array(try key.signature(for: message).rawRepresentation)
        case .p521(let key): Array(try key.signature(for: message).rawRepresentation)
        case .rsa(let key):
            Array(
                try key.signature(
                    for: SHA256.hash(data: message), padding: algorithm == .ps256 ? .PSS : .insecurePKCS1v1_5
                ).rawRepresentation)
        case .ed25519(let key): Array(try key.signature(for: message))
        }
    }
}

extension SoftwareSigningKey: CustomStringConvertible, CustomReflectable {
    /// The algorithm; nothing of the key.
    public var description: String { "SoftwareSigningKey(\(algorithm))" }

    /// A mirror without children, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
