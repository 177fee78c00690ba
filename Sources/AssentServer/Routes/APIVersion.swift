import AssentCore
import HTTPTypes

/// `Accept-API-Version`: which version of AM's interface a client wants. Its parts come in either order and with or
/// without a space, as the vendor's SDKs differ in that.
enum APIVersion {
    /// The newest major version of a resource that any of AM's releases has had here.
    private static let newestResource = 5

    /// 404 when a client asks for a version that no release has had; `nil` when it may go on.
    static func refusal(_ fields: HTTPFields) -> AMError? {
        guard let wished = fields[.acceptAPIVersion] else { return nil }
        for part in wished.split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
            guard pair.count == 2, pair[0] == "resource" || pair[0] == "protocol" else {
                return AMError(400, "Accept-API-Version must be like protocol=1.0,resource=2.1")
            }
            let numbers = pair[1].split(separator: ".", omittingEmptySubsequences: false).map { Int($0) }
            guard (1...2).contains(numbers.count), numbers.allSatisfy({ $0 != nil }), let major = numbers.first ?? nil
            else {
                return AMError(400, "Accept-API-Version must be like protocol=1.0,resource=2.1")
            }
            let newest = pair[0] == "protocol" ? 2 : newestResource
            guard (1...newest).contains(major) else {
                return AMError(
                    404,
                    "Accept-API-Version: Requested version \"\(pair[1].prefix(16))\" does not match any routes.")
            }
        }
        return nil
    }
}

/// `serverinfo/*`: what a client may know before anybody has signed in.
struct ServerInformation {
    let cookie: SessionCookie
    let realm: String

    var json: JSONValue {
        [
            "_id": "*", "_rev": "1", "domains": [], "protectedUserAttributes": [], "cookieName": .string(cookie.name),
            "secureCookie": true, "forgotPassword": "false", "forgotUsername": "false", "kbaEnabled": "false",
            "selfRegistration": "false", "lang": "en-US", "successfulUserRegistrationDestination": "default",
            "socialImplementations": [], "referralsEnabled": "false",
            "zeroPageLogin": ["enabled": false, "refererWhitelist": [], "allowedWithoutReferer": true],
            "realm": .string(realm), "xuiUserSessionValidationEnabled": true,
        ]
    }
}
