import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

extension PresentedCredentials {
    /// What the header says who sends the request, at a door with this public origin.
    init(_ request: Request, cookie: SessionCookie, origin: String, server: ProofServer) {
        self.init(
            session: cookie.credential(request.headers),
            accessToken: TokenCredentials(request.headers[values: .authorization]),
            proof: PresentedProof(request, origin: origin, server: server))
    }
}

extension PresentedCredentials {
    /// What a session's token in the header, and the proof beside it, say who sends the request.
    init(
        sessionOf request: Request, cookie: SessionCookie, origin: String, server: ProofServer = .authorizationServer
    ) {
        self.init(
            session: cookie.credential(request.headers),
            proof: PresentedProof(request, origin: origin, server: server))
    }
}

extension PresentedProof {
    /// The request's proof. Its URL has the path as the client sent it, behind the origin by which clients know the
    /// door: `Host` is the client's own word, and a proxy may have changed it.
    init(_ request: Request, origin: String, server: ProofServer) {
        self.init(
            fields: request.headers[values: .dpop], method: request.method.rawValue,
            url: origin + (request.head.path ?? "/"), server: server)
    }
}

extension SessionCookie {
    /// The session's token, the header field first: a client that sends both means the field.
    func credential(_ fields: HTTPFields) -> SessionCredential? {
        if let token = headerToken(fields) { return SessionCredential(token: token, carrier: .field) }
        return cookieToken(fields).map { SessionCredential(token: $0, carrier: .cookie) }
    }
}
