public import AssentCore

/// Why a one-time password could not be made or its settings were refused.
///
/// Errors are equal when their codes are; the detail never holds a secret or a code.
public struct OTPError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people; may be empty where the code says it all.
    public let detail: String

    /// An error with its explanation.
    public init(_ code: Code, _ detail: String = "") {
        self.code = code
        self.detail = detail
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
