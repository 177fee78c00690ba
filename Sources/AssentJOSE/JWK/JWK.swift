public import AssentCore
import Crypto

/// A public key as JSON (RFC 7517, RFC 7518 §6, RFC 8037).
///
/// EC keys on P-256, P-384 and P-521, RSA keys of 2048 to 8192 bits, and Ed25519. Private and symmetric key values are
/// refused, so a `JWK` can always be shown. Members other than those below are not kept.
public struct JWK: Sendable, Hashable {
    let material: KeyMaterial

    /// The name that a header's `kid` refers to.
    public let keyID: String?

    /// The one algorithm that this key is for, when it says so. A key for encryption has the name of a key management
    /// algorithm here.
    public let algorithm: SignatureAlgorithm?

    /// `sig` or `enc`, when the key says so.
    public let use: String?

    /// What the key may be used for (RFC 7517 §4.3), when it says so.
    public let keyOps: [String]?

    private static let textLimit = 1024
    private static let privateMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    /// Reads a key.
    ///
    /// - Throws: ``JOSEError`` with `privateKeyRefused` when there are private values, `unsupportedKey` for other types
    ///   and curves, `weakKey` for RSA below 2048 bits, `invalidKey` or `malformed` otherwise.
    public init(_ json: JSONValue) throws(JOSEError) {
        guard let members = json.object, members.duplicateNames.isEmpty else {
            throw JOSEError(.malformed, "The JWK is not a JSON object, or has a member twice.")
        }
        guard let kty = members["kty"]?.string else { throw JOSEError(.malformed, "The JWK has no kty.") }
        guard Self.privateMembers.allSatisfy({ members[$0] == nil }) else { throw JOSEError(.privateKeyRefused) }
        func bytes(_ name: String) throws(JOSEError) -> [UInt8] {
            guard let text = members[name]?.string, text.utf8.count <= 4096, let bytes = Base64URL.decode(text) else {
                throw JOSEError(.malformed, "The JWK's member \(name) is missing or not base64url.")
            }
            return bytes
        }
        let crv = members["crv"]?.string ?? ""
        switch kty {
        case "EC":
            guard let curve = ECCurve(rawValue: crv) else {
                throw JOSEError(.unsupportedKey, "The key is on a curve that is not supported.")
            }
            let (x, y) = (try bytes("x"), try bytes("y"))
            guard x.count == curve.coordinateLength, y.count == curve.coordinateLength else {
                throw JOSEError(
                    .invalidKey,
                    "A coordinate on \(curve.rawValue) has \(curve.coordinateLength) bytes; this has another length.")
            }
            material = try KeyMaterial(curve: curve, point: [4] + x + y)
        case "RSA":
            material = try KeyMaterial(modulus: try bytes("n"), exponent: try bytes("e"))
        case "OKP":
            guard crv == "Ed25519" else {
                throw JOSEError(.unsupportedKey, "The key is on a curve that is not supported.")
            }
            material = try KeyMaterial(ed25519: try bytes("x"))
        default:
            throw JOSEError(.unsupportedKey, "The key is of a type that is not supported.")
        }
        keyID = try Self.text(members, "kid")
        algorithm = try Self.text(members, "alg").map(SignatureAlgorithm.init(rawValue:))
        use = try Self.text(members, "use")
        if let ops = members["key_ops"] {
            guard let names = ops.strings, names.count <= 16, names.allSatisfy({ $0.utf8.count <= Self.textLimit })
            else {
                throw JOSEError(.malformed, "The JWK's key_ops is not a short array of strings.")
            }
            keyOps = names
        } else {
            keyOps = nil
        }
    }

    /// The key in a DER SubjectPublicKeyInfo (RFC 5280 §4.1.2.7).
    ///
    /// - Throws: ``JOSEError`` with `invalidKey`, `weakKey` or `tooLarge`.
    public init(
        publicKeyInfo: [UInt8], keyID: String? = nil, algorithm: SignatureAlgorithm? = nil, use: String? = nil
    ) throws(JOSEError) {
        material = try KeyMaterial(publicKeyInfo: publicKeyInfo)
        self.keyID = keyID
        self.algorithm = algorithm
        self.use = use
        keyOps = nil
    }

    /// The P-256 key of a key agreement handle, from its ``/AssentCore/KeyAgreementKey/publicPoint``.
    ///
    /// - Throws: ``JOSEError`` with `invalidKey`.
    public init(publicPoint: [UInt8], keyID: String? = nil, use: String? = "enc") throws(JOSEError) {
        material = try KeyMaterial(curve: .p256, point: publicPoint)
        self.keyID = keyID
        algorithm = nil
        self.use = use
        keyOps = nil
    }

    private static func text(_ members: JSONObject, _ name: String) throws(JOSEError) -> String? {
        guard let value = members[name] else { return nil }
        guard let text = value.string, text.utf8.count <= textLimit else {
            throw JOSEError(.malformed, "The JWK's member \(name) is not a short string.")
        }
        return text
    }

    /// The key as JSON: public values, then `kid`, `use`, `key_ops` and `alg` where they are known.
    public var json: JSONValue {
        var object = JSONObject()
        for (name, value) in material.requiredMembers { object[name] = .string(value) }
        object["kid"] = keyID.map(JSONValue.string)
        object["use"] = use.map(JSONValue.string)
        object["key_ops"] = keyOps.map { .array($0.map(JSONValue.string)) }
        object["alg"] = algorithm.map { .string($0.rawValue) }
        return .object(object)
    }

    /// The SHA-256 thumbprint (RFC 7638) as base64url: the same for every writing of the same key.
    public var thumbprint: String {
        var object = JSONObject()
        for (name, value) in material.requiredMembers { object[name] = .string(value) }
        return Base64URL.encode(Array(SHA256.hash(data: JSONValue.object(object).serializedBytes())))
    }

    /// The key as DER SubjectPublicKeyInfo (RFC 5280 §4.1.2.7).
    public var publicKeyInfo: [UInt8] {
        // The values were checked when they came in, so there is always an encoding.
        (try? material.publicKeyInfo()) ?? []
    }

    /// Whether this key may verify signatures made with `algorithm`: its type fits, and its own `alg`, `use` and
    /// `key_ops` do not say otherwise.
    public func verifies(_ algorithm: SignatureAlgorithm) -> Bool {
        material.fits(algorithm) && self.algorithm.map { $0 == algorithm } ?? true && use.map { $0 == "sig" } ?? true
            && keyOps.map { $0.contains("verify") } ?? true
    }
}
