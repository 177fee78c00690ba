import AssentCore
import Crypto

/// The hash under the HMAC of a one-time password.
public enum OTPAlgorithm: String, Hashable, Sendable, CaseIterable {
    /// The default everywhere. HMAC does not suffer from SHA-1's collisions.
    case sha1 = "SHA1"
    /// SHA-256.
    case sha256 = "SHA256"
    /// SHA-512.
    case sha512 = "SHA512"

    /// The algorithm of this name in either case (`SHA1`, `sha256`); `nil` for others.
    public init?(name: String) {
        self.init(rawValue: name.uppercased())
    }

    func hmac(_ message: [UInt8], key: Secret) -> [UInt8] {
        switch self {
        case .sha1: Array(HMAC<Insecure.SHA1>.authenticationCode(for: message, using: key.symmetricKey))
        case .sha256: Array(HMAC<SHA256>.authenticationCode(for: message, using: key.symmetricKey))
        case .sha512: Array(HMAC<SHA512>.authenticationCode(for: message, using: key.symmetricKey))
        }
    }
}

/// Dynamic truncation (RFC 4226 §5.3): `digits` decimal digits of a code of 20 bytes or more.
func truncated(_ code: [UInt8], digits: Int) -> String {
    let offset = Int((code.last ?? 0) & 15)
    let word = code.dropFirst(offset).prefix(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } & 0x7FFF_FFFF
    let modulus = (0..<digits).reduce(UInt64(1)) { value, _ in value * 10 }
    let text = String(word % modulus)
    return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
}

func bigEndian(_ value: UInt64) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
}
