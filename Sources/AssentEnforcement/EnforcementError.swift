public import AssentCore

/// Why a policy enforcement point has no decision. Nothing is allowed then. Errors are equal when their codes are.
public struct EnforcementError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people; never a secret.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public let suggestion: String?

    /// With `refused`: the status that the server answered with, 400, 413, 415 or 429.
    public let status: Int?

    /// Whether the same question may be answered later.
    public var isTransient: Bool { code == .unavailable }

    /// Whether the same report is refused whenever it comes again.
    package var isLasting: Bool {
        switch code {
        // There were too many of them at once.
        case .refused: status != 429
        case .unknownPolicySet: true
        default: false
        }
    }

    /// An error with its explanation.
    public init(_ code: Code, _ detail: String, status: Int? = nil) {
        self.code = code
        self.detail = detail
        self.status = status
        suggestion = code.usualAdvice
    }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The configuration cannot be used.
        public static let invalidConfiguration = Code("invalidConfiguration")
        /// The server does not accept the service's own credentials.
        public static let notSignedIn = Code("notSignedIn")
        /// The service's own user may not ask about others.
        public static let forbidden = Code("forbidden")
        /// The realm has no such policy set.
        public static let unknownPolicySet = Code("unknownPolicySet")
        /// The server does not decide on this request, because of what is in it: the detail is for the client.
        public static let refused = Code("refused")
        /// The server cannot be reached, or cannot answer now.
        public static let unavailable = Code("unavailable")
        /// The server's reply cannot be used.
        public static let malformedReply = Code("malformedReply")
        /// There is no reply to a question that names a transaction: that may be used up now.
        public static let outcomeUnknown = Code("outcomeUnknown")
    }
}

extension EnforcementError.Code {
    /// What to do where the error says nothing else.
    fileprivate var usualAdvice: String? {
        switch self {
        case .invalidConfiguration: "Correct the configuration."
        case .notSignedIn:
            "Check name, password and journey of the service's own user, or id and secret of its client."
        case .forbidden:
            "Give the service's own user the role pep, in the realm of its users, or put its client into a group of "
                + "enforcement with this policy set and origin."
        case .unknownPolicySet: "Name a policy set of the realm."
        case .unavailable: "Carry nothing out, and have the client try again later."
        case .malformedReply: "Check that the URL is that of the server, without a proxy that changes replies."
        case .outcomeUnknown: "Carry nothing out. The client needs a new approval."
        default: nil
        }
    }
}
