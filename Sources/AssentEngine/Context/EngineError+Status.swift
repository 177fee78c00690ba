extension EngineError {
    /// An error in AM's terms, for callers that do not name a code yet.
    package init(status: Int, _ message: String, errorCode: String? = nil, failureURL: String? = nil) {
        let code: Code =
            switch (status, errorCode) {
            case (401, "128"): .transactionUnreadable
            case (401, "110"): .stepExpired
            case (400, "110"): .stepAlreadyAnswered
            case (_, "105"): .unknownJourney
            case (_, "104"): .userInactive
            case (_, "112"): .accountLocked
            case (_, "124"): .differentUser
            default: Self.code(status, message)
            }
        let name = message.hasPrefix("Invalid realm, ") ? String(message.dropFirst(15)) : nil
        let detail =
            message.hasPrefix("Failed to parse JWT, ") ? String(message.dropFirst(21)) : message
        self.init(code, detail, about: name)
    }

    private static func code(_ status: Int, _ message: String) -> Code {
        switch message {
        case "Login failure": return .loginFailed
        case "Your account has been locked.": return .accountLocked
        case "User not Active": return .userInactive
        case "Unknown Authentication Index Type": return .unknownIndexType
        case "No Configuration found": return .unknownJourney
        case "AuthId JWT Signature not valid": return .authIDInvalid
        case "This step was answered before.": return .stepAlreadyAnswered
        case "This step was answered before, with another answer.": return .stepAnsweredDifferently
        case "This step is being answered. Send the same answer again.": return .stepBeingAnswered
        case "Incorrect number of callbacks found in JSON response": return .wrongCallbackCount
        case "Required callback not found in JSON response": return .missingCallback
        case "Session has timed out": return .stepExpired
        case "Unable to read transaction.": return .transactionUnreadable
        case "Session Upgrade fails since user is different than original authenticated user": return .differentUser
        default: break
        }
        if message.hasPrefix("Invalid realm, ") { return .unknownRealm }
        if message.hasPrefix("Failed to parse JWT, ") { return .authIDUnreadable }
        if message.hasPrefix("org.forgerock.") { return .suspendedJourneyUnknown }
        return switch status {
        case 400: .invalidRequest
        case 401: .sessionRequired
        case 403: .forbidden
        case 404: .notFound
        case 413: .tooLarge
        case 415: .unsupportedMediaType
        case 429: .tooManyRequests
        case 503: .busy
        default: .internalFailure
        }
    }
}
