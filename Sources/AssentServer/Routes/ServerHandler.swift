import AssentCore
import HTTPTypes
import Hummingbird

/// Dispatches each request of the server's own address to the interface that it belongs to.
struct ServerHandler: RequestHandler {
    /// The path of the public URL, for example `/am`; empty when it has none.
    let basePath: String

    /// The hosts that requests may name. Those who ask for its health may name any: they come by addresses.
    let hosts: ServedHosts

    let json: RouteRunner<JSONWire, JSONRoutes>
    let oauth: RouteRunner<OAuthWire, OAuthRoutes>
    let signing: RouteRunner<SigningWire, SigningRoutes>
    let enforcement: RouteRunner<EnforcementWire, EnforcementRoutes>
    let signIn: SignInRoute
    let webLink: WebLinkRoute
    let trustFiles: TrustFileRoute
    let health: HealthRoutes

    func respond(to request: Request, from client: ClientAddress) async throws -> Response {
        // TRACE would show a script what its browser adds (RFC 9110 §9.3.8); for CONNECT there is nobody.
        guard request.method != .trace, request.method != .connect else {
            return .crest(405, "The method is not allowed.")
        }
        let path = request.uri.path
        if let answer = await health.respond(to: path) { return answer }
        guard hosts.serve(request.head.authority) else { return .crest(400, ServedHosts.refusal) }
        if path.hasPrefix("/.well-known/"),
            let realm = Self.below("/.well-known/oauth-authorization-server\(basePath)/oauth2", path)
        {
            return try await oauth.respond(
                to: request, path: realm + "/.well-known/openid-configuration", from: client)
        }
        guard let rest = path == basePath ? "/" : Self.below(basePath, path) else { return notFound(request) }
        if let below = Self.below("/oauth2", rest) {
            return try await oauth.respond(to: request, path: below, from: client)
        }
        if let below = Self.below("/signing", rest) {
            return try await signing.respond(to: request, path: below, from: client)
        }
        if let below = Self.below("/enforcement", rest) {
            return try await enforcement.respond(to: request, path: below, from: client)
        }
        if SignInRoute.answers(rest) { return await signIn.respond(to: request, path: rest, from: client) }
        if rest == WebLinkRoute.path { return await webLink.respond(to: request) }
        if let answer = await trustFiles.respond(to: request, path: rest) { return answer }
        guard let below = Self.below("/json", rest) else { return notFound(request) }
        return try await json.respond(to: request, path: below, from: client)
    }

    /// There is no such path, which pages of all listed origins may read.
    private func notFound(_ request: Request) -> Response {
        if let answer = json.origins.anywhere.preflight(request, methods: [.get, .post]) { return answer }
        var response = AMError.notFound.response
        json.origins.anywhere.open(&response, to: request.headers)
        return response
    }

    /// What follows a prefix, from the slash on; `nil` for a path that is not below it. By bytes: every request comes
    /// by here several times.
    private static func below(_ prefix: String, _ path: String) -> String? {
        let rest = path.utf8.dropFirst(prefix.utf8.count)
        guard rest.first == UInt8(ascii: "/"), path.utf8.starts(with: prefix.utf8) else { return nil }
        return String(Substring(rest))
    }
}
