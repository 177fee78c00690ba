import AssentCore
import AssentEngine
import AssentJOSE
import HTTPTypes
import Hummingbird

/// The OAuth 2 / OpenID Connect endpoints of all realms, below `/oauth2`.
struct OAuthRoutes: Sendable {
    /// The first segments of the endpoints' paths.
    static let endpoints: Set<String> = [
        "authorize", "access_token", "token", "introspect", "userinfo", "connect", ".well-known",
    ]

    /// The largest form, in bytes.
    private static let formLimit = 64 << 10

    let grants: [String: Grants]
    let sessions: Sessions
    let cookie: SessionCookie

    /// Where a browser is sent to sign in.
    let serverURL: String

    /// Answers a request below `/oauth2`; `path` is what follows.
    func respond(to request: Request, path: String) async throws -> Response {
        guard
            let target = RealmPath(path, realmParameter: try request.query("realm"), endpoints: Self.endpoints),
            let grants = grants[target.realm]
        else { return .oauth(404, "not_found", "There is no such endpoint.") }
        guard let endpoint = OAuthEndpoint(rawValue: target.endpoint) else {
            return .oauth(404, "not_found", "There is no such endpoint.")
        }
        var response: Response
        do {
            response = try await answer(request, endpoint: endpoint, grants: grants)
        } catch let error as RequestError {
            response = .oauth(error)
        } catch {
            response = .oauth(OAuthError(answering: error), realm: target.realm)
        }
        if endpoint.isForEveryOrigin {
            response.headers[.accessControlAllowOrigin] = "*"
            response.headers[.accessControlExposeHeaders] = "WWW-Authenticate"
        }
        return response
    }

    private func answer(_ request: Request, endpoint: OAuthEndpoint, grants: Grants) async throws -> Response {
        if request.method == .options, endpoint.isForEveryOrigin { return endpoint.preflight }
        guard endpoint.methods.contains(request.method) else { return endpoint.methodNotAllowed }
        return switch endpoint {
        case .authorize: try await authorize(request, grants: grants)
        case .token:
            .json(
                200,
                try await grants.tokens(try await form(of: request), authorization: try authorization(request)).json)
        case .revoke: try await revoke(request, grants: grants)
        case .introspect:
            .json(
                200,
                try await grants.introspect(try await form(of: request), authorization: try authorization(request)))
        case .userInfo: .json(200, try await grants.userInfo(accessToken: try bearer(request)))
        case .keys: cacheable(try await grants.keys.published().json)
        case .endSession: try await endSession(request, grants: grants)
        case .discovery: cacheable(grants.metadata())
        }
    }

    private func authorize(_ request: Request, grants: Grants) async throws -> Response {
        let parameters = request.method == .post ? try await form(of: request) : try query(of: request)
        var session: LiveSession?
        if let token = cookie.token(request.headers) { session = try await sessions.live(token: token) }
        var decision: AuthorizationDecision?
        if let text = parameters["decision"] {
            guard request.method == .post, let said = AuthorizationDecision(rawValue: text), let session,
                let csrf = parameters["csrf"], grants.isCSRFToken(Secret(csrf), of: session)
            else { throw OAuthError(.badRequest, "The decision does not come from the user's own page.") }
            decision = said
        }
        switch try await grants.authorize(parameters, session: session, decision: decision) {
        case .redirect(let redirect): return Self.redirect(redirect.location)
        case .login(let demand):
            let goto = "\(grants.configuration.endpointBase)/authorize?\(demand.query)"
            var location = URLText.appending("realm", grants.configuration.realm, to: "\(serverURL)/UI/Login")
            location = URLText.appending("goto", goto, to: location)
            if let journey = demand.acrValues.first {
                location = URLText.appending("service", journey, to: location)
            }
            if demand.replacesSession { location = URLText.appending("prompt", "login", to: location) }
            return Self.redirect(location)
        case .consent:
            return Self.redirect(try grants.withoutConsent(parameters).location)
        }
    }

    private func revoke(_ request: Request, grants: Grants) async throws -> Response {
        try await grants.revoke(try await form(of: request), authorization: try authorization(request))
        return .json(200, [:])
    }

    private func endSession(_ request: Request, grants: Grants) async throws -> Response {
        let parameters = request.method == .post ? try await form(of: request) : try query(of: request)
        var response =
            switch try await grants.endSession(parameters) {
            case .done: Response(status: .noContent)
            case .redirect(let location): Self.redirect(location)
            }
        // The ID token of another session says nothing about the one that this browser has.
        var remaining: LiveSession?
        if let token = cookie.token(request.headers) { remaining = try await sessions.live(token: token) }
        if remaining == nil { response.headers[.setCookie] = cookie.clearing }
        return response
    }

    /// 302 without a body: AM's iOS SDK takes anything that is not JSON for a failure.
    private static func redirect(_ location: String) -> Response {
        Response(status: .found, headers: [.location: location, .cacheControl: "no-store"])
    }

    private func cacheable(_ value: JSONValue) -> Response {
        var response = Response.json(200, value)
        response.headers[.cacheControl] = "public, max-age=60"
        response.headers[.pragma] = nil
        response.headers[.expires] = nil
        return response
    }

    private func form(of request: Request) async throws -> OAuthParameters {
        let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased() ?? ""
        let bytes = try await request.bytes(upTo: Self.formLimit)
        guard bytes.isEmpty || type == "application/x-www-form-urlencoded" else {
            throw RequestError(415, "The media type must be application/x-www-form-urlencoded.")
        }
        return try OAuthParameters(urlEncoded: bytes)
    }

    private func query(of request: Request) throws -> OAuthParameters {
        try OAuthParameters(urlEncoded: Array((request.uri.query ?? "").utf8))
    }

    private func authorization(_ request: Request) throws -> String? {
        let values = request.headers[values: .authorization]
        guard values.count <= 1 else {
            throw OAuthError(.invalidRequest, "The request has more than one Authorization.")
        }
        return values.first
    }

    private func bearer(_ request: Request) throws -> Secret {
        switch BearerCredentials(try authorization(request).map { [$0] } ?? []) {
        case .absent: throw OAuthError.missingToken
        case .malformed: throw OAuthError.invalidToken
        case .token(let token): return token
        }
    }
}
