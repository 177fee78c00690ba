import AssentCore
import AssentEngine
import AssentStore
import HTTPTypes
import Hummingbird
import Logging

/// `/json`: AM's REST interface. Finds the realm, the route and the caller of a request, and answers errors in AM's
/// form.
struct JSONInterface: Sendable {
    /// The realms that there are.
    let realms: Set<String>

    let callers: Callers
    let cookie: SessionCookie
    let authenticate: AuthenticateRoute
    let sessions: SessionRoutes
    let policies: PolicyRoutes
    let administration: AdministrationRoutes
    let logger: Logger

    /// Answers a request; `path` is what follows `/json`.
    func respond(to request: Request, path: String, from client: ClientAddress) async throws -> Response {
        do {
            return try await answer(request, path: path, from: client)
        } catch let error as AMError {
            return error.response
        } catch let error as RequestError {
            return AMError(error).response
        } catch let error as EngineError {
            return AMError(error).response
        } catch let error as StoreError {
            logger.error("the database failed", metadata: ["error": "\(error)"])
            return AMError(EngineError(error)).response
        }
    }

    private static let firstSegments = RouteTable.firstSegments(of: RouteTable.json)

    private func answer(_ request: Request, path: String, from client: ClientAddress) async throws -> Response {
        guard
            let target = RealmPath(path, realmParameter: try request.query("realm"), endpoints: Self.firstSegments)
        else { throw AMError.notFound }
        guard realms.contains(target.realm) else {
            throw EngineError(.unknownRealm, about: String(target.realm.prefix(200)))
        }
        guard isSameOriginOrCookieless(request) else {
            throw AMError(403, "A request with the session cookie needs X-Requested-With or Accept-API-Version.")
        }
        if let refusal = APIVersion.refusal(request.headers) { throw refusal }
        guard let rule = RouteTable.rule(target.endpoint, of: RouteTable.json) else { throw AMError.notFound }
        let caller = try await caller(request, rule: rule, realm: target.realm)
        guard rule.allows(request.method) else {
            let named = (rule.methods ?? []).map(\.rawValue).joined(separator: " or ")
            throw AMError(405, "Use \(named)" + (rule.takesAction ? " with _action." : "."))
        }
        let call = RouteCall(request: request, rule: rule, realm: target.realm, caller: caller, client: client)
        switch rule.path {
        case "authenticate": return try await authenticate.respond(to: request, realm: target.realm, from: client)
        case "sessions": return try await sessions.respond(to: call)
        case "policies": return try await policies.respond(to: call)
        case "administration": return try await administration.respond(to: call)
        case "audit": return try await administration.audit(call)
        case "serverinfo/*": return .json(200, ServerInformation(cookie: cookie, realm: target.realm).json)
        default: throw AMError.notFound
        }
    }

    private func caller(_ request: Request, rule: RouteRule, realm: String) async throws -> Caller {
        guard case .session(let foreign) = rule.caller else { return .anonymous }
        let caller = try await callers.caller(with: cookie.credential(request.headers), realm: realm)
        switch caller {
        case .session: return caller
        case .foreignSession where foreign == .forbidden: throw EngineError.forbidden
        default: throw EngineError.sessionRequired
        }
    }

    /// AM's protection against forged requests: a browser cannot add these fields to another site's request unasked.
    private func isSameOriginOrCookieless(_ request: Request) -> Bool {
        if [.get, .head, .options].contains(request.method) { return true }
        guard cookie.cookieToken(request.headers) != nil else { return true }
        return request.headers.contains(.requestedWith) || request.headers.contains(.acceptAPIVersion)
    }
}
