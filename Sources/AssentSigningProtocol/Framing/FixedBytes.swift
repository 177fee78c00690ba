package import AssentCore

/// How many bytes a ``FixedBytes`` has.
package protocol FixedByteCount: Sendable {
    static var byteCount: Int { get }
}

/// A value of a fixed number of bytes that messages carry as base64url, and that hashes take as that text.
package struct FixedBytes<Size: FixedByteCount>: Hashable, Sendable, CustomStringConvertible {
    package let bytes: [UInt8]

    /// The value as it stands in messages: base64url without padding.
    package var text: String { Base64URL.encode(bytes) }

    package var description: String { text }

    /// The value with these bytes; `nil` when it is not exactly as many as it should be.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Size.byteCount else { return nil }
        self.bytes = Array(bytes)
    }

    /// Reads the one text that a value has; `nil` for every other text.
    package init?(text: some StringProtocol) {
        guard text.utf8.count == (Size.byteCount * 4 + 2) / 3, let bytes = Base64URL.decode(text) else { return nil }
        self.init(bytes: bytes)
    }

    /// A value that nobody can predict.
    package init(random: any RandomSource) {
        bytes = random.bytes(Size.byteCount)
    }

    init(unchecked bytes: [UInt8]) { self.bytes = bytes }
}

/// 16 bytes.
package enum SixteenBytes: FixedByteCount { package static let byteCount = 16 }

/// 32 bytes of a hash.
package enum HashBytes: FixedByteCount { package static let byteCount = 32 }

/// 32 bytes of a thumbprint.
package enum ThumbprintBytes: FixedByteCount { package static let byteCount = 32 }

/// 32 random bytes.
package enum RandomBytes: FixedByteCount { package static let byteCount = 32 }

/// An identifier: `did`, `pid`, `txn`, `jti`, `rid`, `unl`, a document's `nonce`, and a handle `h`.
package typealias SigningID = FixedBytes<SixteenBytes>

/// A hash of the protocol.
package typealias SigningHash = FixedBytes<HashBytes>

/// The RFC 7638 SHA-256 thumbprint of a key: its `kid`.
package typealias KeyThumbprint = FixedBytes<ThumbprintBytes>

/// nonceD, nonceS or `echo`.
package typealias SigningNonce = FixedBytes<RandomBytes>

extension FixedBytes<HashBytes> {
    /// The plain SHA-256 of `bytes`, as `bh` in a proof.
    package init(sha256 bytes: some Collection<UInt8>) { self.init(unchecked: SHA2.sha256(bytes)) }
}
