public import AssentSigningProtocol

extension PasswordRule {
    /// What is wrong with a password that breaks the rule, for people.
    public var sentence: String {
        switch self {
        case .unusable: "It must have 1 to 128 bytes of text."
        case .minimumLength(let count): "It must have at least \(count) characters."
        case .maximumLength(let count): "It must have at most \(count) characters."
        case .minimum(let kind, let count): "It must have at least \(count) of these: \(kind.words)."
        case .maximum(let kind, let count): "It must have at most \(count) of these: \(kind.words)."
        case .sequence: "It is a sequence or a repetition, which others would guess."
        case .common: "It is one of the most common ones, or a date, which others would guess."
        case .history: "It was used before."
        case .other: "It is the password of the other keys."
        }
    }
}

extension PasswordCharacters {
    fileprivate var words: String {
        switch self {
        case .upper: "capital letters"
        case .lower: "small letters"
        case .alpha: "letters"
        case .numeric: "digits"
        case .nonAlpha: "characters other than letters"
        }
    }
}
