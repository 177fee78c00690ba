public import AssentCore
import AssentTokens

/// Why a protected request did not get through. Errors are equal when their codes are.
public struct AuthorizationError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people; never a secret.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public let suggestion: String?

    /// With what to ask for the outcome, or to send an approved request that did not leave; see
    /// ``AuthorizedClient/ask(_:about:)``.
    public let pending: PendingRequest?

    /// With `strongerSignInNeeded`: the classes of sign-ins that would do (`acr_values`), the preferred one first.
    public let acrValues: [String]

    /// With `strongerSignInNeeded`: how many seconds ago the user may have signed in at most (`max_age`), if the
    /// resource says so.
    public let maxAge: Int?

    /// Why the approved request has no answer, when the transport is the reason.
    public let transportError: HTTPTransportError?

    /// An error with its explanation.
    public init(
        _ code: Code, _ detail: String, suggestion: String? = nil, pending: PendingRequest? = nil,
        transportError: HTTPTransportError? = nil, acrValues: [String] = [], maxAge: Int? = nil
    ) {
        self.code = code
        self.detail = detail
        self.suggestion = suggestion ?? code.usualAdvice
        self.pending = pending
        self.transportError = transportError
        self.acrValues = acrValues
        self.maxAge = maxAge
    }

    /// The transaction's id, and what sign-in is wanted.
    public var notes: [String] {
        (pending.map { ["transaction \($0.transactionID)"] } ?? [])
            + (acrValues.isEmpty ? [] : ["acr_values \(acrValues.joined(separator: " "))"])
            + (maxAge.map { ["max_age \($0)"] } ?? [])
    }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The configuration cannot be used.
        public static let invalidConfiguration = Code("invalidConfiguration")
        /// The request's URL cannot be used.
        public static let invalidRequest = Code("invalidRequest")
        /// The server wants the user's approval, but the call names no handler to ask.
        public static let approvalNeeded = Code("approvalNeeded")
        /// A call that was sent from the handler of an approval wants an approval itself: the question that is open
        /// would wait for this one, and this one for it. The request had no effect.
        public static let nestedApproval = Code("nestedApproval")
        /// The server wants something that this library cannot do.
        public static let unsupportedAdvice = Code("unsupportedAdvice")
        /// The resource sends its users to another server than the configured one.
        public static let untrustedAdvice = Code("untrustedAdvice")
        /// Nobody is signed in by a journey, so nobody can approve; after a sign-in in a browser there are tokens and
        /// no session.
        public static let noSession = Code("noSession")
        /// The request's body can be sent only once, so it cannot be repeated after an approval.
        public static let bodyNotReplayable = Code("bodyNotReplayable")
        /// What the server asks to approve is not the request that would be repeated.
        public static let approvalForAnotherRequest = Code("approvalForAnotherRequest")
        /// The server does not say what is being approved, and the configuration insists on that.
        public static let approvalNotBound = Code("approvalNotBound")
        /// The resource wants its user to have signed in more strongly or more recently (RFC 9470), and names no
        /// journey for it. The request had no effect.
        public static let strongerSignInNeeded = Code("strongerSignInNeeded")
        /// The user declined.
        public static let declined = Code("declined")
        /// The approval came too late: the server had forgotten what it was for. The request had no effect.
        public static let expired = Code("expired")
        /// The user did not answer within the policy's patience, or another question was open for all of it. The
        /// request had no effect.
        public static let timedOut = Code("timedOut")
        /// So many calls wait for the user already that this one may not. The request had no effect.
        public static let tooManyWaiting = Code("tooManyWaiting")
        /// The task was cancelled while the user was asked, or while another question was open. The request had no
        /// effect.
        public static let cancelled = Code("cancelled")
        /// The journey of a transaction ended with another session than the one it was to approve for, or somebody has
        /// signed out, or in, while the call waited or its user was asked. The request had no effect.
        public static let sessionChanged = Code("sessionChanged")
        /// The server asks again for what was just done. The request had no effect.
        public static let refused = Code("refused")
        /// The approved request was not sent, or was refused before it was looked at: the access token was not
        /// accepted, or its proof wanted another nonce. It may be sent with ``AuthorizationError/pending``.
        public static let notSent = Code("notSent")
        /// The approved request was sent, and nobody can say whether it had an effect. Ask with
        /// ``AuthorizationError/pending`` before doing anything else.
        public static let outcomeUnknown = Code("outcomeUnknown")
    }
}

extension AuthorizationError.Code {
    /// What to do where the error says nothing else.
    fileprivate var usualAdvice: String? {
        switch self {
        case .invalidConfiguration: "Correct the configuration."
        case .invalidRequest: "Correct the URL, or name its origin among the configured resources."
        case .approvalNeeded: "Send the request with a handler that asks the user."
        case .nestedApproval: "Send the request when the handler has returned."
        case .unsupportedAdvice: "Ask the server's operator for a policy that wants a transaction or a journey."
        case .untrustedAdvice: "Approve nothing, and tell the operator of the resource."
        case .noSession: "Sign in by a journey."
        case .bodyNotReplayable: "Give the content as bytes, or as a stream that can start over."
        case .approvalForAnotherRequest:
            "Approve nothing. Send the request again; if it happens again, tell the operator."
        case .approvalNotBound: "Use a server that states what is approved, or do without requiresBinding."
        case .strongerSignInNeeded:
            "Sign in again with the acr_values and the max_age of this error among the parameters."
        case .declined: "Send the request again to be asked again."
        case .expired, .timedOut, .cancelled: "Send the request again to be asked again."
        case .tooManyWaiting: "Send the request again when the user has answered the others."
        case .sessionChanged, .refused: "Send the request again; it needs a new approval."
        case .notSent: "Send it as a question about the pending request; the user is not asked again."
        case .outcomeUnknown: "Ask for the outcome before you send it again."
        default: nil
        }
    }
}

/// A request that was approved: with what to name it when asking for its outcome.
public struct PendingRequest: Hashable, Sendable {
    /// The transaction's id.
    public let transactionID: String

    /// The `Idempotency-Key` that the request carried; `nil` for a request without effect.
    public let idempotencyKey: String?

    /// Whose it is; `nil` when only the ids were kept.
    let signIn: SignInMark?

    /// A request by its ids, for example kept from before a restart.
    public init(transactionID: String, idempotencyKey: String?) {
        self.init(transactionID: transactionID, idempotencyKey: idempotencyKey, of: nil)
    }

    init(transactionID: String, idempotencyKey: String?, of signIn: SignInMark?) {
        self.transactionID = transactionID
        self.idempotencyKey = idempotencyKey
        self.signIn = signIn
    }

    /// Whether the ids are the same.
    ///
    /// - Parameters:
    ///   - left: a request.
    ///   - right: another one.
    /// - Returns: whether they are.
    public static func == (left: PendingRequest, right: PendingRequest) -> Bool {
        left.transactionID == right.transactionID && left.idempotencyKey == right.idempotencyKey
    }

    /// Hashes the ids.
    ///
    /// - Parameter hasher: what takes them.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(transactionID)
        hasher.combine(idempotencyKey)
    }
}
