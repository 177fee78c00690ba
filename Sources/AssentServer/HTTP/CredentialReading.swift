import AssentCore
import AssentEngine
import HTTPTypes

extension PresentedCredentials {
    /// The longest access token that is looked at, in bytes.
    private static let tokenLimit = 16 << 10

    /// What the header says who sends the request.
    init(_ fields: HTTPFields, cookie: SessionCookie) {
        self.init(session: cookie.credential(fields), accessToken: Self.accessToken(fields))
    }

    /// The access token in `Authorization` (RFC 6750 §2.1). Several fields, an empty token or one that is too long are
    /// malformed: what is meant as an access token is never overlooked.
    static func accessToken(_ fields: HTTPFields) -> AccessTokenCredential {
        let values = fields[values: .authorization]
        guard values.contains(where: isBearer) else { return .none }
        guard values.count == 1, let value = values.first else { return .malformed }
        let token = value.utf8.dropFirst(Self.scheme.count).drop { $0 == UInt8(ascii: " ") }
        guard !token.isEmpty, token.count <= tokenLimit else { return .malformed }
        return .token(Secret(bytes: token))
    }

    private static let scheme = "bearer"

    private static func isBearer(_ value: String) -> Bool {
        Substring(value.utf8.prefix { $0 != UInt8(ascii: " ") }).lowercased() == scheme
    }
}

extension SessionCookie {
    /// The session's token, the header field first: a client that sends both means the field.
    func credential(_ fields: HTTPFields) -> SessionCredential? {
        if let token = headerToken(fields) { return SessionCredential(token: token, carrier: .field) }
        return cookieToken(fields).map { SessionCredential(token: $0, carrier: .cookie) }
    }
}
