public import AssentCore

extension ResourceError {
    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        // Every flow: domain `generic`.

        /// The network is not reachable.
        public static let noConnection = Code("noConnection")
        /// The server does not answer.
        public static let serverNotReachable = Code("serverNotReachable")
        /// The server does not know this installation any more.
        public static let deviceDeregistered = Code("deviceDeregistered")
        /// The server does not know the remembered user any more.
        public static let userDeregistered = Code("userDeregistered")
        /// The server does not serve this version of the app.
        public static let outdatedApplication = Code("outdatedApplication")
        /// It was cancelled.
        public static let actionCancelled = Code("actionCancelled")
        /// Another flow of this user is under way.
        public static let actionAlreadyInProgress = Code("actionAlreadyInProgress")
        /// The server has not registered this installation; see ``ResourceError/reason``.
        public static let deviceRegistrationFailure = Code("deviceRegistrationFailure")
        /// The store of secrets, or a key, cannot be used now; what is there is whole.
        public static let storageLocked = Code("storageLocked")
        /// The store of secrets is not readable any more.
        public static let storageDamaged = Code("storageDamaged")
        /// The server does not allow sessions that leave nothing behind.
        public static let statelessRefused = Code("statelessRefused")
        /// The trust file has ended, or a host has no live pin.
        public static let trustExpired = Code("trustExpired")
        /// A probe found something; see ``ResourceError/probe``.
        public static let integrityFailed = Code("integrityFailed")
        /// The user or the installation was removed here, and the server does not know yet.
        public static let localDeregistration = Code("localDeregistration")
        /// The user was signed out here, and the server does not know yet.
        public static let localLogout = Code("localLogout")
        /// The app has no such link into a browser.
        public static let webLinkDisabled = Code("webLinkDisabled")
        /// What came was not sealed for this request.
        public static let payloadEncryptionFailed = Code("payloadEncryptionFailed")
        /// The server takes this call only encrypted.
        public static let payloadEncryptionRequired = Code("payloadEncryptionRequired")
        /// The reply's status is 400 or more; see ``ResourceError/status``.
        public static let httpStatus = Code("httpStatus")
        /// The app has not configured the SDK yet.
        public static let notConfigured = Code("notConfigured")

        // One call: the domain of its kind.

        /// Nobody is signed in, or the session has ended.
        public static let userNotAuthenticated = Code("userNotAuthenticated")
        /// No user is implicitly authenticated.
        public static let userNotAuthenticatedImplicitly = Code("userNotAuthenticatedImplicitly")
        /// This installation has no token.
        public static let deviceNotAuthenticated = Code("deviceNotAuthenticated")
        /// The server does not grant a scope.
        public static let scopeRefused = Code("scopeRefused")
        /// The method is not GET, POST, PUT, PATCH, HEAD or DELETE.
        public static let invalidMethod = Code("invalidMethod")
        /// Path, parameters or content cannot be sent.
        public static let invalidRequest = Code("invalidRequest")
        /// A header field is not the app's to give.
        public static let invalidHeaders = Code("invalidHeaders")
        /// The host is not listed, not pinned, or gets no credential of this kind.
        public static let hostRefused = Code("hostRefused")
        /// The server wants the user's approval, and there is nobody to ask.
        public static let approvalNeeded = Code("approvalNeeded")
        /// Nobody can say whether the call had an effect.
        public static let outcomeUnknown = Code("outcomeUnknown")

        // A sign-in: domain `authentication`.

        /// The PIN is wrong; see ``ResourceError/triesLeft``.
        public static let invalidPin = Code("invalidPin")

        // The transport: domain `url`.

        /// The transport does not take the URL.
        public static let badURL = Code("badURL")
        /// A time limit passed.
        public static let timedOut = Code("timedOut")
        /// The host's name has no address.
        public static let cannotFindHost = Code("cannotFindHost")
        /// The host does not answer.
        public static let cannotConnectToHost = Code("cannotConnectToHost")
        /// The connection ended.
        public static let connectionLost = Code("connectionLost")
        /// All connections are in use, and too many calls wait.
        public static let resourceUnavailable = Code("resourceUnavailable")
        /// The peer does not speak HTTP as it should.
        public static let badServerResponse = Code("badServerResponse")
        /// The reply is larger than allowed.
        public static let replyTooLarge = Code("replyTooLarge")
        /// The TLS handshake failed.
        public static let secureConnectionFailed = Code("secureConnectionFailed")
        /// The server's certificate or its key is not trusted.
        public static let serverUntrusted = Code("serverUntrusted")
        /// No file can be made for a download.
        public static let cannotCreateFile = Code("cannotCreateFile")
        /// A download cannot be written to its file.
        public static let cannotWriteToFile = Code("cannotWriteToFile")
        /// The transport failed in another way.
        public static let transportFailed = Code("transportFailed")
    }
}

