/// Why there is no reply.
///
/// Two errors are equal when their codes are; the rest explains. No text in it holds a header value, a body or a URL's
/// query.
public struct HTTPTransportError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people; never a secret.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public var suggestion: String? {
        mayHaveHadEffect ? "Find out what became of the request before you send it again." : given ?? code.usualAdvice
    }

    /// Whether the server may have acted on the request. Then it must not be sent again without asking for the outcome
    /// first.
    public let mayHaveHadEffect: Bool

    /// With `integrityFailed`: what was found.
    public private(set) var probe: IntegrityKind?

    /// Whether a connection that had served before ended without a byte of a reply: most likely nobody has read the
    /// request, but nobody knows.
    package private(set) var wasStale = false

    /// Whether no reply came that was sealed for the request: anyone who ends TLS may have taken it away, so nobody
    /// knows what became of the request.
    package private(set) var hadNoSealedReply = false

    /// Whether a layer that makes a new proof may send the call once more, if the call is harmless.
    package var mayBeSentWithNewProof: Bool { wasStale || hadNoSealedReply }

    private let given: String?

    /// An error with its explanation.
    public init(_ code: Code, _ detail: String, suggestion: String? = nil, mayHaveHadEffect: Bool = false) {
        self.code = code
        self.detail = detail
        given = suggestion
        self.mayHaveHadEffect = mayHaveHadEffect
    }

    /// A probe has found something that is refused; nothing was sent.
    package static func integrityFailed(_ probe: IntegrityKind, _ finding: String) -> HTTPTransportError {
        var error = HTTPTransportError(.integrityFailed, "Nothing was sent: \(finding)")
        error.probe = probe
        return error
    }

    /// The same failure, known to have come after the request may have taken effect.
    public func afterSending() -> HTTPTransportError {
        var error = HTTPTransportError(code, detail, suggestion: given, mayHaveHadEffect: true)
        error.probe = probe
        error.wasStale = wasStale
        error.hadNoSealedReply = hadNoSealedReply
        return error
    }

    /// The same failure, known to have left a call without a sealed reply.
    package func withoutSealedReply() -> HTTPTransportError {
        var error = afterSending()
        error.hadNoSealedReply = true
        return error
    }

    /// The same failure, known to have come before anything of the call was sent.
    package func beforeSending() -> HTTPTransportError {
        var error = HTTPTransportError(code, detail, suggestion: given, mayHaveHadEffect: false)
        error.probe = probe
        return error
    }

    /// The same failure, known to be that of a kept connection which had ended.
    package func onStaleConnection() -> HTTPTransportError {
        var error = self
        error.wasStale = true
        return error
    }

    /// Whether the same call may succeed later: nothing answered, or there is no free connection, and the request
    /// cannot have had an effect.
    public var isTransient: Bool {
        let codes: [Code] = [
            .nameNotResolved, .connectFailed, .timedOut, .connectionClosed, .tooManyRequests, .serverNotReachable,
        ]
        return !mayHaveHadEffect && codes.contains(code)
    }

    /// Whether the request may have had an effect.
    public var notes: [String] { mayHaveHadEffect ? ["the request may have had an effect"] : [] }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The URL is not one that this transport may call.
        public static let invalidRequest = Code("invalidRequest")
        /// The host's name has no address, or the resolver could not be asked.
        public static let nameNotResolved = Code("nameNotResolved")
        /// The TCP connection failed: refused, or the host cannot be reached.
        public static let connectFailed = Code("connectFailed")
        /// The certificate chain did not validate for this host.
        public static let untrustedServer = Code("untrustedServer")
        /// The chain validated, but none of its keys is pinned for this host.
        public static let pinMismatch = Code("pinMismatch")
        /// The configuration names no pin for this host and no opt-out.
        public static let notPinned = Code("notPinned")
        /// The trust file has expired, or no pin of the host is valid any more.
        public static let trustExpired = Code("trustExpired")
        /// A probe of this process has found something that is refused.
        public static let integrityFailed = Code("integrityFailed")
        /// The server does not serve this version of the app any more, so nothing was sent.
        public static let outdatedApplication = Code("outdatedApplication")
        /// The server has never said what this version of the app may do, so nothing was sent.
        public static let serverNotReachable = Code("serverNotReachable")
        /// The TLS handshake failed for another reason.
        public static let tlsFailed = Code("tlsFailed")
        /// One of the time limits passed.
        public static let timedOut = Code("timedOut")
        /// The task was cancelled.
        public static let cancelled = Code("cancelled")
        /// The connection ended before the reply was complete.
        public static let connectionClosed = Code("connectionClosed")
        /// The peer does not speak HTTP/1.1 as it should.
        public static let malformedReply = Code("malformedReply")
        /// The reply's header is larger than allowed.
        public static let headerTooLarge = Code("headerTooLarge")
        /// A body is larger than allowed.
        public static let bodyTooLarge = Code("bodyTooLarge")
        /// The request's body could not be produced.
        public static let bodyFailed = Code("bodyFailed")
        /// The pool has no free connection and too many are waiting.
        public static let tooManyRequests = Code("tooManyRequests")
        /// The call could not be sealed, or no reply came that was sealed for it (payload encryption).
        public static let payloadEncryptionFailed = Code("payloadEncryptionFailed")
        /// The transport was shut down.
        public static let shutDown = Code("shutDown")
    }
}

extension HTTPTransportError.Code {
    /// What to do where the error says nothing else.
    fileprivate var usualAdvice: String? {
        switch self {
        case .invalidRequest: "Correct the URL or the header fields."
        case .nameNotResolved: "Check the name's spelling and the network connection."
        case .connectFailed: "Check that the server runs, and the network connection."
        case .untrustedServer: "Check the server's certificate and the configured authorities."
        case .pinMismatch: "Compare the pins with the server's key. If nobody changed that key, somebody is in between."
        case .notPinned: "Name the host in the configuration's pins."
        case .trustExpired: "Set this device's clock if it is wrong, or update the app."
        case .integrityFailed:
            "Start the app without debugger and without libraries of others, on a device as it was made."
        case .outdatedApplication: "Update the app."
        case .serverNotReachable: "Try again when there is a network."
        case .tlsFailed: "Check that the server speaks TLS 1.2 or newer at this port."
        case .timedOut, .connectionClosed: "Try again later."
        case .malformedReply, .headerTooLarge: "Check that an HTTP/1.1 server is at this port."
        case .bodyTooLarge: "Raise the limit if a reply like this is expected."
        case .bodyFailed: "Check where the request's content comes from."
        case .tooManyRequests: "Try again when other calls are done."
        case .payloadEncryptionFailed:
            "Try another network, and compare the configured keys with the server's."
        case .shutDown: "Make another transport."
        default: nil
        }
    }
}
