public import AssentCore

/// Why a journey cannot go on, other than by the server's no. Failures are equal when their codes are.
public struct JourneyFailure: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people; never a secret.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public let suggestion: String?

    /// The HTTP status, when there was a reply.
    public let status: Int?

    /// What was not answered, with code ``Code/unanswered``.
    public let prompts: [String]

    /// Why there is no reply, with code ``Code/transport``.
    public let transportError: HTTPTransportError?

    /// A failure with its explanation.
    public init(
        _ code: Code, _ detail: String, suggestion: String? = nil, status: Int? = nil, prompts: [String] = [],
        transportError: HTTPTransportError? = nil
    ) {
        self.code = code
        self.detail = detail
        self.suggestion = suggestion ?? transportError?.suggestion ?? code.usualAdvice
        self.status = status
        self.prompts = prompts
        self.transportError = transportError
    }

    /// Whether the same may work later: there was no reply for a reason that passes, or the server is overloaded.
    public var isTransient: Bool {
        if let transportError { return transportError.isTransient }
        return code == .timedOut || status.map { $0 >= 500 || $0 == 429 || $0 == 408 } ?? false
    }

    /// The status.
    public var notes: [String] { status.map { ["status \($0)"] } ?? [] }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The configuration cannot be used.
        public static let invalidConfiguration = Code("invalidConfiguration")
        /// The URL that was to resume a journey has no `suspendedId`, or several.
        public static let invalidResumeURL = Code("invalidResumeURL")
        /// There is no reply; see ``JourneyFailure/transportError``.
        public static let transport = Code("transport")
        /// The task was cancelled.
        public static let cancelled = Code("cancelled")
        /// The time for the answer passed, as said by something between here and the server.
        public static let timedOut = Code("timedOut")
        /// The server wants to lead elsewhere. Nothing is followed.
        public static let unexpectedRedirect = Code("unexpectedRedirect")
        /// A status that means nothing here.
        public static let unexpectedStatus = Code("unexpectedStatus")
        /// The reply is not what a journey answers: no JSON object, or without what must be there.
        public static let malformedReply = Code("malformedReply")
        /// The reply is larger than allowed.
        public static let replyTooLarge = Code("replyTooLarge")
        /// The step is being sent already, or was answered.
        public static let stepInUse = Code("stepInUse")
        /// Something that needs an answer has none; see ``JourneyFailure/prompts``.
        public static let unanswered = Code("unanswered")
        /// The same answers were about to be sent to the same questions once more than
        /// ``JourneyLimits/sameAnswers`` allows.
        public static let repeatedAnswers = Code("repeatedAnswers")
        /// The journey has more steps, or waits longer, than allowed.
        public static let tooManySteps = Code("tooManySteps")
        /// The journey goes on by a link that the user gets.
        public static let suspended = Code("suspended")
        /// The journey ended well, but its session could not be kept.
        public static let storageFailed = Code("storageFailed")
        /// The key that the session belongs to, or would belong to, cannot be used now. Nothing was sent.
        public static let keyUnavailable = Code("keyUnavailable")
        /// The key that the session belongs to is gone, so the session is of no use. Nothing was sent.
        public static let keyLost = Code("keyLost")
        /// The server did not accept the proof of the key of the session or the journey, and looked at nothing else.
        /// The step waits as before: it may be sent again, with another proof.
        public static let proofRefused = Code("proofRefused")
        /// The user declined.
        public static let declined = Code("declined")
    }
}

extension JourneyFailure.Code {
    /// What to do where the failure says nothing else.
    fileprivate var usualAdvice: String? {
        switch self {
        case .invalidConfiguration: "Correct the configuration."
        case .invalidResumeURL: "Use the whole link of the newest mail."
        case .transport, .timedOut: "Check the network connection and send the step again."
        case .cancelled, .tooManySteps: "Start the journey again."
        case .unexpectedRedirect, .unexpectedStatus, .malformedReply: "Check the server's URL and the realm."
        case .replyTooLarge: "Raise the limit if a reply like this is expected."
        case .stepInUse: "Wait for what comes of it, and go on with that."
        case .unanswered: "Answer what the step asks, or say that it is to be sent unanswered."
        case .repeatedAnswers: "Start the journey again with another answer."
        case .suspended: "Open the link to go on."
        case .storageFailed: "Check where session and tokens are kept, and sign in again."
        case .keyUnavailable: "Check the key provider, and try again."
        case .keyLost: "Sign in again."
        case .proofRefused: "Sign in again if it happens twice."
        case .declined: "Start again if that was a mistake."
        default: nil
        }
    }
}
