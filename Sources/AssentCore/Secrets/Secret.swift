public import Crypto
import Foundation

/// A value that must never be shown: a password, a token, a key.
///
/// Its descriptions and its mirror show nothing, two secrets compare in constant time, and the bytes are wiped when the
/// last copy is released (they live in a swift-crypto `SymmetricKey`). Strings handed out by ``reveal()`` are ordinary
/// Swift strings, which cannot be wiped: reveal late and keep nothing.
public struct Secret: Sendable, Equatable {
    private let storage: SymmetricKey

    /// Keeps `string` as UTF-8.
    public init(_ string: String) {
        self.init(bytes: string.utf8)
    }

    /// Keeps `bytes` as they are.
    public init(bytes: some Sequence<UInt8>) {
        // Without a copy in between, which nobody would wipe.
        storage = bytes.withContiguousStorageIfAvailable { SymmetricKey(data: $0) } ?? SymmetricKey(data: Array(bytes))
    }

    /// Keeps the bytes of a symmetric key.
    public init(_ key: SymmetricKey) {
        storage = key
    }

    /// The number of bytes.
    public var count: Int { storage.bitCount / 8 }

    /// Whether there are no bytes at all.
    public var isEmpty: Bool { count == 0 }

    /// The secret as text. Bytes that are not UTF-8 come back as replacement characters.
    public func reveal() -> String {
        storage.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// A copy of the bytes.
    public func revealBytes() -> [UInt8] {
        storage.withUnsafeBytes { Array($0) }
    }

    /// The secret as a swift-crypto key, without a copy.
    public var symmetricKey: SymmetricKey { storage }

    /// Calls `body` with the bytes, which are valid only during the call.
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try storage.withUnsafeBytes(body)
    }

    /// Whether both are the same bytes in the same memory, as copies of one value are. No byte is looked at, so this
    /// shows nothing of them; values that were made from the same text are not the same in this sense.
    package func isCopy(of other: Secret) -> Bool {
        withUnsafeBytes { own in
            other.withUnsafeBytes { $0.baseAddress == own.baseAddress && $0.count == own.count }
        }
    }

    /// Compares in constant time; only the lengths may show.
    public static func == (left: Secret, right: Secret) -> Bool {
        left.storage == right.storage
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always the same text, whatever the secret is.
    public var description: String { "«secret»" }

    /// Always the same text, whatever the secret is.
    public var debugDescription: String { "«secret»" }

    /// A mirror without children, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
