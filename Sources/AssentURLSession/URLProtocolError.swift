public import AssentCore

/// Why a request could not be sent by ``AssentURLProtocol``, or its reply could not be handed over. Errors are equal
/// when their codes are.
public struct URLProtocolError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people; never a secret.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public let suggestion: String?

    /// An error with its explanation.
    public init(_ code: Code, _ detail: String, suggestion: String? = nil) {
        self.code = code
        self.detail = detail
        self.suggestion = suggestion
    }

    static func unsupported(_ detail: String) -> URLProtocolError {
        URLProtocolError(
            .taskNotSupported, "\(detail) Nothing was sent.",
            suggestion: "Use a data task, or send the request by AuthorizedClient.")
    }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The class has no client any more. Nothing was sent.
        public static let noClient = Code("noClient")
        /// This kind of task cannot be used with a class of one's own. Nothing was sent.
        public static let taskNotSupported = Code("taskNotSupported")
        /// The request's URL, method or header fields cannot be sent. Nothing was sent.
        public static let invalidRequest = Code("invalidRequest")
        /// The request's content has more bytes than ``AssentURLProtocol/bodyLimit``. Nothing was sent.
        public static let bodyTooLarge = Code("bodyTooLarge")
        /// The request's stream failed, or gave nothing for as long as a read may take. Nothing was sent.
        public static let bodyFailed = Code("bodyFailed")
        /// The server wants a user name and a password (`Basic`), for which `URLSession` would wait without end here.
        public static let challengeNotSupported = Code("challengeNotSupported")
        /// There is a reply that `URLSession` has no form for. The request may have had an effect.
        public static let malformedReply = Code("malformedReply")
    }
}
