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

    /// Scheme, host and port of the server's public URL, which proofs of keys name.
    let origin: String

    /// Who was found.
    struct Found: Sendable {
        let caller: RouteCaller

        /// The value of `DPoP-Nonce` for the reply, where it is time for a new one.
        var newNonce: String?
    }

    /// Who sends a request.
    ///
    /// - Throws: ``RouteRefusal`` when the row does not let them in; `StoreError`.
    func caller<Wire: RouteWire>(
        of request: Request, _ rule: RouteRule, realm: String, service: Wire.Service, _ wire: Wire
    ) async throws -> Found {
        try await caller(of: request, rule, asking: rule.caller, realm: realm, service: service, wire)
    }

    private func caller<Wire: RouteWire>(
        of request: Request, _ rule: RouteRule, asking asked: RouteRule.CallerRule, realm: String,
        service: Wire.Service, _ wire: Wire
    ) async throws -> Found {
        switch asked {
        case .anyone, .client, .device: return Found(caller: .unknown)
        case .ifAuthorized(let first, let otherwise):
            let asked = request.headers.contains(.authorization) ? first : otherwise
            return try await caller(of: request, rule, asking: asked, realm: realm, service: service, wire)
        case .optionalSession:
            switch try await callers.caller(withSession: session(of: request), realm: realm).through(rule.door) {
            case .session(let session, let carrier, let nonce):
                return Found(caller: .session(session, carrier), newNonce: nonce)
            case .refusedToken(let refusal): throw RouteRefusal.tokenRefused(refusal)
            case .anonymous, .foreignSession, .accessToken, .refusedKind: return Found(caller: .unknown)
            }
        case .session(let foreign):
            switch try await callers.caller(withSession: session(of: request), realm: realm) {
            case .session(let session, let carrier, let nonce):
                guard rule.door.admits(session) else { throw RouteRefusal.kind }
                return Found(caller: .session(session, carrier), newNonce: nonce)
            case .refusedToken(let refusal): throw RouteRefusal.tokenRefused(refusal)
            case .foreignSession where foreign == .forbidden: throw RouteRefusal.foreignSession
            default:
                try await refuseKind(of: request, rule, realm: realm)
                throw RouteRefusal.sessionRequired
            }
        case .accessToken:
            let (grant, nonce) = try Self.granted(
                try await callers.caller(withToken: try await token(of: request, rule, wire), realm: realm))
            guard rule.door.admits(grant.kind) else { throw RouteRefusal.kind }
            return Found(caller: .accessToken(grant), newNonce: nonce)
        case .confidentialClient(let scope):
            let requirement = AccessTokenRequirement(
                scopes: [scope], audience: wire.audience(of: service), includesIssuer: true,
                kinds: Door.relyingParty.kinds)
            let (grant, nonce) = try Self.granted(
                try await callers.caller(
                    with: try await token(of: request, rule, wire), realm: realm, requirement: requirement))
            guard let client = clients[realm]?.configuration.definition(of: grant.clientID) else {
                throw RouteRefusal.tokenRefused(
                    TokenRefusal(.clientUnknown, grant.sender == nil ? .bearer : .dpop))
            }
            return Found(caller: .confidentialClient(client), newNonce: nonce)
        }
    }

    /// Tells who has come to a door for sessions with an access token whose kind the door is not open for. Such a
    /// token is refused by its kind, and not as a missing session.
    private func refuseKind(of request: Request, _ rule: RouteRule, realm: String) async throws {
        let credentials = PresentedCredentials(
            accessToken: TokenCredentials(request.headers[values: .authorization]),
            proof: PresentedProof(request, origin: origin, server: .authorizationServer))
        guard let kind = try await callers.kind(ofToken: credentials, realm: realm), !rule.door.admits(kind) else {
            return
        }
        throw RouteRefusal.kind
    }

    /// The session and what proves its key.
    private func session(of request: Request) -> PresentedCredentials {
        PresentedCredentials(sessionOf: request, cookie: cookie, origin: origin)
    }

    /// The token and what proves its key. A session beside it is not read.
    private func token<Wire: RouteWire>(
        of request: Request, _ rule: RouteRule, _ wire: Wire
    ) async throws -> PresentedCredentials {
        PresentedCredentials(
            accessToken: try await wire.accessToken(of: request, rule),
            proof: PresentedProof(request, origin: origin, server: .authorizationServer))
    }

    private static func granted(_ caller: Caller) throws(RouteRefusal) -> (AccessGrant, newNonce: String?) {
        switch caller {
        case .accessToken(let grant, let nonce): return (grant, nonce)
        case .refusedToken(let refusal): throw .tokenRefused(refusal)
        case .refusedKind: throw .kind
        case .anonymous, .session, .foreignSession: throw .tokenRequired
        }
    }
}
