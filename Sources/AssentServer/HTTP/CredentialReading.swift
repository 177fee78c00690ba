import AssentCore
import AssentEngine
import HTTPTypes

extension PresentedCredentials {
    /// What the header says who sends the request.
    init(_ fields: HTTPFields, cookie: SessionCookie) {
        self.init(session: cookie.credential(fields), accessToken: BearerCredentials(fields[values: .authorization]))
    }
}

extension SessionCookie {
    /// The session's token, the header field first: a client that sends both means the field.
    func credential(_ fields: HTTPFields) -> SessionCredential? {
        if let token = headerToken(fields) { return SessionCredential(token: token, carrier: .field) }
        return cookieToken(fields).map { SessionCredential(token: $0, carrier: .cookie) }
    }
}
