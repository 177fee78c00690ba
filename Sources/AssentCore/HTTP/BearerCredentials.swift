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
        guard fields.contains(where: { Self.hasScheme($0.utf8.prefix { $0 != UInt8(ascii: " ") }) }) else {
            self = .absent
            return
        }
        guard fields.count == 1, let token = Self.token(fields[0].utf8) else {
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

    private static func hasScheme(_ scheme: Substring.UTF8View) -> Bool {
        Substring(scheme).equalsIgnoringASCIICase("Bearer")
    }

    /// `b64token`, behind the scheme and at least one space.
    private static func token(_ field: String.UTF8View) -> Secret? {
        let parts = field.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: true)
        guard parts.count == 2, hasScheme(parts[0]), (1...limit).contains(parts[1].count) else { return nil }
        let body = parts[1].prefix { $0 != UInt8(ascii: "=") }
        guard !body.isEmpty,
            body.allSatisfy({ $0.isURIUnreserved || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/") }),
            parts[1][body.endIndex...].allSatisfy({ $0 == UInt8(ascii: "=") })
        else { return nil }
        return Secret(bytes: parts[1])
    }
}
