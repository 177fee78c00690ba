public import AssentCore

/// Why a configuration cannot be used, or a redirect was not received. Failures of a call are `HTTPTransportError`.
///
/// Two errors are equal when their codes are; the rest explains and never holds a secret.
public struct NIOTransportError: AssentError {
    /// What is wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public let suggestion: String?

    init(_ code: Code, _ detail: String, suggestion: String? = nil) {
        self.code = code
        self.detail = detail
        self.suggestion = suggestion ?? code.usualAdvice
    }

    /// A stable name of a mistake; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The trust roots could not be read.
        public static let invalidTrustRoots = Code("invalidTrustRoots")
        /// A host in the pins is not a host, or is named twice.
        public static let invalidHost = Code("invalidHost")
        /// A host has fewer than two different pins without `PinRequirement.singlePin`.
        public static let tooFewPins = Code("tooFewPins")
        /// The client certificate and its key could not be used.
        public static let invalidClientIdentity = Code("invalidClientIdentity")
        /// A limit is zero or negative.
        public static let invalidLimit = Code("invalidLimit")
        /// A redirect URI is not one of this machine's own (RFC 8252 §7.3).
        public static let notLoopback = Code("notLoopback")
        /// The port of a redirect URI cannot be listened on.
        public static let cannotListen = Code("cannotListen")
        /// No redirect came in time.
        public static let noRedirect = Code("noRedirect")
    }
}

extension NIOTransportError.Code {
    /// What to do where the error says nothing else.
    fileprivate var usualAdvice: String? {
        switch self {
        case .invalidTrustRoots: "Give a file with the certificates of the authorities, in PEM or DER."
        case .invalidHost: "Name each host once, as host or host:port."
        case .tooFewPins: "Name a backup key too, or use singlePin."
        case .invalidClientIdentity: "Give the chain and the key of its first certificate, both in PEM."
        case .invalidLimit: "Give a positive number."
        case .notLoopback: "Register such a redirect URI for this client."
        case .cannotListen: "End the sign-in that waits there, or register a redirect URI without a port."
        case .noRedirect: "Start the sign-in again."
        default: nil
        }
    }
}
