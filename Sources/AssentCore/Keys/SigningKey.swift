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
    ///
    /// A key of a ``KeyProvider`` throws ``KeyProviderError``.
    func signature(for message: [UInt8]) async throws -> [UInt8]
}
