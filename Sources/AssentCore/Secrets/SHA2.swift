import Crypto

/// SHA-2 digests (FIPS 180-4) as bytes.
public enum SHA2 {
    /// The SHA-256 of `bytes`: 32 bytes.
    public static func sha256(_ bytes: some Collection<UInt8>) -> [UInt8] {
        SHA256.hash(data: Array(bytes)).withUnsafeBytes { Array($0) }
    }

    /// The SHA-384 of `bytes`: 48 bytes.
    public static func sha384(_ bytes: some Collection<UInt8>) -> [UInt8] {
        SHA384.hash(data: Array(bytes)).withUnsafeBytes { Array($0) }
    }

    /// The SHA-512 of `bytes`: 64 bytes.
    public static func sha512(_ bytes: some Collection<UInt8>) -> [UInt8] {
        SHA512.hash(data: Array(bytes)).withUnsafeBytes { Array($0) }
    }
}
