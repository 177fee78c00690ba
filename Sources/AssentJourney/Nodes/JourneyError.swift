public import AssentCore

/// The server's no to a journey. Errors are equal when their reasons are.
public struct JourneyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What the no is about, as a stable name; more may be added.
    public struct Reason: Hashable, Sendable, CustomStringConvertible {
        /// The name.
        public let description: String

        private init(_ name: String) { description = name }

        /// The journey took too long. Its step is dead: start the journey again.
        public static let sessionTimedOut = Reason("sessionTimedOut")
        /// The link that was to resume the journey is unknown, too old or used.
        public static let suspendedInvalid = Reason("suspendedInvalid")
        /// The journey ended with a failure, usually since what was typed is wrong.
        public static let invalidCredentials = Reason("invalidCredentials")
        /// The transaction is unknown, too old, used, or somebody else's.
        public static let transactionUnknown = Reason("transactionUnknown")
        /// The server did not get back the callbacks that it sent.
        public static let callbackMismatch = Reason("callbackMismatch")
        /// The account is locked.
        public static let accountLocked = Reason("accountLocked")
        /// Something else; see status, code and message.
        public static let other = Reason("other")
    }

    /// The HTTP status.
    public let status: Int

    /// What the no is about.
    public let reason: Reason

    /// AM's own number for it (`detail.errorCode`), for example `110`; `nil` when it sent none.
    public let code: String?

    /// The server's text for the user; empty when it sent none.
    public let message: String

    /// The whole body.
    public let body: JSONObject

    /// Reads an error body.
    public init(status: Int, body: JSONObject) {
        self.status = status
        self.body = body
        let number = body["detail"]?["errorCode"]
        code = number?.string ?? number?.integer.map(String.init)
        message = body["message"]?.string ?? body["errorMessage"]?.string ?? ""
        reason = Self.reason(status: status, code: code, message: message)
    }

    /// The reason, the status and AM's number. Not the message, which may quote what was typed.
    public var description: String { "\(reason): status \(status)" + (code.map { ", AM's code \($0)" } ?? "") }

    /// Errors are equal when their reasons are.
    public static func == (left: Self, right: Self) -> Bool { left.reason == right.reason }

    /// Hashes the reason.
    public func hash(into hasher: inout Hasher) { hasher.combine(reason) }

    private static func reason(status: Int, code: String?, message: String) -> Reason {
        if message.contains("org.forgerock.openam.auth.nodes.framework.token.SuspendedAuthSessionException") {
            return .suspendedInvalid
        }
        switch code {
        case "110": return .sessionTimedOut
        case "128": return .transactionUnknown
        case "112": return .accountLocked
        case "103", "107": return .invalidCredentials
        case .some: return .other
        case nil: break
        }
        switch (status, message) {
        case (400, "Authentication Error: Authentication timeout."), (401, "Session has timed out"):
            return .sessionTimedOut
        case (400, "Incorrect number of callbacks found in JSON response"),
            (400, "Required callback not found in JSON response"):
            return .callbackMismatch
        case (401, "Unable to read transaction."): return .transactionUnknown
        case (401, "Your account has been locked."): return .accountLocked
        case (401, "Access Denied"): return .other
        case (401, _): return .invalidCredentials
        default: return .other
        }
    }
}
