import AssentCore
import Hummingbird

/// Dispatches each request of the server's own address to the interface that it belongs to.
struct ServerHandler: RequestHandler {
    /// The path of the public URL, for example `/am`; empty when it has none.
    let basePath: String

    let json: JSONInterface
    let oauth: OAuthRoutes
    let signing: SigningRoutes
    let signIn: SignInRoute
    let health: HealthRoutes

    func respond(to request: Request, from client: ClientAddress) async throws -> Response {
        // TRACE would show a script what its browser adds (RFC 9110 §9.3.8); for CONNECT there is nobody.
        guard request.method != .trace, request.method != .connect else {
            return .crest(405, "The method is not allowed.")
        }
        let path = request.uri.path
        if let rule = RouteTable.rule(String(path.dropFirst()), of: RouteTable.root) {
            return await health.respond(rule)
        }
        if let realm = Self.below("/.well-known/oauth-authorization-server\(basePath)/oauth2", path) {
            return try await oauth.respond(to: request, path: realm + "/.well-known/openid-configuration")
        }
        guard path == basePath || path.hasPrefix(basePath + "/") else { return AMError.notFound.response }
        let rest = path == basePath ? "/" : String(path.dropFirst(basePath.count))
        if let below = Self.below("/oauth2", rest) { return try await oauth.respond(to: request, path: below) }
        if let below = Self.below("/signing", rest) {
            return await signing.respond(to: request, path: below, from: client)
        }
        if SignInRoute.answers(rest) { return await signIn.respond(to: request, path: rest, from: client) }
        guard let below = Self.below("/json", rest) else { return AMError.notFound.response }
        return try await json.respond(to: request, path: below, from: client)
    }

    private static func below(_ prefix: String, _ path: String) -> String? {
        path.hasPrefix(prefix + "/") ? String(path.dropFirst(prefix.count)) : nil
    }
}
