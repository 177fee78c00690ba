public import AssentCore
import AssentSigningProtocol

/// Why a trust file was refused. Errors are equal when their codes are.
public struct TrustFileError: AssentError {
    /// What is wrong, as a stable name.
    public let code: Code

    /// What is wrong, in full sentences.
    public let detail: String

    /// What to do about it.
    public var suggestion: String? {
        "Get the file again from where it is published, and look at it with 'assent config check'."
    }

    /// An error with its explanation.
    package init(_ code: Code, _ detail: String) { (self.code, self.detail) = (code, detail) }

    /// What the reader of members says.
    init(_ error: SigningProtocolError, in document: String = "trust file") {
        let code: Code =
            switch error.code {
            case .tooLarge: .tooLarge
            case .missingMember: .missingMember
            case .unknownMember: .unknownMember
            case .malformed: .malformed
            default: .invalidMember
            }
        self.init(code, error.detail.replacing("The message", with: "The \(document)"))
    }

    /// A stable name of a reason; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// It does not have the form of a trust file: not a compact JWS, not JSON, a member twice.
        public static let malformed = Code("malformed")
        /// It has more than 64 KiB.
        public static let tooLarge = Code("tooLarge")
        /// It is another kind of signed message: another `typ`, or another algorithm than ES256.
        public static let wrongType = Code("wrongType")
        /// A member is missing.
        public static let missingMember = Code("missingMember")
        /// A member is not known.
        public static let unknownMember = Code("unknownMember")
        /// A member has another type, or is out of its bounds.
        public static let invalidMember = Code("invalidMember")
        /// It is for another app, platform or environment.
        public static let wrongAudience = Code("wrongAudience")
        /// It is not the next version: an older one, the same, or one after a gap.
        public static let wrongVersion = Code("wrongVersion")
        /// The version before does not name the key that signed it.
        public static let unknownKey = Code("unknownKey")
        /// The signature is not good.
        public static let invalidSignature = Code("invalidSignature")
        /// It says that it is older than the version before.
        public static let wrongTime = Code("wrongTime")
    }
}
