public import AssentCore

/// The server refused a journey. Errors are equal when their codes are.
public struct JourneyError: AssentError {
    /// What the refusal is about, as a stable name; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The journey took too long. Its step is dead: start the journey again.
        public static let sessionTimedOut = Code("sessionTimedOut")
        /// The link that was to resume the journey is unknown, expired or used.
        public static let suspendedInvalid = Code("suspendedInvalid")
        /// The journey failed, usually because what was typed is wrong.
        public static let invalidCredentials = Code("invalidCredentials")
        /// The user declined what the journey asked them to approve, here or on a device, or typed a wrong number
        /// there. AM says ``invalidCredentials`` instead.
        public static let declined = Code("declined")
        /// Nobody answered on the device in time. AM says ``invalidCredentials`` instead.
        public static let approvalExpired = Code("approvalExpired")
        /// The user has no device that could answer. AM says ``invalidCredentials`` instead.
        public static let noDevice = Code("noDevice")
        /// The server does not let this app's users sign in so that nothing is left of it. AM never says so.
        public static let statelessRefused = Code("statelessRefused")
        /// The transaction is unknown, expired, used, or belongs to another user.
        public static let transactionUnknown = Code("transactionUnknown")
        /// The server did not get back the callbacks that it sent.
        public static let callbackMismatch = Code("callbackMismatch")
        /// The account is locked, inactive or expired.
        public static let accountLocked = Code("accountLocked")
        /// The server has no journey of that name in this realm.
        public static let journeyUnknown = Code("journeyUnknown")
        /// The server has no such realm.
        public static let realmUnknown = Code("realmUnknown")
        /// Nothing at this address answers as AM does.
        public static let notFound = Code("notFound")
        /// Nobody knows whether the server has done it, nor the server: look before the same is done again.
        public static let outcomeUnknown = Code("outcomeUnknown")
        /// Something else; see the status, AM's number and the message.
        public static let other = Code("other")
    }

    /// The HTTP status. It is 200 where a transaction was not approved and the server says so as AM does.
    public let status: Int

    /// What the refusal is about.
    public let code: Code

    /// AM's own number for it (`detail.errorCode`), for example `110`; `nil` when it sent none.
    public let amErrorCode: String?

    /// The server's text for the user; empty when it sent none. It may quote what was typed.
    public let message: String

    /// The whole body.
    public let body: JSONObject

    /// Reads an error body.
    public init(status: Int, body: JSONObject) {
        self.status = status
        self.body = body
        let number = body["detail"]?["errorCode"]
        amErrorCode = number?.string ?? number?.integer.map(String.init)
        message = body["message"]?.string ?? body["errorMessage"]?.string ?? ""
        // A gateway that asks for a sign-in answers with a problem document (RFC 9457), AM with a `code`.
        let isProtected = [401, 403].contains(status) && body["code"] == nil && body["title"]?.string != nil
        code =
            Self.code(status: status, reason: body["detail"]?["reason"]?.string ?? body["failure"]?.string)
            ?? (isProtected ? .notFound : Self.code(status: status, amErrorCode: amErrorCode, message: message))
    }

    /// What happened, in our words. The server's own are in ``message``, which may quote what was typed.
    public var detail: String {
        switch code {
        case .sessionTimedOut: "The journey took too long and ended."
        case .suspendedInvalid: "The link that was to resume the journey is unknown, expired or used."
        case .invalidCredentials: "The sign-in failed."
        case .declined: "It was declined, or a wrong number was typed on the device."
        case .approvalExpired: "Nobody answered on the device in time."
        case .noDevice: "The user has no device that could answer."
        case .statelessRefused: "The server does not let this app's users sign in so that nothing is left of it."
        case .transactionUnknown: "The transaction is unknown, expired, used, or belongs to another user."
        case .callbackMismatch: "The server did not get back the callbacks that it sent."
        case .accountLocked: "The account is locked or inactive."
        case .journeyUnknown: "The server has no journey of that name in this realm."
        case .realmUnknown: "The server has no realm of that name."
        case .notFound: "There is no authentication service at the server's URL."
        case .outcomeUnknown: "The server does not know whether it was done."
        default: "The server refused the journey."
        }
    }

    /// What to do about it; `nil` when there is nothing to add.
    public var suggestion: String? {
        switch code {
        case .sessionTimedOut, .callbackMismatch: "Start the journey again."
        case .suspendedInvalid: "Start the journey again to get another link."
        case .invalidCredentials: "Correct what was typed and try again."
        case .declined: "Start again if that was a mistake."
        case .approvalExpired: "Start again, and answer on the device before the transaction expires."
        case .noDevice: "Enrol a device first."
        case .statelessRefused: "Let the user sign in as usual, or ask the server's operator for stateless: true."
        case .transactionUnknown: "Repeat the request that needs the approval."
        case .accountLocked: "Ask an administrator to unlock it."
        case .realmUnknown: "Look at the name of the realm, for example alpha."
        case .notFound:
            "Give the URL with its path, for example https://am.example.com/am, and not that of the gateway."
        case .journeyUnknown: "Look at the names of the journey and of the realm."
        case .outcomeUnknown: "Look what became of it before you do it again."
        default: isTransient ? "Try again later." : "Read the server's message, or ask its operator."
        }
    }

    /// Whether the server is overloaded or out of order, and has done nothing.
    public var isTransient: Bool { code != .outcomeUnknown && (status >= 500 || status == 429 || status == 408) }

    /// The status and AM's number. Not the message, which may quote what was typed.
    public var notes: [String] { ["status \(status)"] + (amErrorCode.map { ["AM's code \($0)"] } ?? []) }

    /// What Assent's server says and AM does not.
    private static func code(status: Int, reason: String?) -> Code? {
        switch (status, reason) {
        case (200, "declined"), (401, "declined"): .declined
        case (200, "approvalExpired"), (401, "approvalExpired"): .approvalExpired
        case (200, "noDevice"), (401, "noDevice"): .noDevice
        case (200, "accountLocked"): .accountLocked
        case (200, _): .invalidCredentials
        case (403, "statelessRefused"): .statelessRefused
        case (503, "outcomeUnknown"): .outcomeUnknown
        default: nil
        }
    }

    private static func code(status: Int, amErrorCode: String?, message: String) -> Code {
        if message.contains("org.forgerock.openam.auth.nodes.framework.token.SuspendedAuthSessionException") {
            return .suspendedInvalid
        }
        switch amErrorCode {
        case "110": return .sessionTimedOut
        case "128": return .transactionUnknown
        case "101", "104", "112": return .accountLocked
        case "105": return .journeyUnknown
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
        case (401, "Your account has been locked."), (401, "User not Active"), (401, "User Account Expired!!"):
            return .accountLocked
        case (400, "No Configuration found"), (401, "No Configuration found"): return .journeyUnknown
        case (400, let message) where message.hasPrefix("Invalid realm"): return .realmUnknown
        case (404, _): return .notFound
        case (401, "Access Denied"): return .other
        case (401, _): return .invalidCredentials
        default: return .other
        }
    }
}
