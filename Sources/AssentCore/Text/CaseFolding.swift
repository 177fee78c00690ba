/// One form for all texts that some program takes for the same because it ignores case.
enum CaseFolding {
    /// The form of `text`: two texts with the same simple or full case folding (Unicode 15 §3.13) have the same one,
    /// and so have some more. Compared as a `String` it also does not tell composed from decomposed letters.
    ///
    /// Folding sets have members that lower case alone does not bring together (`ſ` and `s`, `ς` and `σ`); upper case
    /// does.
    static func fold(_ text: String) -> String {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.lowercased() }
        return apply(apply(apply(text, \.lowercaseMapping), \.uppercaseMapping), \.lowercaseMapping)
    }

    private static func apply(_ text: String, _ mapping: KeyPath<Unicode.Scalar.Properties, String>) -> String {
        text.unicodeScalars.reduce(into: "") { $0 += $1.properties[keyPath: mapping] }
    }
}
