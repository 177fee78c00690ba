package import AssentCore
import Crypto

/// How a JWE's content encryption key gets to the recipient: its `alg` (RFC 7518 §4).
public struct KeyManagement: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The value of `alg`.
    public let rawValue: String

    /// Takes the value of `alg` as it is.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The value of `alg`.
    public var description: String { rawValue }

    /// The key is agreed on with a fresh P-256 key.
    public static let ecdhES = KeyManagement(rawValue: "ECDH-ES")
    /// A key agreed on with a fresh P-256 key wraps the content key.
    public static let ecdhESA256KW = KeyManagement(rawValue: "ECDH-ES+A256KW")
    /// The content key is encrypted with RSA-OAEP, SHA-256 and MGF1 with SHA-256.
    public static let rsaOAEP256 = KeyManagement(rawValue: "RSA-OAEP-256")
    /// Both sides have the content key.
    public static let dir = KeyManagement(rawValue: "dir")

    static let supported: Set<KeyManagement> = [.ecdhES, .ecdhESA256KW, .rsaOAEP256, .dir]
}

/// The Concat KDF with SHA-256 as RFC 7518 §4.6.2 uses it, for keys of up to 256 bits (one round).
package enum ConcatKDF {
    package static func key(
        _ shared: Secret, algorithm: String, apu: [UInt8], apv: [UInt8], length: Int
    ) -> Secret {
        var hash = SHA256()
        func field(_ bytes: [UInt8]) {
            hash.update(data: bigEndian(UInt32(truncatingIfNeeded: bytes.count)))
            hash.update(data: bytes)
        }
        hash.update(data: bigEndian(UInt32(1)))
        shared.withUnsafeBytes { hash.update(bufferPointer: $0) }
        field(Array(algorithm.utf8))
        field(apu)
        field(apv)
        hash.update(data: bigEndian(UInt32(truncatingIfNeeded: length * 8)))
        return Secret(bytes: hash.finalize().prefix(length))
    }

    /// The key for a header: that of the content, or the one that wraps it.
    static func key(
        _ shared: Secret, algorithm: KeyManagement, encryption: ContentEncryption, header: JSONObject
    ) throws(JOSEError) -> Secret {
        func info(_ name: String) throws(JOSEError) -> [UInt8] {
            guard let value = header[name] else { return [] }
            guard let bytes = value.string.flatMap({ Base64URL.decode($0) }) else {
                throw JOSEError(.malformed, "The header member \(name) is not base64url.")
            }
            return bytes
        }
        let (apu, apv) = (try info("apu"), try info("apv"))
        return algorithm == .ecdhES
            ? key(shared, algorithm: encryption.rawValue, apu: apu, apv: apv, length: encryption.keyLength)
            : key(shared, algorithm: algorithm.rawValue, apu: apu, apv: apv, length: 32)
    }
}
