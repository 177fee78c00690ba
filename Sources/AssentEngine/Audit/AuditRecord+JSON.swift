package import AssentCore
import Foundation

extension AuditRecord {
    /// The record as an auditor gets it; `at` is RFC 3339 in UTC.
    package var json: JSONValue {
        var object = JSONObject()
        object["at"] = at.map { .string($0.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))) }
        object["node"] = node.map(JSONValue.string)
        object["position"] = position.map(JSONValue.integer)
        object["sequence"] = sequence.map(JSONValue.integer)
        object["event"] = .string(event.rawValue)
        object["outcome"] = .string(outcome.rawValue)
        object["reason"] = reason.map(JSONValue.string)
        object["realm"] = realm.map(JSONValue.string)
        object["userId"] = userID.map(JSONValue.string)
        object["user"] = username.map(JSONValue.string)
        object["sessionAuditId"] = sessionAuditID.map(JSONValue.string)
        object["transactionId"] = transactionID.map(JSONValue.string)
        object["detail"] = .object(detail)
        return .object(object)
    }
}
