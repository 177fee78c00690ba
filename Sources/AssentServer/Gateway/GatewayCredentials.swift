import AssentCore
import AssentEngine
import HTTPTypes

/// Who sends a request to the gateway.
struct GatewayCredentials: Sendable {
    /// What the request says about its sender.
    enum Caller: Sendable {
        /// Nothing, or a session that is not alive.
        case anonymous
        /// A session, and whether it came in a cookie, which a browser adds by itself.
        case session(PresentedSession, byCookie: Bool)
        /// An access token whose grant counts, but whose session has ended.
        case grantOnly
        /// An access token that lacks a scope that the route asks for.
        case insufficientScope
        /// An access token that does not count.
        case invalidToken
    }

    let sessions: Sessions
    let grants: [String: Grants]
    let cookie: SessionCookie

    /// Scheme, host and port under which clients know the gateway: an audience that access tokens may have here.
    let publicOrigin: String

    /// Finds the caller. An access token decides alone: a bad one is not made good by a cookie beside it.
    func caller(_ fields: HTTPFields, route: GatewayRoute) async throws -> Caller {
        let credentials = BearerCredentials(fields[values: .authorization])
        if credentials != .absent {
            guard case .token(let bearer) = credentials, let grants = grants[route.realm] else { return .invalidToken }
            guard let grant = try await grants.access(token: bearer),
                isMeant(grant.audience, for: route, issuer: grants.configuration.issuer)
            else { return .invalidToken }
            guard Set(route.scopes).isSubset(of: grant.scopes) else { return .insufficientScope }
            guard let session = grant.session, session.realm == route.realm else { return .grantOnly }
            try await sessions.touch(session)
            return .session(
                PresentedSession(session, grantID: grant.grantID, keyThumbprint: grant.keyThumbprint), byCookie: false)
        }
        let inField = cookie.headerToken(fields)
        guard let token = inField ?? cookie.cookieToken(fields), let session = try await sessions.live(token: token),
            session.realm == route.realm
        else { return .anonymous }
        try await sessions.touch(session)
        return .session(PresentedSession(session), byCookie: inField == nil)
    }

    /// Whether a token of that audience is for what is behind the route (RFC 9068 §4): a token that another service was given
    /// must not let that service in here.
    private func isMeant(_ audience: [String], for route: GatewayRoute, issuer: String) -> Bool {
        audience.contains { name in
            route.audience.isEmpty ? name == issuer || name == publicOrigin : route.audience.contains(name)
        }
    }
}
