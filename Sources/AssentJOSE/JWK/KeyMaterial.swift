import AssentCore
import Crypto
import CryptoExtras
import Foundation

/// The NIST curves of RFC 7518 §6.2.1.1.
enum ECCurve: String, Hashable, Sendable {
    case p256 = "P-256"
    case p384 = "P-384"
    case p521 = "P-521"

    /// Bytes of a coordinate, also of each half of a signature.
    var coordinateLength: Int {
        switch self {
        case .p256: 32
        case .p384: 48
        case .p521: 66
        }
    }
}

/// A public key on a curve: a point that lies on it.
struct ECKey: Hashable, Sendable {
    let curve: ECCurve
    /// Uncompressed (X9.63).
    let point: [UInt8]
    /// Reading a point costs nearly as much as verifying a signature, so it is read once.
    let verifier: Verifier

    enum Verifier: Sendable {
        case p256(P256.Signing.PublicKey)
        case p384(P384.Signing.PublicKey)
        case p521(P521.Signing.PublicKey)
    }

    init(_ curve: ECCurve, point: [UInt8]) throws(JOSEError) {
        guard point.count == 1 + 2 * curve.coordinateLength, point.first == 4 else {
            throw JOSEError(.invalidKey, "The key is not an uncompressed point of \(curve.rawValue).")
        }
        do {
            verifier =
                switch curve {
                case .p256: .p256(try P256.Signing.PublicKey(x963Representation: point))
                case .p384: .p384(try P384.Signing.PublicKey(x963Representation: point))
                case .p521: .p521(try P521.Signing.PublicKey(x963Representation: point))
                }
        } catch {
            throw JOSEError(.invalidKey, "The point is not on the curve \(curve.rawValue).")
        }
        (self.curve, self.point) = (curve, point)
    }

    /// As DER SubjectPublicKeyInfo.
    var publicKeyInfo: [UInt8] {
        switch verifier {
        case .p256(let key): Array(key.derRepresentation)
        case .p384(let key): Array(key.derRepresentation)
        case .p521(let key): Array(key.derRepresentation)
        }
    }

    static func == (one: ECKey, other: ECKey) -> Bool { one.curve == other.curve && one.point == other.point }

    func hash(into hasher: inout Hasher) { hasher.combine(point) }
}

/// The values of a public key, checked: points lie on their curve, lengths are in bounds.
enum KeyMaterial: Hashable, Sendable {
    case ec(ECKey)
    /// Modulus and exponent, big-endian without leading zeros.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// RFC 8032 §5.1.5.
    case ed25519([UInt8])

    static let rsaBits = 2048...8192

    init(curve: ECCurve, point: [UInt8]) throws(JOSEError) { self = .ec(try ECKey(curve, point: point)) }

    init(modulus: [UInt8], exponent: [UInt8]) throws(JOSEError) {
        guard let top = modulus.first, top != 0, let last = modulus.last, last & 1 == 1 else {
            throw JOSEError(.invalidKey, "The RSA modulus is even, empty or has leading zeros.")
        }
        let bits = modulus.count * 8 - top.leadingZeroBitCount
        guard bits >= Self.rsaBits.lowerBound else { throw JOSEError(.weakKey, "The RSA key has \(bits) bits.") }
        guard bits <= Self.rsaBits.upperBound else { throw JOSEError(.tooLarge, "The RSA key has \(bits) bits.") }
        guard let top = exponent.first, top != 0, exponent.count <= 4, let last = exponent.last, last & 1 == 1,
            exponent != [1]
        else {
            throw JOSEError(.invalidKey, "The RSA key's public exponent is even, too small or too large.")
        }
        do {
            _ = try _RSA.Signing.PublicKey(n: modulus, e: exponent)
        } catch {
            throw JOSEError(.invalidKey, "The values do not make an RSA key.")
        }
        self = .rsa(modulus: modulus, exponent: exponent)
    }

    init(ed25519 bytes: [UInt8]) throws(JOSEError) {
        guard bytes.count == 32, (try? Curve25519.Signing.PublicKey(rawRepresentation: bytes)) != nil else {
            throw JOSEError(.invalidKey, "The value is not an Ed25519 key.")
        }
        self = .ed25519(bytes)
    }

    /// Reads a DER SubjectPublicKeyInfo in the one encoding that each key has.
    init(publicKeyInfo: [UInt8]) throws(JOSEError) {
        // 8,192-bit RSA takes about 1.1 kB.
        guard publicKeyInfo.count <= 4096 else {
            throw JOSEError(.tooLarge, "The public key info has more than 4,096 bytes.")
        }
        let material: KeyMaterial
        if let key = try? P256.Signing.PublicKey(derRepresentation: publicKeyInfo) {
            material = try KeyMaterial(curve: .p256, point: Array(key.x963Representation))
        } else if let key = try? P384.Signing.PublicKey(derRepresentation: publicKeyInfo) {
            material = try KeyMaterial(curve: .p384, point: Array(key.x963Representation))
        } else if let key = try? P521.Signing.PublicKey(derRepresentation: publicKeyInfo) {
            material = try KeyMaterial(curve: .p521, point: Array(key.x963Representation))
        } else if let key = try? Curve25519.Signing.PublicKey(derRepresentation: publicKeyInfo) {
            material = try KeyMaterial(ed25519: Array(key.rawRepresentation))
        } else if let key = try? _RSA.Signing.PublicKey(unsafeDERRepresentation: publicKeyInfo),
            let values = try? key.getKeyPrimitives()
        {
            material = try KeyMaterial(modulus: Array(values.modulus), exponent: Array(values.publicExponent))
        } else {
            throw JOSEError(.invalidKey, "The bytes are not the public key info of a supported key.")
        }
        guard try material.publicKeyInfo() == publicKeyInfo else {
            throw JOSEError(.invalidKey, "The public key info is not in its canonical form.")
        }
        self = material
    }

    func publicKeyInfo() throws(JOSEError) -> [UInt8] {
        do {
            return switch self {
            case .ec(let key): key.publicKeyInfo
            case .rsa(let n, let e): Array(try _RSA.Signing.PublicKey(n: n, e: e).derRepresentation)
            case .ed25519(let bytes):
                Array(try Curve25519.Signing.PublicKey(rawRepresentation: bytes).derRepresentation)
            }
        } catch {
            throw JOSEError(.invalidKey)
        }
    }

    /// The members that RFC 7638 §3.2 and RFC 8037 §2 name as required, in lexicographic order.
    var requiredMembers: [(String, String)] {
        switch self {
        case .ec(let key):
            [
                ("crv", key.curve.rawValue), ("kty", "EC"),
                ("x", Base64URL.encode(key.point[1..<(1 + key.curve.coordinateLength)])),
                ("y", Base64URL.encode(key.point[(1 + key.curve.coordinateLength)...])),
            ]
        case .rsa(let modulus, let exponent):
            [("e", Base64URL.encode(exponent)), ("kty", "RSA"), ("n", Base64URL.encode(modulus))]
        case .ed25519(let bytes):
            [("crv", "Ed25519"), ("kty", "OKP"), ("x", Base64URL.encode(bytes))]
        }
    }

    /// Whether keys of this kind sign with `algorithm`.
    func fits(_ algorithm: SignatureAlgorithm) -> Bool {
        switch (self, algorithm) {
        case (.ec(let key), .es256): key.curve == .p256
        case (.ec(let key), .es384): key.curve == .p384
        case (.ec(let key), .es512): key.curve == .p521
        case (.rsa, .rs256), (.rsa, .ps256): true
        case (.ed25519, .edDSA): true
        default: false
        }
    }
}
