import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// `/json/…/sessions?_action=…` (am-server reference, sessions).
struct SessionRoutes: Sendable {
    let sessions: Sessions
    let cookie: SessionCookie

    /// Answers an action of a realm.
    func respond(to request: Request, realm: String) async throws -> Response {
        guard request.method == .post else { return .crest(405, "Use POST with _action.") }
        let body = try await request.jsonObject()
        let token = try target(of: request, body: body)
        switch try request.query("_action") {
        case "getSessionInfo": return try await information(token, resettingIdle: false)
        case "getSessionInfoAndResetIdleTime": return try await information(token, resettingIdle: true)
        case "validate": return try await validate(token, refreshing: try request.query("refresh") != "false")
        case "logout": return try await logout(token)
        case let action?:
            return .crest(501, "Action \(action.prefix(64)) not implemented for this resource")
        case nil: return .crest(400, "The parameter _action is missing.")
        }
    }

    /// Which session is meant: named in the body, the query, the field of the cookie's name, or the cookie, in this order. A
    /// client that logs an old session out has the new one's cookie beside it, and means the old one.
    private func target(of request: Request, body: JSONObject) throws -> Secret? {
        let inQuery = try request.query("tokenId")
        if let named = body["tokenId"]?.string ?? inQuery, !named.isEmpty { return Secret(named) }
        return cookie.token(request.headers)
    }

    private func information(_ token: Secret?, resettingIdle: Bool) async throws -> Response {
        guard let token, let session = try await sessions.live(token: token) else {
            return .crest(401, "Access Denied")
        }
        if resettingIdle { try await sessions.touch(session) }
        return .json(200, session.info)
    }

    private func validate(_ token: Secret?, refreshing: Bool) async throws -> Response {
        guard let token, let session = try await sessions.live(token: token) else {
            return .json(200, LiveSession.invalidation)
        }
        if refreshing { try await sessions.touch(session) }
        return .json(200, session.validation)
    }

    private func logout(_ token: Secret?) async throws -> Response {
        guard let token, let session = try await sessions.live(token: token) else {
            return .crest(401, "Access Denied")
        }
        let record = AuditRecord(
            "session.end", .success, reason: "logout", realm: session.realm, userID: session.user.id,
            sessionAuditID: session.auditID)
        guard try await sessions.end(id: session.id, recording: record) else {
            return .json(200, ["result": "Token has expired"], headers: [.setCookie: cookie.clearing])
        }
        return .json(200, ["result": "Successfully logged out"], headers: [.setCookie: cookie.clearing])
    }
}
