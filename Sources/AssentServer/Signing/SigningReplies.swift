import AssentCore
import AssentEngine
import AssentSigningProtocol
import HTTPTypes
import Hummingbird
import NIOCore

extension Response {
    /// What the routes of transaction signing say instead of what they were asked for (RFC 9457). It is not signed, so
    /// devices take it for a hint.
    static func signing(_ error: SigningRefusal) -> Response {
        var members: JSONObject = ["code": .string(error.code.rawValue)]
        members["remaining"] = error.remaining.map { .integer($0) }
        members["retryAfter"] = error.retryAfter.map { .integer($0) }
        var fields = HTTPFields()
        fields[.retryAfter] = error.retryAfter.map { "\($0)" }
        if error.code == .unauthorized { fields[.wwwAuthenticate] = "Bearer" }
        return .problem(error.status, error.detail, members: members, headers: fields)
    }

    /// The same to an access token, or to the proof beside it, that is not valid (RFC 9449 §7.1).
    static func signing(_ refusal: TokenRefusal) -> Response {
        guard refusal.scheme == .dpop else { return signing(SigningRefusal(.unauthorized)) }
        var response = signing(SigningRefusal(.unauthorized, refusal.detail))
        response.headers[.wwwAuthenticate] = try? TokenChallenge(refusal).fieldValue()
        response.give(nonce: refusal.nonce)
        return response
    }

    /// The same for a request that cannot be read.
    static func signing(_ error: RequestError) -> Response {
        let code: SigningErrorCode = error.status == 413 ? .tooLarge : .invalidRequest
        return .problem(error.status, error.message, members: ["code": .string(code.rawValue)])
    }

    /// A signed or encrypted message for a device.
    static func jose(_ compact: String) -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/jose", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: compact)))
    }
}

extension SigningRefusal {
    /// The status of an answer with this error.
    var status: Int { Self.statuses[code] ?? 400 }

    private static let statuses: [Code: Int] = {
        var statuses: [Code: Int] = [:]
        let codes: [Int: [Code]] = [
            400: [.invalidRequest, .versionUnsupported, .unknownKey],
            401: [.useNonce, .badProof, .replay, .unauthorized],
            403: [
                .containerBlocked, .containerSuspect, .containerRevoked, .approvalsNotYet, .keyExpired,
                .ruleUnsupported, .freshAuthenticationRequired, .digitsWrong, .statusNotAllowed, .badSignature,
                .matchWrong, .forbidden, .unlockRequired, .locked, .passwordExpired, .passwordTooYoung,
            ],
            404: [.unknownContainer, .invalidCode, .transactionUnknown, .notFound],
            409: [
                .keyRetired, .deviceLimit, .commitmentChanged, .transactionNotFetched, .alreadyDecided, .hashMismatch,
                .matchUsed, .wrongGeneration, .serverRolledBack,
            ],
            410: [.enrolmentVoid, .transactionExpired, .transactionCanceled, .transactionFailed, .shredded],
            413: [.tooLarge], 429: [.rateLimited, .wait], 503: [.busy, .unavailable],
        ]
        for (status, codes) in codes { for code in codes { statuses[code] = status } }
        return statuses
    }()
}
