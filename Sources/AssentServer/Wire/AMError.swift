import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// An error in the form that AM's REST endpoints have: ForgeRock's Common REST envelope with `code`, `reason`,
/// `message` and, where there is one, `detail` (am-server reference §9).
struct AMError: Error, Hashable, Sendable {
    /// The HTTP status, also `code`.
    let status: Int

    /// The text for the client, as AM words it where AM has words.
    let message: String

    /// AM's number for the reason, in `detail`.
    var errorCode: String?

    /// `detail.failureUrl`: empty after a journey that has failed.
    var failureURL: String?

    /// `detail.reason`: `declined` where the user said no, `approvalExpired` and `noDevice` where no device has
    /// answered, which AM does not tell apart from a failed sign-in; `outcomeUnknown` where nobody knows whether it was
    /// done.
    var reason: String?

    /// An error.
    init(_ status: Int, _ message: String, errorCode: String? = nil, failureURL: String? = nil, reason: String? = nil) {
        self.status = status
        self.message = message
        self.errorCode = errorCode
        self.failureURL = failureURL
        self.reason = reason
    }

    /// What AM says to what the engine says.
    init(_ error: EngineError) {
        self =
            switch error.code {
            case .unknownRealm: AMError(400, "Invalid realm, \(error.subject ?? "")")
            case .unknownJourney: AMError(400, "No Configuration found", errorCode: "105")
            case .unknownIndexType: AMError(400, "Unknown Authentication Index Type")
            case .authIDUnreadable: AMError(400, "Failed to parse JWT, \(error.detail)")
            case .authIDInvalid: AMError(400, "AuthId JWT Signature not valid")
            case .stepExpired: AMError(401, "Session has timed out", errorCode: "110")
            case .stepAlreadyAnswered: AMError(400, error.detail, errorCode: "110")
            case .wrongCallbackCount: AMError(400, "Incorrect number of callbacks found in JSON response")
            case .missingCallback: AMError(400, "Required callback not found in JSON response")
            case .invalidAnswer: AMError(400, "IDToken\(error.subject ?? "") \(error.detail)")
            case .suspendedJourneyUnknown: AMError(401, Self.suspended)
            case .loginFailed: AMError(401, "Login failure", failureURL: "")
            case .declined, .approvalExpired, .noDevice:
                AMError(401, "Login failure", failureURL: "", reason: error.code.rawValue)
            case .accountLocked: AMError(401, "Your account has been locked.", errorCode: "112", failureURL: "")
            case .userInactive: AMError(401, "User not Active", errorCode: "104", failureURL: "")
            case .differentUser: AMError(401, Self.differentUser, errorCode: "124")
            case .transactionUnreadable: AMError(401, "Unable to read transaction.", errorCode: "128")
            case .sessionRequired: AMError(401, "Access Denied")
            case .forbidden: AMError(403, "Permission denied.")
            case .tokenKind, .statelessRefused, .payloadEncryptionRequired, .payloadEncryptionMismatch:
                AMError(403, error.detail, reason: error.code.rawValue)
            case .notFound: AMError(404, error.detail)
            case .unknownPolicySet: AMError(404, "\(error.subject ?? "") application not found in realm.")
            case .invalidResources: AMError(400, "Invalid value resources")
            case .outcomeUnknown: AMError(503, error.detail, reason: error.code.rawValue)
            default: AMError(Self.status(of: error.code), error.detail)
            }
    }

    /// What the request's own reading says.
    init(_ error: RequestError) { self.init(error.status, error.message) }

    /// There is no such route.
    static let notFound = AMError(404, "Resource not found.")

    /// The query does not name an action.
    static let missingAction = AMError(400, "The parameter _action is missing.")

    /// The query names an action that the route does not have.
    static func unknownAction(_ action: String) -> AMError {
        AMError(501, "Action \(action.prefix(64)) not implemented for this resource")
    }

    /// The reply.
    var response: Response {
        var detail = JSONObject()
        detail["errorCode"] = errorCode.map(JSONValue.string)
        detail["failureUrl"] = failureURL.map(JSONValue.string)
        detail["reason"] = reason.map(JSONValue.string)
        return .crest(
            status, message, detail: detail.members.isEmpty ? nil : .object(detail),
            headers: status == 429 ? [.retryAfter: "60"] : [:])
    }

    private static func status(of code: EngineError.Code) -> Int {
        switch code {
        case .invalidRequest, .stepAnsweredDifferently: 400
        case .lastAdministrator, .exists: 409
        case .tooLarge: 413
        case .unsupportedMediaType: 415
        case .tooManyRequests: 429
        case .busy, .unavailable, .stepBeingAnswered: 503
        default: 500
        }
    }

    /// Apps look for the name of this class.
    private static let suspended =
        "org.forgerock.openam.auth.nodes.framework.token.SuspendedAuthSessionException: "
        + "Token not found. It may have expired."

    private static let differentUser =
        "Session Upgrade fails since user is different than original authenticated user"
}
