public import AssentCore

/// Why a one-time password could not be made or its settings were refused.
///
/// Errors are equal when their codes are; the detail never holds a secret or a code.
public struct OTPError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public var suggestion: String? { code.suggestion }

    /// An error with its explanation. Without one it has the sentence of its code.
    public init(_ code: Code, _ detail: String? = nil) {
        self.code = code
        self.detail = detail ?? code.sentence
    }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The secret is absent, empty, too long or not base 32.
        public static let invalidSecret = Code("invalidSecret")
        /// A number of digits that is not allowed.
        public static let invalidDigits = Code("invalidDigits")
        /// A time step that is not allowed.
        public static let invalidPeriod = Code("invalidPeriod")
        /// A counter that is not a whole number from 0 to 2^63-1.
        public static let invalidCounter = Code("invalidCounter")
        /// A hash algorithm that is not supported.
        public static let invalidAlgorithm = Code("invalidAlgorithm")
        /// A text that is not an OCRA suite.
        public static let invalidSuite = Code("invalidSuite")
        /// An input that the OCRA suite asks for is absent, of the wrong form, or not asked for.
        public static let invalidInput = Code("invalidInput")
        /// A text that is not an `otpauth` URI, or is one with forbidden content.
        public static let invalidURI = Code("invalidURI")
        /// A URI of another scheme, or for something else than HOTP or TOTP.
        public static let wrongScheme = Code("wrongScheme")
        /// Neither account nor issuer is given.
        public static let missingName = Code("missingName")
        /// A text or list that is longer than allowed.
        public static let tooLarge = Code("tooLarge")
    }
}

extension OTPError.Code {
    /// What the code means, for errors that say no more.
    fileprivate var sentence: String { Self.sentences[self] ?? "It was refused." }

    /// What somebody can do about it; `nil` when the code leaves nothing to do.
    fileprivate var suggestion: String? { Self.suggestions[self] }

    private static let sentences: [Self: String] = [
        .invalidSecret: "The secret is empty, or has more than 1,024 bytes.",
        .invalidDigits: "A code has 6 to 10 digits; this names another number.",
        .invalidPeriod: "A time step has 1 to 300 seconds; this names another length.",
        .invalidCounter: "A counter is a whole number from 0 to 9,223,372,036,854,775,807; this is not one.",
        .invalidAlgorithm: "The hash algorithm is not SHA1, SHA256 or SHA512.",
        .invalidSuite: "The text is not the name of an OCRA suite.",
        .invalidInput: "The inputs are not those that the OCRA suite names.",
        .invalidURI: "The text is not an otpauth: URI.",
        .wrongScheme: "The URI is not for HOTP or TOTP.",
        .missingName: "Neither the account nor the issuer has a name.",
        .tooLarge: "A text is longer than is accepted.",
    ]

    private static let suggestions: [Self: String] = [
        .invalidSuite: "A suite looks like OCRA-1:HOTP-SHA256-8:C-QN08-PSHA1 (RFC 6287 §6).",
        .invalidURI: "Copy it from the issuer again.",
        .wrongScheme: "Scan the code of an account with one-time passwords: otpauth://totp/… or otpauth://hotp/….",
        .missingName: "Name the account or the issuer.",
    ]
}
