extension DisplayText {
    /// How many blanks may stand in a row: more would push what follows out of sight.
    private static let blankLimit = 3

    /// Whether a text is nothing but blanks, or has so many in a row that people may overlook what follows.
    package static func isBlankOrSpread(_ text: String) -> Bool {
        var run = 0
        var isBlank = true
        for scalar in text.unicodeScalars {
            run = scalar.properties.isWhitespace ? run + 1 : 0
            if run > blankLimit { return true }
            if run == 0 { isBlank = false }
        }
        return isBlank
    }

    /// A text set off from what stands beside it, for a terminal that orders right-to-left text: between isolates
    /// (Unicode UAX #9), if it has characters that are written from right to left.
    package static func setOff(_ text: String) -> String {
        text.unicodeScalars.contains(where: isRightToLeft) ? "\u{2068}\(text)\u{2069}" : text
    }

    /// Whether a character stands in a block of right-to-left scripts: Hebrew to Arabic Extended-A, the presentation
    /// forms, and the ancient and African ones of the first supplementary plane (UAX #44, `Bidi_Class`).
    private static func isRightToLeft(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x590...0x8FF, 0xFB1D...0xFDFF, 0xFE70...0xFEFF, 0x10800...0x10FFF, 0x1E800...0x1EFFF: true
        default: false
        }
    }
}
