package import AssentCore
import Crypto

/// How a bearer value (session token, code, refresh token) is looked up: by its SHA-256, so that someone who reads the
/// database cannot use it. The values have 256 random bits, so neither salt nor stretching would add anything.
package enum TokenHash {
    /// The unpadded base64url of the SHA-256 of the token's UTF-8.
    package static func of(_ token: Secret) -> String {
        token.withUnsafeBytes { bytes in SHA256.hash(data: bytes).withUnsafeBytes { Base64URL.encode($0) } }
    }
}
