import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// `/json/…/sessions?_action=…` (am-server reference, sessions). Why it looks at neither caller nor realm is said in
/// ``RouteTable/json``.
struct SessionRoutes: Sendable {
    let sessions: Sessions
    let cookie: SessionCookie

    /// Verifies proofs of keys, for all doors of the process.
    let proofs: SenderProofs

    /// The OpenID providers, by realm.
    let providers: [String: OAuthProvider]

    /// The public origin of the server, which is in the URLs that proofs are about.
    let origin: String

    /// Which pages are trusted in each realm.
    let origins: WebOrigins

    /// Answers an action on the session that the request names.
    func respond(to call: RouteCall<OAuthProvider>) async throws -> Response {
        let body = try await call.jsonObject()
        let target = try target(of: call.request, body: body)
        var proved: ProvedSession?
        if let token = target?.token {
            // The session's own realm says whether there must be a nonce, whatever the path names.
            proved = try await proofs.session(
                of: token, among: sessions, PresentedProof(call.request, origin: origin, server: .authorizationServer),
                policies: providers.mapValues { $0.configuration.noncePolicy(of: nil) })
        }
        if let session = proved?.session, target?.carrier == .cookie, !isTrusted(with: session, call) { proved = nil }
        if let session = proved?.session, !Door.ownSession.admits(session) { throw EngineError(.tokenKind) }
        var response = try await answer(call, proved?.session)
        response.give(nonce: proved?.proof?.newNonce)
        return response
    }

    private func answer(_ call: RouteCall<OAuthProvider>, _ session: LiveSession?) async throws -> Response {
        switch try call.action() {
        case "getSessionInfo": return .json(200, try Self.required(session).info)
        case "getSessionInfoAndResetIdleTime":
            let session = try Self.required(session)
            try await sessions.touch(session)
            return .json(200, session.info)
        case "validate":
            guard let session else { return .json(200, LiveSession.invalidation) }
            if try call.request.query("refresh") != "false" { try await sessions.noteUse(of: session) }
            return .json(200, session.validation)
        case "logout": return try await logout(try Self.required(session), call.request)
        case let action?: throw AMError.unknownAction(action)
        case nil: throw AMError.missingAction
        }
    }

    /// Which session is meant: named in the body, the query, the field of the cookie's name, or the cookie, in this
    /// order. A client that logs an old session out has the new one's cookie beside it, and means the old one.
    private func target(of request: Request, body: JSONObject) throws -> SessionCredential? {
        let inQuery = try request.query("tokenId")
        if let named = body["tokenId"]?.string ?? inQuery, !named.isEmpty {
            return SessionCredential(token: Secret(named), carrier: .field)
        }
        return cookie.credential(request.headers)
    }

    /// Whether the page that sends a request may use a cookie with this session. The path may name any realm, and the
    /// browser adds the one cookie that it has: a page that the path's realm trusts must be one that the session's
    /// realm trusts as well.
    private func isTrusted(with session: LiveSession, _ call: RouteCall<OAuthProvider>) -> Bool {
        let fields = call.request.headers
        guard session.realm != call.realm, case .listed = call.trusted.sender(of: fields) else { return true }
        guard let trusted = origins.json(realm: session.realm) else { return false }
        return trusted.sender(of: fields) != .foreign
    }

    private static func required(_ session: LiveSession?) throws(EngineError) -> LiveSession {
        guard let session else { throw .sessionRequired }
        return session
    }

    /// Whether the request has the cookie of another session that is alive.
    private func hasCookie(besides session: LiveSession, _ request: Request) async throws -> Bool {
        guard let token = cookie.cookieToken(request.headers), TokenHash.of(token) != session.id else { return false }
        return try await sessions.live(token: token) != nil
    }

    private func logout(_ session: LiveSession, _ request: Request) async throws -> Response {
        let record = AuditRecord(
            .sessionEnd, .success, reason: "logout", realm: session.realm, userID: session.user.id,
            sessionAuditID: session.auditID)
        let keepsCookie = try await hasCookie(besides: session, request)
        let hasEnded = try await sessions.end(id: session.id, recording: record)
        var headers = HTTPFields()
        if !keepsCookie { headers[values: .setCookie] = cookie.clearing(answering: request.headers) }
        return .json(
            200, ["result": hasEnded ? "Successfully logged out" : "Token has expired"], headers: headers)
    }
}
