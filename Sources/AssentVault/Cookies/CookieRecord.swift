import AssentCore
import Foundation

/// The secret that holds cookies: a JSON object with a format number, so that a later version can tell.
enum CookieRecord {
    private static let format = 1

    static func encode(_ cookies: [Cookie]) -> Secret {
        let value: JSONValue = [
            "format": .integer(format),
            "cookies": .array(
                cookies.map { cookie in
                    [
                        "name": .string(cookie.name), "value": .string(cookie.value.reveal()),
                        "host": .string(cookie.host.text), "path": .string(cookie.path),
                        "secure": .bool(cookie.isSecure), "httpOnly": .bool(cookie.isHTTPOnly),
                        "expires": cookie.expires.map { .integer(milliseconds($0)) } ?? .null,
                    ]
                }),
        ]
        return Secret(bytes: value.serializedBytes())
    }

    /// - Throws: `newerFormat`, or `tampered` for what ``encode(_:)`` does not write.
    static func decode(_ secret: Secret) throws -> [Cookie] {
        guard let value = try? JSONValue.parse(secret.revealBytes()), let format = value["format"]?.integer else {
            throw damaged
        }
        guard format <= Self.format else { throw SecretStoreError.newerFormat }
        guard let cookies = value["cookies"]?.array, cookies.count <= SecureCookieStore.cookiesInAll else {
            throw damaged
        }
        return try cookies.map(cookie)
    }

    private static func cookie(_ value: JSONValue) throws -> Cookie {
        guard let name = value["name"]?.string, let content = value["value"]?.string, let path = value["path"]?.string,
            let host = value["host"]?.string.flatMap({ try? NormalizedHost($0) }),
            let isSecure = value["secure"]?.bool, let isHTTPOnly = value["httpOnly"]?.bool, path.hasPrefix("/"),
            name.utf8.count + content.utf8.count <= Cookie.byteLimit,
            // What would change the Cookie field of a request cannot have been set by a server.
            (name + content).utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ";") })
        else { throw damaged }
        let expires = value["expires"]?.integer
        guard expires.map(times.contains) ?? true else { throw damaged }
        return Cookie(
            name: name, value: Secret(content), host: host, path: path, isSecure: isSecure, isHTTPOnly: isHTTPOnly,
            expires: expires.map { Date(timeIntervalSince1970: Double($0) / 1_000) })
    }

    /// Milliseconds that a server can have set: up to the year 9999. One far beyond could not be written again.
    private static let times: ClosedRange<Int64> = -253_402_300_800_000...253_402_300_800_000

    private static func milliseconds(_ date: Date) -> Int64 {
        Int64((date.timeIntervalSince1970 * 1_000).rounded(.down))
    }

    private static let damaged = SecretStoreError(
        .tampered,
        "The stored cookies are not what this library writes. Remove the secret called cookies; new ones come.")
}
