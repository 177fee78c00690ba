import AssentCore
import AssentEngine
import AssentStore
import HTTPTypes
import Hummingbird
import NIOCore

extension Response {
    /// A JSON reply that no cache may keep.
    static func json(_ status: Int, _ value: JSONValue, headers: HTTPFields = [:]) -> Response {
        json(status, bytes: value.serializedBytes(), headers: headers)
    }

    /// The same with JSON that is written already.
    static func json(_ status: Int, bytes: [UInt8], headers: HTTPFields = [:]) -> Response {
        // Most replies have no further field.
        var fields = jsonFields
        if !headers.isEmpty {
            fields = headers
            for field in jsonFields { fields[field.name] = field.value }
        }
        // What is busy or restarting is so for a moment (RFC 9110 §15.6.4).
        if status == 503, fields[.retryAfter] == nil { fields[.retryAfter] = "1" }
        // Otherwise Hummingbird writes it, by finding out at run time what a number is.
        fields[.contentLength] = String(bytes.count)
        return Response(
            status: .init(code: status), headers: fields,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    /// What JSON says of itself that no cache may keep.
    private static let jsonFields: HTTPFields = [
        .contentType: "application/json", .cacheControl: "no-cache, no-store, must-revalidate", .pragma: "no-cache",
        .expires: "0",
    ]

    /// AM's error envelope: `code`, `reason`, `message` and, where there is one, `detail`.
    static func crest(_ status: Int, _ message: String, detail: JSONValue? = nil, headers: HTTPFields = [:]) -> Response
    {
        var body = JSONObject([
            .init(name: "code", value: .integer(status)),
            .init(name: "reason", value: .string(HTTPResponse.Status.phrase(status))),
            .init(name: "message", value: .string(message)),
        ])
        body["detail"] = detail
        return json(status, .object(body), headers: headers)
    }

    /// The same to a session that belongs to a key, without a valid proof of that key (RFC 9449 §7.1).
    static func crest(_ refusal: TokenRefusal) -> Response {
        var response = crest(401, refusal.detail)
        response.headers[.wwwAuthenticate] = try? TokenChallenge(refusal).fieldValue()
        response.give(nonce: refusal.nonce)
        return response
    }
}
