#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Where randomness comes from: a seam, so that a test can fix it.
public protocol RandomSource: Sendable {
    /// `count` bytes that nobody can predict.
    func bytes(_ count: Int) -> [UInt8]
}

extension RandomSource {
    /// An unguessable identifier: `byteCount` random bytes as unpadded base64url. 32 bytes give 256 bits.
    public func token(byteCount: Int = 32) -> String {
        Base64URL.encode(bytes(byteCount))
    }

    /// A random UUID (RFC 9562 §5.4) in lower case, the form that AM's clients expect of a transaction id.
    public func uuid() -> String {
        var value = bytes(16)
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        let parts = [value[..<4], value[4..<6], value[6..<8], value[8..<10], value[10...]]
        return parts.map(Hex.encode).joined(separator: "-")
    }
}

/// The operating system's cryptographically secure generator.
public struct SystemRandom: RandomSource {
    /// The operating system's generator.
    public init() {}

    /// `count` bytes from the operating system.
    public func bytes(_ count: Int) -> [UInt8] {
        #if os(Linux)
        if (1...256).contains(count), let bytes = Self.entropy(count) { return bytes }
        #endif
        var generator = SystemRandomNumberGenerator()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 7)
        while bytes.count < count { withUnsafeBytes(of: generator.next()) { bytes += $0 } }
        return Array(bytes.prefix(count))
    }

    #if os(Linux)
    /// The generator of the standard library asks the system for 8 bytes at a time; this asks once.
    private static func entropy(_ count: Int) -> [UInt8]? {
        var isFilled = false
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, end in
            isFilled = buffer.baseAddress.map { getentropy($0, count) == 0 } ?? false
            end = isFilled ? count : 0
        }
        return isFilled ? bytes : nil
    }
    #endif
}
