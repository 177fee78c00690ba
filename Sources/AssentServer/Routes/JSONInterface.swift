import AssentCore
import AssentEngine
import AssentStore
import HTTPTypes
import Hummingbird
import Logging

/// `/json`: AM's REST interface. Finds the realm, the route and the caller of a request, and answers errors in AM's
/// form.
struct JSONInterface: Sendable {
    /// Whose pages may call it, for each realm that there is.
    let origins: WebOrigins

    let callers: Callers
    let cookie: SessionCookie
    let authenticate: AuthenticateRoute
    let sessions: SessionRoutes
    let policies: PolicyRoutes
    let administration: AdministrationRoutes
    let consents: ConsentRoutes
    let logger: Logger

    /// Answers a request; `path` is what follows `/json`.
    func respond(to request: Request, path: String, from client: ClientAddress) async throws -> Response {
        // Until the realm is known: a page that has its name wrong may read that it is wrong.
        var trusted = origins.anywhere
        var response: Response
        do {
            let target = try target(of: request, path: path)
            guard let pages = origins.json(realm: target.realm) else {
                throw EngineError(.unknownRealm, about: String(target.realm.prefix(200)))
            }
            trusted = pages
            response = try await answer(request, target, pages, from: client)
        } catch let error as AMError {
            response = error.response
        } catch let error as RequestError {
            response = AMError(error).response
        } catch let error as EngineError {
            response = AMError(error).response
        } catch let error as StoreError {
            logger.error("the database failed", metadata: ["error": "\(error)"])
            response = AMError(EngineError(error)).response
        }
        if response.status.kind != .successful, let answer = trusted.preflight(request, methods: [.get, .post]) {
            return answer
        }
        trusted.open(&response, to: request.headers)
        return response
    }

    private static let firstSegments = RouteTable.firstSegments(of: RouteTable.json)

    private func target(of request: Request, path: String) throws -> RealmPath {
        guard
            let target = RealmPath(path, realmParameter: try request.query("realm"), endpoints: Self.firstSegments)
        else { throw AMError.notFound }
        return target
    }

    private func answer(
        _ request: Request, _ target: RealmPath, _ trusted: TrustedOrigins, from client: ClientAddress
    ) async throws -> Response {
        let named = RouteTable.rule(target.endpoint, of: RouteTable.json)
        if let named, let answer = trusted.preflight(request, methods: named.methods ?? [.get, .post]) {
            return answer
        }
        let forgery = ForgeryCheck(cookie: cookie).refusal(
            request.method, request.headers, trusted, givesCookie: target.endpoint == "authenticate")
        if let forgery { throw AMError(403, forgery) }
        if let refusal = APIVersion.refusal(request.headers) { throw refusal }
        guard let rule = named else { throw AMError.notFound }
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
        case "consents": return try await consents.respond(to: call)
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
}
