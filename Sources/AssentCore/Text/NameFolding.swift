import Foundation

/// One form for all names that some program takes for the same, and that people cannot tell apart.
package enum NameFolding {
    /// The form of `text`: two texts with the same simple or full case folding (Unicode 15 §3.13) have the same one,
    /// and so have texts that differ only by compatibility (`ﬁ`, `ａ`), by characters that nobody sees, by the width
    /// or number of blanks or by those at the ends, and some more.
    ///
    /// Folding sets have members that lower case alone does not bring together (`ſ` and `s`, `ς` and `σ`); upper case
    /// does. Turkish readers take `İ` for the capital of `i`, and `ı` for the small `I`.
    package static func fold(_ text: String) -> String {
        if text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) { return text.lowercased() }
        let cased = apply(apply(apply(text, \.lowercaseMapping), \.uppercaseMapping), \.lowercaseMapping)
        // Decomposed, an accent stands apart from its letter, wherever invisible characters were between them.
        var folded = ""
        var isAfterI = false
        var hasBlank = false
        for scalar in visible(cased).decomposedStringWithCompatibilityMapping.unicodeScalars {
            if scalar.properties.isWhitespace {
                hasBlank = true
                continue
            }
            let isDot = scalar.value == 0x307 && isAfterI
            isAfterI = scalar == "i"
            if isDot { continue }
            if hasBlank, !folded.isEmpty { folded += " " }
            hasBlank = false
            folded.unicodeScalars.append(scalar)
        }
        // Compatibility forms have cases of their own.
        return apply(folded, \.lowercaseMapping)
    }

    /// What is seen of `text`. What stood between its marks may be gone, and a long row of them takes a time that grows
    /// with the square of its length: what exceeds the bound of every text is left out, so that such names are alike.
    private static func visible(_ text: String) -> String {
        var seen = String.UnicodeScalarView()
        var marks = 0
        for scalar in text.unicodeScalars
        where scalar.properties.generalCategory != .format && !scalar.properties.isDefaultIgnorableCodePoint {
            marks = MarksInARow.isMark(scalar) ? marks + 1 : 0
            if marks <= MarksInARow.limit { seen.append(scalar) }
        }
        return String(seen)
    }

    private static func apply(_ text: String, _ mapping: KeyPath<Unicode.Scalar.Properties, String>) -> String {
        text.unicodeScalars.reduce(into: "") { $0 += $1.properties[keyPath: mapping] }
    }
}
