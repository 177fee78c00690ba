import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// Answers the requests of one table of routes, each in the same order, which no route can leave: the realm, the row,
/// a browser's preflight, the method, forgery, the caller, the handler, errors, and which pages may read the answer.
struct RouteRunner<Wire: RouteWire, Handlers: Sendable>: Sendable {
    /// How the table's answers look.
    let wire: Wire

    /// The table.
    let routes: [Route<Handlers, Wire.Service>]

    /// What answers its routes.
    let handlers: Handlers

    /// What serves each realm.
    let services: [String: Wire.Service]

    /// Who may call.
    let callers: CallerCheck

    /// Which pages are trusted.
    let origins: WebOrigins

    /// The first segments of the table's paths, by which a realm in AM's old form is told apart from an endpoint.
    private let firstSegments: Set<String>

    init(
        _ wire: Wire, _ routes: [Route<Handlers, Wire.Service>], handlers: Handlers, services: [String: Wire.Service],
        callers: CallerCheck, origins: WebOrigins
    ) {
        self.wire = wire
        self.routes = routes
        self.handlers = handlers
        self.services = services
        self.callers = callers
        self.origins = origins
        firstSegments = Set(routes.compactMap { $0.rule.path.split(separator: "/").first.map(String.init) })
    }

    /// A request's place: what its path and query lead to.
    private struct Place {
        let route: Route<Handlers, Wire.Service>
        let id: String
        let realm: String
        let service: Wire.Service
        let trusted: TrustedOrigins
    }

    /// Answers a request; `path` is what follows the table's own path.
    func respond(to request: Request, path: String, from client: ClientAddress) async throws -> Response {
        let place: Place
        do {
            place = try self.place(of: request, path)
        } catch {
            // Pages of all listed origins may read this: where the realm or the endpoint is wrong, a developer sees
            // that, and not a failed `fetch`.
            if let answer = origins.anywhere.preflight(request, methods: [.get, .post]) { return answer }
            var response = try wire.response(refusing: error, to: request, of: nil, realm: nil)
            origins.anywhere.open(&response, to: request.headers)
            return response
        }
        let rule = place.route.rule
        if let answer = preflight(request, rule, place.trusted) { return answer }
        var response: Response
        do {
            response = try await answer(request, place, from: client)
        } catch {
            response = try wire.response(refusing: error, to: request, of: rule, realm: place.realm)
            if case RouteRefusal.method = error { response.headers[.allow] = rule.allow }
        }
        wire.complete(&response, of: rule, service: place.service)
        open(&response, to: request, rule, place.trusted)
        return response
    }

    /// The realm, then the row.
    private func place(of request: Request, _ path: String) throws -> Place {
        let parameter = Wire.readsRealmParameter ? try request.query("realm") : nil
        guard let target = RealmPath(path, realmParameter: parameter, endpoints: firstSegments) else {
            throw RouteRefusal.noRoute
        }
        guard let service = services[target.realm], let trusted = wire.trusted(origins, realm: target.realm) else {
            throw RouteRefusal.unknownRealm(target.realm)
        }
        for route in routes {
            guard let id = route.rule.id(in: target.endpoint) else { continue }
            return Place(route: route, id: id, realm: target.realm, service: service, trusted: trusted)
        }
        throw RouteRefusal.noRoute
    }

    /// The method, forgery, what else the wire asks of requests, the caller, the handler.
    private func answer(_ request: Request, _ place: Place, from client: ClientAddress) async throws -> Response {
        let rule = place.route.rule
        guard rule.allows(request.method) else { throw RouteRefusal.method }
        if rule.cookie != .unguarded {
            let forgery = ForgeryCheck(cookie: callers.cookie).refusal(
                request.method, request.headers, place.trusted, givesCookie: rule.cookie == .given)
            if let forgery { throw RouteRefusal.forgery(forgery) }
        }
        try wire.check(request)
        let found = try await callers.caller(of: request, rule, realm: place.realm, service: place.service, wire)
        let call = RouteCall(
            request: request, rule: rule, id: place.id, realm: place.realm, service: place.service,
            trusted: place.trusted, caller: found.caller, client: client)
        var response: Response
        do {
            response = try await place.route.answer(handlers, call)
        } catch {
            // Errors carry a new nonce as well: the client's next proof needs it.
            response = try wire.response(refusing: error, to: request, of: rule, realm: place.realm)
        }
        response.give(nonce: found.newNonce)
        return response
    }

    /// The answer to a browser that asks whether a page may call a route (Fetch §3.3.2); `nil` for anything else.
    private func preflight(_ request: Request, _ rule: RouteRule, _ trusted: TrustedOrigins) -> Response? {
        switch rule.crossOrigin {
        case .sameOrigin, .listedOriginsForSessionChecks: return nil
        case .listedOrigins: return trusted.preflight(request, methods: rule.methods ?? [.get, .post])
        case .everyOrigin:
            if let answer = trusted.preflight(request, methods: rule.methods ?? [.get, .post]) { return answer }
            guard request.method == .options else { return nil }
            var response = Response(
                status: .noContent,
                headers: [
                    .accessControlAllowMethods: rule.allow,
                    .accessControlAllowHeaders: "Authorization, Content-Type, DPoP", .accessControlMaxAge: "600",
                ])
            open(&response, to: request, rule, trusted)
            return response
        }
    }

    /// Lets those pages read a response that may.
    private func open(
        _ response: inout Response, to request: Request, _ rule: RouteRule, _ trusted: TrustedOrigins
    ) {
        switch rule.crossOrigin {
        case .sameOrigin: break
        case .listedOrigins: trusted.open(&response, to: request.headers)
        case .listedOriginsForSessionChecks:
            if request.isSessionCheck { trusted.open(&response, to: request.headers) }
        case .everyOrigin:
            guard !trusted.open(&response, to: request.headers) else { return }
            response.headers[.accessControlAllowOrigin] = "*"
            response.headers[.accessControlExposeHeaders] = "WWW-Authenticate, DPoP-Nonce"
        }
    }
}
