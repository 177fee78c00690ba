/// Classes of ASCII bytes, for grammars that are read byte by byte. No byte above 0x7F is in any of them.
///
/// Those that are asked of most bytes are inlinable, so that other modules do not make a call for each byte.
extension UInt8 {
    /// `0` to `9`.
    @inlinable package var isASCIIDigit: Bool { self >= 0x30 && self <= 0x39 }

    /// `A` to `Z` and `a` to `z`.
    @inlinable package var isASCIILetter: Bool { (self | 0x20) >= 0x61 && (self | 0x20) <= 0x7A }

    /// A letter or a digit.
    @inlinable package var isASCIIAlphanumeric: Bool { isASCIIDigit || isASCIILetter }

    /// `VCHAR` (RFC 5234 appendix B.1): `!` to `~`, without the space.
    @inlinable package var isASCIIVisible: Bool { self > 0x20 && self < 0x7F }

    /// A visible byte or the space.
    @inlinable package var isASCIIPrintable: Bool { self >= 0x20 && self < 0x7F }

    /// An unreserved byte of a URI (RFC 3986 §2.3).
    package var isURIUnreserved: Bool {
        switch self {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: isASCIIAlphanumeric
        }
    }

    /// The value of a hexadecimal digit in either case; `nil` for every other byte.
    package var hexDigitValue: UInt8? {
        if isASCIIDigit { return self - UInt8(ascii: "0") }
        let lower = asciiLowercased
        return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "f") ? lower - UInt8(ascii: "a") + 10 : nil
    }

    /// A byte of a `token` (RFC 9110 §5.6.2).
    package var isHTTPToken: Bool {
        switch self {
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: isASCIIAlphanumeric
        }
    }

    /// The byte with `A` to `Z` in lower case; everything else as it is.
    @inlinable package var asciiLowercased: UInt8 { self >= 0x41 && self <= 0x5A ? self | 0x20 : self }
}

extension StringProtocol {
    /// `A` to `Z` in lower case; nothing else changes, whatever the locale.
    package var asciiLowercased: String { String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self) }

    /// Whether both are the same but for the case of `A` to `Z`.
    package func equalsIgnoringASCIICase(_ other: some StringProtocol) -> Bool {
        utf8.lazy.map(\.asciiLowercased).elementsEqual(other.utf8.lazy.map(\.asciiLowercased))
    }
}
