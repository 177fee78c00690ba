import AssentCore

extension UInt8 {
    /// Whether it stands in a compact message: a character of base64url, or the dot between two parts.
    var isCompact: Bool {
        switch self {
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): true
        default: isASCIIAlphanumeric
        }
    }

    /// Whether it stands in an issuer's name: visible, and no delimiter that an `https` URL would have to escape, or
    /// that begins a query, a fragment or what stands behind a user's name.
    var isIssuerName: Bool {
        switch self {
        case UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "@"), UInt8(ascii: "\\"), UInt8(ascii: "\""),
            UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"),
            UInt8(ascii: "|"), UInt8(ascii: "}"):
            false
        default: isASCIIVisible
        }
    }
}
