/// Why a key could not be made, found or used. Errors are equal when their codes are; the detail never holds a secret.
public struct KeyProviderError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public let suggestion: String?

    /// How many tries are left before the provider locks, when it says so (with `wrongSecret`).
    public let attemptsLeft: Int?

    /// An error with its explanation.
    public init(_ code: Code, _ detail: String, suggestion: String? = nil, attemptsLeft: Int? = nil) {
        self.code = code
        self.detail = detail
        self.suggestion = suggestion
        self.attemptsLeft = attemptsLeft
    }

    /// Whether the same call may succeed later: the provider is not there now, or is busy.
    public var isTransient: Bool { code == .unavailable }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The token, TPM, module or file is not there, was removed while in use, or is busy. Trying later may help.
        public static let unavailable = Code("unavailable")
        /// The PIN or passphrase is wrong.
        public static let wrongSecret = Code("wrongSecret")
        /// Too many wrong tries: the provider refuses every secret until it is unlocked or some time has passed.
        public static let lockedOut = Code("lockedOut")
        /// The user was needed and did not agree, or there was nobody to ask.
        public static let userAbsent = Code("userAbsent")
        /// The provider destroyed the key, for example because a fingerprint was enrolled. It does not come
        /// back.
        public static let keyLost = Code("keyLost")
        /// There is a key of this name already.
        public static let keyExists = Code("keyExists")
        /// This provider cannot do that, now or later.
        public static let unsupported = Code("unsupported")
        /// The name, the point or the message is not acceptable.
        public static let invalidInput = Code("invalidInput")
        /// What the provider keeps was changed, or its answer makes no sense.
        public static let tampered = Code("tampered")
        /// A newer version of this library wrote what the provider keeps.
        public static let newerFormat = Code("newerFormat")
        /// An older version of this library wrote what the provider keeps.
        public static let olderFormat = Code("olderFormat")
        /// The operation failed inside the provider: no memory, no space, a hardware fault.
        public static let failed = Code("failed")
    }
}
