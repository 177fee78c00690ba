package import HTTPTypes

/// What the `Authorization` fields of a request say about a bearer token (RFC 6750 §2.1).
package enum BearerCredentials: Equatable, Sendable {
    /// None of the fields has the scheme `Bearer`.
    case absent
    /// A field has the scheme, but not one token behind it, or there are other fields beside it.
    case malformed
    /// A token. Nothing is known about it yet.
    case token(Secret)

    /// How many bytes a token may have.
    package static let limit = 16 << 10

    /// Reads all values of `Authorization`. The scheme's case does not matter (RFC 9110 §11.1).
    package init(_ fields: [String]) {
        guard fields.contains(where: Self.hasScheme) else {
            self = .absent
            return
        }
        guard fields.count == 1, let token = Self.token(fields[0]) else {
            self = .malformed
            return
        }
        self = .token(token)
    }

    /// Whether a reply with status 401 says that the token was refused: a `Bearer` challenge with the error
    /// `invalid_token` (RFC 6750 §3.1). The resource has then done nothing else.
    package static func areRefused(in response: HTTPResponse) -> Bool {
        guard response.status == .unauthorized else { return false }
        return response.headerFields[values: .wwwAuthenticate].contains { field in
            let challenges = (try? Challenge.parse(field)) ?? []
            return challenges.contains { $0.isScheme("Bearer") && $0["error"] == "invalid_token" }
        }
    }

    /// The value of `Authorization` that carries `token`.
    package static func field(_ token: Secret) -> String { "Bearer \(token.reveal())" }

    private static let scheme = "Bearer"

    private static func hasScheme(_ field: String) -> Bool {
        Substring(field.utf8.prefix { $0 != UInt8(ascii: " ") }).equalsIgnoringASCIICase(scheme)
    }

    /// `b64token`, behind the scheme and at least one space.
    private static func token(_ field: String) -> Secret? {
        // An array, because each request of an app comes by here.
        let bytes = Array(field.utf8)
        var token = bytes.dropFirst(scheme.utf8.count).drop { $0 == UInt8(ascii: " ") }
        while token.last == UInt8(ascii: " ") { token.removeLast() }
        guard (1...limit).contains(token.count) else { return nil }
        let body = token.prefix { $0.isURIUnreserved || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/") }
        guard !body.isEmpty, token[body.endIndex...].allSatisfy({ $0 == UInt8(ascii: "=") }) else { return nil }
        return Secret(bytes: token)
    }
}
