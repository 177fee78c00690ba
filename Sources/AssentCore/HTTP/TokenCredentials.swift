/// What the `Authorization` fields of a request say about an access token. Every door of the server reads them here, so
/// that no scheme is a token at one and nothing at another.
package enum TokenCredentials: Equatable, Sendable {
    /// The request has no such field, or its scheme is not one for tokens.
    case absent
    /// There is more than one field, or not one token behind the scheme. The scheme is the one to answer with.
    case malformed(TokenScheme)
    /// A token. Nothing is known about it yet.
    case token(Secret, TokenScheme)

    /// How many bytes a token may have.
    package static let limit = 16 << 10

    /// Reads all values of `Authorization`.
    package init(_ fields: [String]) {
        guard fields.count <= 1 else {
            let schemes = fields.compactMap(TokenScheme.init(of:))
            self = .malformed(schemes.contains(.dpop) ? .dpop : .bearer)
            return
        }
        guard let field = fields.first, let scheme = TokenScheme(of: field) else {
            self = .absent
            return
        }
        self = Self.token(field, behind: scheme).map { .token($0, scheme) } ?? .malformed(scheme)
    }

    /// By which scheme the token came; `nil` without one.
    package var scheme: TokenScheme? {
        switch self {
        case .absent: nil
        case .malformed(let scheme), .token(_, let scheme): scheme
        }
    }

    /// `b64token` or `token68`, behind the scheme and at least one space.
    private static func token(_ field: String, behind scheme: TokenScheme) -> Secret? {
        var field = field
        // In place: a copy would stay in memory, and each request has a token.
        return field.withUTF8 { bytes -> Secret? in
            var token = bytes.dropFirst(scheme.rawValue.utf8.count).drop { $0 == UInt8(ascii: " ") }
            while token.last == UInt8(ascii: " ") { token.removeLast() }
            guard (1...limit).contains(token.count) else { return nil }
            let body = token.prefix(while: isCharacter)
            guard !body.isEmpty, token[body.endIndex...].allSatisfy({ $0 == UInt8(ascii: "=") }) else { return nil }
            return Secret(bytes: token)
        }
    }

    /// Letters come first, since most characters are some.
    private static func isCharacter(_ byte: UInt8) -> Bool {
        byte.isASCIILetter || byte.isURIUnreserved || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/")
    }
}
