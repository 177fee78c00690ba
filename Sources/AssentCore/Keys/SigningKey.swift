/// A signature algorithm by its JOSE name (RFC 7518 §3.1, RFC 8037, RFC 9864).
public struct SignatureAlgorithm: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The value of `alg`, for example `ES256`.
    public let rawValue: String

    /// Takes the value of `alg` as it is.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The value of `alg`.
    public var description: String { rawValue }

    /// ECDSA on P-256 with SHA-256.
    public static let es256 = SignatureAlgorithm(rawValue: "ES256")
    /// ECDSA on P-384 with SHA-384.
    public static let es384 = SignatureAlgorithm(rawValue: "ES384")
    /// ECDSA on P-521 with SHA-512.
    public static let es512 = SignatureAlgorithm(rawValue: "ES512")
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    public static let rs256 = SignatureAlgorithm(rawValue: "RS256")
    /// RSASSA-PSS with SHA-256.
    public static let ps256 = SignatureAlgorithm(rawValue: "PS256")
    /// Ed25519.
    public static let edDSA = SignatureAlgorithm(rawValue: "EdDSA")
    /// HMAC with SHA-256.
    public static let hs256 = SignatureAlgorithm(rawValue: "HS256")
}

/// A handle of a private key that signs. The key itself may sit in a token, a TPM or a Secure Enclave, so signing is
/// asynchronous and the private part is never visible.
public protocol SigningKey: Sendable {
    /// What it signs with.
    var algorithm: SignatureAlgorithm { get }

    /// The public part as DER SubjectPublicKeyInfo (RFC 5280 §4.1.2.7); empty for a symmetric key.
    var publicKeyInfo: [UInt8] { get }

    /// Signs `message` (not its digest). The result has JOSE's form: for ECDSA `r ‖ s` of fixed length (RFC 7518 §3.4).
    func signature(for message: [UInt8]) async throws -> [UInt8]
}

/// A handle of a private key that agrees on secrets (ECDH).
public protocol KeyAgreementKey: Sendable {
    /// The public part as an uncompressed point (X9.63: `04 ‖ x ‖ y`).
    var publicPoint: [UInt8] { get }

    /// The x coordinate of the shared point with the peer's uncompressed public point. Throws when that is not on the curve.
    func sharedSecret(with peer: [UInt8]) async throws -> Secret
}

/// Makes and finds keys that the app itself cannot read.
public protocol KeyProvider: Sendable {
    /// Whether keys can be made and used now, and why not.
    var availability: KeyAvailability { get async }

    /// What guards the keys.
    var protection: KeyProtection { get }

    /// The signing key called `name`, or `nil` when there is none.
    func signingKey(named name: String) async throws -> (any SigningKey)?

    /// Makes a signing key. Fails when one of that name exists.
    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey

    /// The key agreement key called `name`, or `nil` when there is none.
    func agreementKey(named name: String) async throws -> (any KeyAgreementKey)?

    /// Makes a P-256 key agreement key. Fails when one of that name exists.
    func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey

    /// Removes both kinds of key called `name`; nothing happens when there is none.
    func removeKey(named name: String) async throws
}

/// Whether a key provider can be used.
public enum KeyAvailability: Hashable, Sendable {
    /// It can.
    case available
    /// It cannot, for a reason that the user can act on.
    case unavailable(reason: String)
}

/// What guards a key.
public enum KeyProtection: String, Hashable, Sendable {
    /// A device that never gives the key out.
    case hardware
    /// Memory and files of this process.
    case software
}