extension ResourceError.Code {
    /// The vendor's number, or `URLError`'s; 10000 when it is not known.
    public var number: Int { Self.numbers[self] ?? 10000 }

    /// All known codes.
    package static var all: [Self] { Array(numbers.keys) }

    private static let numbers: [Self: Int] = [
        .noConnection: 9000, .serverNotReachable: 9001, .deviceDeregistered: 9002, .userDeregistered: 9003,
        .outdatedApplication: 9004, .actionCancelled: 9006, .actionAlreadyInProgress: 9007,
        .deviceRegistrationFailure: 9008, .storageLocked: 9024, .storageDamaged: 9025, .statelessRefused: 9034,
        .trustExpired: 9101, .integrityFailed: 9102, .localDeregistration: 10003, .localLogout: 10009,
        .webLinkDisabled: 10023, .payloadEncryptionFailed: 10102, .payloadEncryptionRequired: 10103,
        .httpStatus: 10106, .notConfigured: 10110,
        .userNotAuthenticated: 9010, .userNotAuthenticatedImplicitly: 9026, .deviceNotAuthenticated: 10012,
        .scopeRefused: 10001, .invalidMethod: 10010, .invalidRequest: 10015, .invalidHeaders: 10019,
        .hostRefused: 10101, .approvalNeeded: 10104, .outcomeUnknown: 10105,
        .invalidPin: 9009,
        .badURL: -1000, .timedOut: -1001, .cannotFindHost: -1003, .cannotConnectToHost: -1004,
        .connectionLost: -1005, .resourceUnavailable: -1008, .badServerResponse: -1011, .replyTooLarge: -1103,
        .secureConnectionFailed: -1200, .serverUntrusted: -1202, .transportFailed: -1,
        .cannotCreateFile: -3000, .cannotWriteToFile: -3003,
    ]

    /// What to do where the error says nothing else.
    var usualAdvice: String? {
        switch self {
        case .noConnection, .serverNotReachable: "Try again when there is a network."
        case .deviceDeregistered: "Register the installation again; its users must enrol again."
        case .userDeregistered: "Let the user sign in and enrol again."
        case .outdatedApplication: "Update the app."
        case .actionAlreadyInProgress: "Wait until the other flow has ended."
        case .deviceRegistrationFailure: "Correct what the reason names, and register again."
        case .storageLocked: "Try again when the store can be used: the device unlocked, space on the disk."
        case .storageDamaged: "Wipe the vault, and let the user sign in again."
        case .statelessRefused:
            "Let the user sign in as usual, or ask the server's operator for stateless: true at the app."
        case .trustExpired: "Correct the device's clock, or update the app."
        case .localDeregistration, .localLogout: "Nothing has to be done here; the server is told later."
        case .webLinkDisabled:
            "Ask the server's operator to list the page (webLinks) at the app as which this installation registers."
        case .notConfigured: "Make the configuration and share it first."
        case .userNotAuthenticated: "Sign in."
        case .userNotAuthenticatedImplicitly: "Authenticate the user implicitly first."
        case .deviceNotAuthenticated: "Authenticate the device first."
        case .scopeRefused: "Ask for scopes that the app may have."
        case .invalidMethod: "Use GET, POST, PUT, PATCH, HEAD or DELETE."
        case .invalidRequest: "Correct the request."
        case .invalidHeaders: "Leave the field out."
        case .hostRefused: "Name the host, its pins and what it gets in the configuration."
        case .approvalNeeded: "Send the request with a handler that asks the user."
        case .outcomeUnknown: "Ask for the outcome before you send it again."
        case .invalidPin: "Ask for the PIN again."
        default: nil
        }
    }
}
