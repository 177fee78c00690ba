import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// Finds who sends a request, as the request's row asks. No handler asks for itself who may call it.
struct CallerCheck: Sendable {
    /// Looks callers up.
    let callers: Callers

    /// The session's cookie and field.
    let cookie: SessionCookie

    /// The clients of each realm.
    let clients: [String: OAuthProvider]

    /// Who sends a request.
    ///
    /// - Throws: ``RouteRefusal`` when the row does not let them in; `StoreError`.
    func caller<Wire: RouteWire>(
        of request: Request, _ rule: RouteRule, realm: String, service: Wire.Service, _ wire: Wire
    ) async throws -> RouteCaller {
        try await caller(of: request, rule, asking: rule.caller, realm: realm, service: service, wire)
    }

    private func caller<Wire: RouteWire>(
        of request: Request, _ rule: RouteRule, asking asked: RouteRule.CallerRule, realm: String,
        service: Wire.Service, _ wire: Wire
    ) async throws -> RouteCaller {
        switch asked {
        case .anyone, .client, .device: return .unknown
        case .ifAuthorized(let first, let otherwise):
            let asked = request.headers.contains(.authorization) ? first : otherwise
            return try await caller(of: request, rule, asking: asked, realm: realm, service: service, wire)
        case .optionalSession:
            let caller = try await callers.caller(with: cookie.credential(request.headers), realm: realm)
            guard case .session(let session, let carrier) = caller else { return .unknown }
            return .session(session, carrier)
        case .session(let foreign):
            switch try await callers.caller(with: cookie.credential(request.headers), realm: realm) {
            case .session(let session, let carrier): return .session(session, carrier)
            case .foreignSession where foreign == .forbidden: throw RouteRefusal.foreignSession
            default: throw RouteRefusal.sessionRequired
            }
        case .accessToken:
            let token = try await wire.accessToken(of: request, rule)
            switch try await callers.caller(with: token, realm: realm) {
            case .accessToken(let grant): return .accessToken(grant)
            case .refusedToken: throw RouteRefusal.tokenRefused
            default: throw RouteRefusal.tokenRequired
            }
        case .confidentialClient(let scope):
            let credentials = PresentedCredentials(accessToken: try await wire.accessToken(of: request, rule))
            let requirement = AccessTokenRequirement(
                scopes: [scope], audience: wire.audience(of: service), includesIssuer: true)
            switch try await callers.caller(with: credentials, realm: realm, requirement: requirement) {
            case .accessToken(let grant):
                guard let client = clients[realm]?.configuration.client(grant.clientID) else {
                    throw RouteRefusal.tokenRefused
                }
                guard client.kind != .public else { throw RouteRefusal.publicClient }
                return .confidentialClient(client)
            case .refusedToken: throw RouteRefusal.tokenRefused
            default: throw RouteRefusal.tokenRequired
            }
        }
    }
}
