import Assent
import Foundation
import HTTPTypes

extension RequestAnswer {
    /// For a script. Cookies are left out, as they are where people read the fields.
    var json: JSONValue {
        var shown = JSONObject()
        for name in fields.map(\.name) where name != .setCookie {
            // A name that is there several times has its values with commas between them (RFC 9110 §5.3).
            shown[name.canonicalName] = fields[name].map(JSONValue.string)
        }
        let body = content
        var object: JSONObject = [
            "status": .integer(status), "fields": .object(shown), "body": body.value, "bodyEncoding": body.encoding,
        ]
        object["file"] = file.map(JSONValue.string)
        object["authorization"] = approval
        return .object(object)
    }

    /// The body, and how it stands in ``json``; both null where it is in ``file``.
    private var content: (value: JSONValue, encoding: JSONValue) {
        guard file == nil else { return (.null, .null) }
        if isJSON, let value = try? JSONValue.parse(body, limits: Self.limits) { return (value, "json") }
        if let text = String(validating: body, as: UTF8.self) { return (.string(text), "text") }
        return (.string(Data(body).base64EncodedString()), "base64")
    }

    /// One that is larger, or has a name twice in an object, stays a text.
    private static let limits = JSONLimits(bytes: 64 << 20, values: 1_000_000)

    private var isJSON: Bool {
        let type = fields[.contentType].map { MediaType.normalised($0) }?.split(separator: ";").first
        return type.map { $0 == "application/json" || $0.hasSuffix("+json") } ?? false
    }

    private var approval: JSONValue {
        guard case .approved(let transactionID, _) = authorization else { return .null }
        return ["transaction": transactionID.map(JSONValue.string) ?? .null, "approved": true]
    }
}
