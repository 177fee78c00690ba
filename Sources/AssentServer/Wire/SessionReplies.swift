import AssentCore
import AssentEngine
import Foundation

extension LiveSession {
    /// The reply to `getSessionInfo` (am-server reference, sessions).
    var info: JSONValue {
        var properties = self.properties
        properties["AMCtxId"] = .string(auditID)
        return [
            "username": .string(user.username), "universalId": .string(user.universalID), "realm": .string(realm),
            "latestAccessTime": .string(Self.text(latestAccess)),
            "maxIdleExpirationTime": .string(Self.text(idleExpiresAt)),
            "maxSessionExpirationTime": .string(Self.text(expiresAt)), "properties": .object(properties),
        ]
    }

    /// The reply to `validate` for a session that is alive.
    var validation: JSONValue {
        [
            "valid": true, "sessionUid": .string(auditID), "uid": .string(user.username), "realm": .string(realm),
        ]
    }

    /// The reply to `validate` for any other token.
    static let invalidation: JSONValue = ["valid": false]

    private static func text(_ seconds: Int64) -> String {
        Date(timeIntervalSince1970: TimeInterval(seconds)).formatted(.iso8601)
    }
}
