public import AssentCore
import Crypto

/// A shared key that signs with HS256 (RFC 7518 §3.2).
public struct HMACSigningKey: SigningKey {
    /// A shorter key is refused (RFC 7518 §3.2).
    public static let minimumBytes = 32

    private let key: Secret

    /// Signs with `key`.
    ///
    /// - Throws: ``JOSEError`` with `weakKey` below ``minimumBytes``.
    public init(_ key: Secret) throws(JOSEError) {
        guard key.count >= Self.minimumBytes else { throw JOSEError(.weakKey, "The HS256 key has \(key.count) bytes.") }
        self.key = key
    }

    /// `HS256`.
    public var algorithm: SignatureAlgorithm { .hs256 }

    /// Empty: there is no public part.
    public var publicKeyInfo: [UInt8] { [] }

    /// The 32 bytes of the authentication code.
    public func signature(for message: [UInt8]) async throws -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: message, using: key.symmetricKey))
    }
}
