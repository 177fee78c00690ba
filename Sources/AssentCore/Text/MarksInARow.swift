/// Marks (accents and the like) one behind the other, as they would stand on one letter.
///
/// Swift compares and hashes texts in a normal form, for which it sorts the marks of a letter, in a time that grows
/// with the square of their number, and so does Foundation: 64 KiB of them take half a second each time. So a peer's
/// text is bounded where it comes in, and nobody who looks at it later need think of that.
package enum MarksInARow {
    /// The most that a text may have. No language needs more than a few, and Unicode's own bound is 30 (UAX #15 §13).
    package static let limit = 64

    /// Whether a text has more.
    package static func areTooMany(in text: String) -> Bool {
        // A mark has two bytes or more.
        guard text.utf8.count > 2 * limit, !isASCII(text) else { return false }
        var count = 0
        for scalar in text.unicodeScalars {
            count = isMark(scalar) ? count + 1 : 0
            if count > limit { return true }
        }
        return false
    }

    /// Whether a text has nothing but ASCII, as access tokens do. A loop without an early end takes many bytes at once.
    private static func isASCII(_ text: String) -> Bool {
        let bits = text.utf8.withContiguousStorageIfAvailable { $0.reduce(UInt8(0), |) }
        return (bits ?? text.utf8.reduce(UInt8(0), |)) < 0x80
    }

    /// Whether a character is one that may be sorted: all of them are marks, or become marks where characters of other
    /// widths are taken for the same.
    static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        // The first mark is U+0300.
        guard scalar.value >= 0x300 else { return false }
        return switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: true
        // The narrow sound marks of Japanese.
        default: scalar.value == 0xFF9E || scalar.value == 0xFF9F
        }
    }
}
