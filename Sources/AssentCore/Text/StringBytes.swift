extension String {
    /// The text that these bytes are in UTF-8; `nil` where they are not.
    package init?(utf8 bytes: ArraySlice<UInt8>) {
        // Nearly all texts are ASCII, and so valid. The standard library's own way is generic: for each text it looks
        // five types of an encoding up before it looks at a byte, which takes longer than to read a short text.
        guard bytes.withUnsafeBufferPointer({ $0.reduce(UInt8(0), |) < 0x80 }) else {
            guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
            self = text
            return
        }
        self = String(decoding: bytes, as: UTF8.self)
    }

    /// Whether all bytes of the text satisfy a condition. They are looked at where they lie in memory: through the
    /// text's own view that takes several times as long, and what is asked here is asked of all texts of each call.
    @inlinable package func allBytes(satisfy condition: (UInt8) -> Bool) -> Bool {
        utf8.withContiguousStorageIfAvailable { $0.allSatisfy(condition) } ?? utf8.allSatisfy(condition)
    }

    /// Whether two texts have the same bytes in UTF-8. Swift's `==` also takes canonical equivalents for equal.
    package func hasSameBytes(as other: String) -> Bool {
        // Mostly the lengths differ, which are known.
        guard utf8.count == other.utf8.count else { return false }
        let isSame = utf8.withContiguousStorageIfAvailable { own -> Bool in
            other.utf8.withContiguousStorageIfAvailable { own.elementsEqual($0) } ?? own.elementsEqual(other.utf8)
        }
        return isSame ?? utf8.elementsEqual(other.utf8)
    }
}
