/// Why a text from the wire was not accepted, or one could not be written.
///
/// Two errors are equal when their codes are. The detail names offsets and limits, never any of the text.
public struct WireError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people; none of the text.
    public let detail: String

    /// An error with its explanation.
    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// There are more bytes than allowed.
        public static let tooLarge = Code("tooLarge")
        /// There are more parts than allowed.
        public static let tooMany = Code("tooMany")
        /// The text does not follow its grammar.
        public static let malformed = Code("malformed")
        /// Something that must be there once is there twice.
        public static let duplicate = Code("duplicate")
        /// The text is well formed, but says something that is not acceptable.
        public static let refused = Code("refused")
    }
}
