import AssentCore
import AssentEnforcement
import HTTPTypes
import Hummingbird
import NIOCore

/// A request that is not carried out, and why, as the gateway says it (RFC 9457).
struct Refusal: Error {
    let status: Int
    let detail: String
    var members = JSONObject()
    var fields = HTTPFields()
    var nonce: String?

    init(_ status: Int, _ detail: String, members: JSONObject = JSONObject(), fields: HTTPFields = [:]) {
        self.status = status
        self.detail = detail
        self.members = members
        self.fields = fields
    }

    /// Nobody is named, or nobody who is signed in.
    static func signInFirst(_ server: PolicyServer, _ detail: String = "Sign in first.") -> Refusal {
        Refusal(
            401, detail,
            fields: [.wwwAuthenticate: #"SSOADVICE realm="\#(server.realm)",am_uri="\#(server.url)""#])
    }

    /// The user must do something first, as the challenge says.
    static func advised(_ challenge: String) -> Refusal {
        Refusal(
            401, "The user must do something first: see WWW-Authenticate.", fields: [.wwwAuthenticate: challenge])
    }

    /// The same, with the nonce for the client's next proof where there is one.
    func giving(nonce: String?) -> Refusal {
        var refusal = self
        refusal.nonce = nonce
        return refusal
    }

    /// The policies could not be asked.
    static let undecided = Refusal(
        503, "The service cannot decide now. Nothing was carried out.", members: ["forwarded": "no"])

    /// The policies were asked and did not answer; a transaction may be used up.
    static let outcomeUnknown = Refusal(
        503, "It is not known whether the transaction was used. Nothing was carried out.",
        members: ["code": "outcomeUnknown", "forwarded": "no"])

    /// The policies do not allow it.
    static let denied = Refusal(403, "Access is denied.")

    /// The transaction was used before.
    static func used(_ id: String, outcome: JSONValue) -> Refusal {
        Refusal(
            409, "This transaction was used before. Nothing was carried out now.",
            members: ["transaction": .string(id), "outcome": outcome])
    }

    /// The handler has failed without an answer, and may have had an effect.
    static func unanswered(_ id: String) -> Refusal {
        Refusal(
            504, "The service gave no answer. The outcome is unknown: ask again before you repeat it.",
            members: ["forwarded": "unknown", "transaction": .string(id)])
    }

    /// The answer to a request with this method.
    func response(to method: HTTPRequest.Method) -> Response {
        let status = HTTPResponse.Status(code: status)
        var body: JSONObject = [
            "type": "about:blank", "title": .string(HTTPResponse.Status.phrase(status.code)),
            "status": .integer(Int64(status.code)), "detail": .string(detail),
        ]
        for member in members.members { body[member.name] = member.value }
        var fields = fields
        fields[.contentType] = "application/problem+json"
        fields[.cacheControl] = "no-cache, no-store, must-revalidate"
        fields[.pragma] = "no-cache"
        fields[.expires] = "0"
        fields.give(nonce: nonce)
        if status.code == 503 { fields[.retryAfter] = "1" }
        let response = Response(
            status: status, headers: fields,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: JSONValue.object(body).serializedBytes())))
        // Hummingbird sends a body that it is given, and it would be taken for the beginning of the next reply of the
        // connection (RFC 9112 §6.3).
        return method == .head ? response.createHeadResponse() : response
    }
}
