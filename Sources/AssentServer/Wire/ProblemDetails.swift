import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

extension Response {
    /// A refusal of the gateway itself (RFC 9457).
    static func problem(
        _ status: Int, _ detail: String, members: JSONObject = JSONObject(), headers: HTTPFields = [:]
    ) -> Response {
        var body = JSONObject([
            .init(name: "type", value: "about:blank"),
            .init(name: "title", value: .string(HTTPResponse.Status.phrase(status))),
            .init(name: "status", value: .integer(status)), .init(name: "detail", value: .string(detail)),
        ])
        for member in members.members { body[member.name] = member.value }
        var response = json(status, .object(body), headers: headers)
        response.headers[.contentType] = "application/problem+json"
        return response
    }

    /// What the gateway says to what the engine says.
    static func problem(_ error: EngineError) -> Response {
        let status =
            switch error.code {
            case .invalidRequest: 400
            case .sessionRequired: 401
            case .forbidden, .tokenKind, .payloadEncryptionRequired, .payloadEncryptionMismatch: 403
            case .tooLarge: 413
            case .unsupportedMediaType: 415
            case .tooManyRequests: 429
            case .busy, .unavailable, .outcomeUnknown: 503
            default: 500
            }
        let named: [EngineError.Code] = [
            .outcomeUnknown, .tokenKind, .payloadEncryptionRequired, .payloadEncryptionMismatch,
        ]
        let isNamed = named.contains(error.code)
        return problem(status, error.detail, members: isNamed ? ["code": .string(error.code.rawValue)] : [:])
    }
}
