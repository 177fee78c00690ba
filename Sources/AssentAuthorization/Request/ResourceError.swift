public import AssentCore

/// Why a resource was not reached, or what had to happen before it could be. Errors are equal when their codes are.
///
/// ``domain`` and ``number`` are those of the vendor's SDK, so that an app which moves keeps its tables.
public struct ResourceError: AssentError {
    /// What was being done.
    public let domain: Domain

    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people; never a secret.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public let suggestion: String?

    /// With `deviceRegistrationFailure`: why the server has not registered the installation, if it said so.
    public let reason: Reason?

    /// With `invalidPin`: how many more wrong PINs the server takes.
    public let triesLeft: Int?

    /// With `integrityFailed`: the name of the probe.
    public let probe: String?

    /// With `httpStatus`: the reply's status.
    public let status: Int?

    /// With `approvalNeeded` and `outcomeUnknown`: with what to ask for the outcome.
    public let pending: PendingRequest?

    /// What the transport said, when it is the reason.
    public let transportError: HTTPTransportError?

    /// An error with its explanation.
    public init(
        _ domain: Domain, _ code: Code, _ detail: String, suggestion: String? = nil, reason: Reason? = nil,
        triesLeft: Int? = nil, probe: String? = nil, status: Int? = nil, pending: PendingRequest? = nil,
        transportError: HTTPTransportError? = nil
    ) {
        self.domain = domain
        self.code = code
        self.detail = detail
        self.suggestion = suggestion ?? code.usualAdvice
        self.reason = reason
        self.triesLeft = triesLeft
        self.probe = probe
        self.status = status
        self.pending = pending
        self.transportError = transportError
    }

    /// The vendor's number, or that of Foundation's `URLError` in the domain `url`; 10000 for a code that this version
    /// does not know.
    public var number: Int { code.number }

    /// Whether the same call may succeed later.
    public var isTransient: Bool {
        transportError?.isTransient ?? [.noConnection, .serverNotReachable, .actionAlreadyInProgress].contains(code)
    }

    /// Domain and number, and what belongs to the code.
    public var notes: [String] {
        ["\(domain) \(number)"] + (reason.map { ["\($0)"] } ?? []) + (triesLeft.map { ["tries left: \($0)"] } ?? [])
            + (probe.map { ["probe \($0)"] } ?? []) + (status.map { ["status \($0)"] } ?? [])
            + (pending.map { ["transaction \($0.transactionID)"] } ?? [])
    }

    /// What was being done when an error came; more may be added.
    public struct Domain: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A domain by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A user's resource.
        public static let fetchResource = Domain("fetchResource")
        /// A resource of a user who is only remembered.
        public static let fetchImplicitResource = Domain("fetchImplicitResource")
        /// A resource of the installation.
        public static let fetchAnonymousResource = Domain("fetchAnonymousResource")
        /// A resource of nobody.
        public static let fetchUnauthenticatedResource = Domain("fetchUnauthenticatedResource")
        /// Whatever may happen in every flow.
        public static let generic = Domain("generic")
        /// A sign-in.
        public static let authentication = Domain("authentication")
        /// The transport.
        public static let url = Domain("url")
    }

    /// Why an installation was not registered; more may be added.
    public struct Reason: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A reason by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The clocks of device and server differ by more than the server accepts.
        public static let clock = Reason("clock")
        /// The server does not know the app.
        public static let unknownApp = Reason("unknownApp")
        /// The server does not know this version of the app.
        public static let unknownVersion = Reason("unknownVersion")
        /// There were too many registrations.
        public static let tooMany = Reason("tooMany")
        /// The server wants a registration token.
        public static let tokenNeeded = Reason("tokenNeeded")
        /// The server does not accept the app's statement.
        public static let statementRefused = Reason("statementRefused")
    }
}
