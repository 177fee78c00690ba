import AssentCore
import AssentEngine
import AssentStore
import HTTPTypes
import Hummingbird
import Logging

/// Sends each request of the server's own address to its room.
struct ServerHandler: RequestHandler {
    /// The first segments of the paths below `/json`.
    private static let jsonEndpoints: Set<String> = [
        "authenticate", "sessions", "policies", "serverinfo", "administration", "audit",
    ]

    /// The path of the public URL, for example `/am`; empty when it has none.
    let basePath: String

    let realms: Set<String>
    let authenticate: AuthenticateRoute
    let sessions: SessionRoutes
    let policies: PolicyRoutes
    let oauth: OAuthRoutes
    let administration: AdministrationRoutes
    let signIn: SignInRoute
    let health: HealthRoutes
    let cookie: SessionCookie
    let logger: Logger

    func respond(to request: Request, from client: ClientAddress) async throws -> Response {
        let path = request.uri.path
        if path == "/healthz" || path == "/readyz" { return await health.respond(path: path) }
        guard path == basePath || path.hasPrefix(basePath + "/") else { return .crest(404, "Resource not found.") }
        let rest = path == basePath ? "/" : String(path.dropFirst(basePath.count))
        if let below = Self.below("/oauth2", rest) { return try await oauth.respond(to: request, path: below) }
        if SignInRoute.answers(rest) { return await signIn.respond(to: request, path: rest, from: client) }
        guard let below = Self.below("/json", rest) else { return .crest(404, "Resource not found.") }
        do {
            return try await json(request, path: below, from: client)
        } catch let error as RequestError {
            return AMError(error).response
        } catch let error as EngineError {
            return AMError(error).response
        } catch let error as StoreError {
            logger.error("the database failed", metadata: ["error": "\(error)"])
            return AMError(EngineError(error)).response
        }
    }

    private func json(_ request: Request, path: String, from client: ClientAddress) async throws -> Response {
        guard
            let target = RealmPath(path, realmParameter: try request.query("realm"), endpoints: Self.jsonEndpoints)
        else { return .crest(404, "Resource not found.") }
        guard realms.contains(target.realm) else { return .crest(400, "Invalid realm, \(target.realm.prefix(200))") }
        guard isSameOriginOrCookieless(request) else {
            return .crest(403, "A request with the session cookie needs X-Requested-With or Accept-API-Version.")
        }
        if let refusal = APIVersion.refusal(request.headers) { return refusal }
        switch target.endpoint {
        case "authenticate": return try await authenticate.respond(to: request, realm: target.realm, from: client)
        case "sessions": return try await sessions.respond(to: request, realm: target.realm)
        case "policies": return try await policies.respond(to: request, realm: target.realm)
        case "administration", "audit":
            return try await administration.respond(to: request, realm: target.realm, endpoint: target.endpoint)
        case "serverinfo/*": return .json(200, ServerInformation(cookie: cookie, realm: target.realm).json)
        default: return .crest(404, "Resource not found.")
        }
    }

    /// AM's protection against forged requests: a browser cannot add these fields to another site's request unasked.
    private func isSameOriginOrCookieless(_ request: Request) -> Bool {
        if [.get, .head, .options].contains(request.method) { return true }
        guard cookie.cookieToken(request.headers) != nil else { return true }
        return request.headers.contains(.requestedWith) || request.headers.contains(.acceptAPIVersion)
    }

    private static func below(_ prefix: String, _ path: String) -> String? {
        path.hasPrefix(prefix + "/") ? String(path.dropFirst(prefix.count)) : nil
    }
}
