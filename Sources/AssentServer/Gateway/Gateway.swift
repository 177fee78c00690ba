import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// Stands in front of services and lets through what the policies allow: once, where they ask for a transaction.
struct Gateway: RequestHandler {
    /// Scheme, host and port under which clients know the gateway.
    private let publicOrigin: Origin

    /// Where clients find the server that signs users in (`am_uri`).
    private let serverURL: String

    private let hosts: ServedHosts
    private let routes: [GatewayRoute]
    private let access: GatewayAccess
    private let cookie: SessionCookie
    private let upstream: Upstream
    private let logger: Logger
    private let origin: String

    /// The origins of all routes, whose pages may read that a path leads nowhere; `nil` when no route lists any.
    private let anywhere: TrustedOrigins?

    init(
        publicOrigin: Origin, serverURL: String, hosts: ServedHosts, routes: [GatewayRoute], access: GatewayAccess,
        cookie: SessionCookie, upstream: Upstream, logger: Logger
    ) {
        self.publicOrigin = publicOrigin
        self.serverURL = serverURL
        self.hosts = hosts
        self.routes = routes
        self.access = access
        self.cookie = cookie
        self.upstream = upstream
        self.logger = logger
        origin = publicOrigin.description
        let listed = Set(routes.flatMap(\.allowedOrigins))
        anywhere = listed.isEmpty ? nil : TrustedOrigins(own: publicOrigin.description, listed: listed)
    }

    private static let methods: Set<HTTPRequest.Method> = [.get, .head, .options, .post, .put, .patch, .delete]
    private static let methodsInOrder = methods.sorted { $0.rawValue < $1.rawValue }
    private static let safeMethods: Set<HTTPRequest.Method> = [.get, .head, .options]

    func respond(to request: Request, from client: ClientAddress) async throws -> Response {
        var trusted = anywhere
        var response: Response
        do {
            guard hosts.serve(request.head.authority) else {
                return .problem(400, "The gateway does not serve the host that the request names.")
            }
            guard Self.methods.contains(request.method) else { return .problem(405, "The method is not allowed.") }
            let (resource, transactionID) = try target(of: request)
            guard let route = GatewayRoute.answering(resource.path, of: routes) else {
                if let answer = anywhere?.preflight(request, methods: Self.methodsInOrder) { return answer }
                throw RequestError(404, "Nothing is behind this path.")
            }
            let pages = TrustedOrigins(own: origin, listed: route.allowedOrigins)
            // A route that lists nobody leaves it to its service what pages may do.
            trusted = route.allowedOrigins.isEmpty ? nil : pages
            if let answer = pages.preflight(request, methods: Self.methodsInOrder) { return answer }
            response = try await answer(request, resource, transactionID, route, pages, from: client)
        } catch let error as RequestError {
            response = .problem(error.status, error.message)
        } catch let error as EngineError {
            response = .problem(error)
        } catch {
            logger.error("the gateway could not decide", metadata: ["error": "\(type(of: error))"])
            response = .problem(
                503, "The gateway cannot decide now. Nothing was forwarded.", members: ["forwarded": "no"])
        }
        if let trusted {
            // Who may read is said once, by the list, and not by the service.
            response.headers[.accessControlAllowOrigin] = nil
            response.headers[.accessControlAllowCredentials] = nil
            trusted.open(&response, to: request.headers)
        }
        return response
    }

    private func answer(
        _ request: Request, _ resource: CanonicalResource, _ transactionID: String?, _ route: GatewayRoute,
        _ pages: TrustedOrigins, from client: ClientAddress
    ) async throws -> Response {
        guard case .policies(let realm, let policySet) = route.access else {
            let forwarding = Forwarding(
                upstream: upstream, route: route, resource: resource, user: nil, transaction: nil, cookie: cookie,
                publicOrigin: publicOrigin, client: client.text)
            return await forwarding.send(request, boundBody: nil).response
        }
        let credentials = PresentedCredentials(request.headers, cookie: cookie)
        let admission = try await access.admit(
            GatewayInquiry(
                realm: realm, policySet: policySet, method: request.method.rawValue, resource: resource,
                credentials: credentials,
                accessToken: route.requirement(origin: origin)))
        if let refusal = refusal(of: admission.caller, request, route: route, pages, realm: realm) { return refusal }
        // Nobody without a session can have a transaction: their bodies are not even read.
        let needsBody = admission.bindsBody && admission.caller.presented != nil
        let boundBody = needsBody ? try await boundBody(of: request, route: route) : nil
        let decision = await access.settle(
            GatewayRequest(
                admission, mediaType: request.headers[.contentType], body: boundBody, transactionID: transactionID,
                clientAddress: client.ipv4, idempotencyKey: request.headers[.idempotencyKey]))
        switch decision {
        case .granted(let transaction):
            let forwarding = Forwarding(
                upstream: upstream, route: route, resource: resource,
                user: admission.caller.user?.username, transaction: transaction?.id, cookie: cookie,
                publicOrigin: publicOrigin, client: client.text)
            guard let transaction else { return await forwarding.send(request, boundBody: boundBody).response }
            let result = await access.forwarding(transaction) {
                await forwarding.send(request, boundBody: boundBody)
            }
            return Forwarding.response(to: result, transaction: transaction.id)
        case .advised(let advice, _):
            return try AdviceReply(serverURL: serverURL, publicOrigin: publicOrigin).reply(
                to: request, resource: resource, realm: realm, advice: advice,
                client: adviceClient(request, admission.caller, credentials, advice, pages, realm: realm))
        case .alreadyTaken(let record):
            return .problem(
                409, "This transaction was used before. Nothing was forwarded now.",
                members: ["transaction": .string(record.id), "outcome": record.outcome?.json ?? .null])
        case .denied(let denial): return deny(denial, realm: realm)
        }
    }

    private func adviceClient(
        _ request: Request, _ caller: Caller, _ credentials: PresentedCredentials, _ advice: Advice,
        _ pages: TrustedOrigins, realm: String
    ) -> AdviceReply.Client {
        var hasToken = false
        if case .accessToken = caller { hasToken = true }
        var isForeignPage = false
        if case .listed = pages.sender(of: request.headers) { isForeignPage = true }
        return AdviceReply.Client(
            isForeignPage: isForeignPage, hasTokenAlone: hasToken && credentials.session == nil,
            acrValues: hasToken ? access.acrValues(meeting: advice, realm: realm) : [])
    }

    /// Why a caller is refused before any policy is asked; `nil` when they are not.
    private func refusal(
        of caller: Caller, _ request: Request, route: GatewayRoute, _ pages: TrustedOrigins, realm: String
    ) -> Response? {
        switch caller {
        case .refusedToken(.insufficientScope):
            let challenge = #"Bearer error="insufficient_scope", scope="\#(route.scopes.joined(separator: " "))""#
            return .problem(
                403, "The access token lacks a scope that this needs.", headers: [.wwwAuthenticate: challenge])
        case .refusedToken: return unauthorized(.bearerRefused, realm: realm)
        case .session(_, .cookie):
            guard mayUseCookie(request, pages) else {
                return .problem(403, "A request with the session cookie must come from an allowed origin.")
            }
            return nil
        case .session(_, .field), .accessToken, .anonymous, .foreignSession: return nil
        }
    }

    private func target(of request: Request) throws -> (CanonicalResource, String?) {
        guard let path = request.head.path, path.utf8.first == UInt8(ascii: "/") else {
            throw RequestError(400, "The request target must be a path.")
        }
        let whole: CanonicalResource
        do {
            whole = try CanonicalResource(origin + path)
        } catch {
            throw RequestError(error == .tooLong ? 414 : 400, "The URL \(error).")
        }
        // The vendor's SDKs repeat a request with the ID token: it is not what was approved, and no service may see it.
        let (bare, _) = whole.removingParameter(WireName.idTokenParameter)
        let (resource, inQuery) = bare.removingParameter(WireName.transactionParameter)
        let named = inQuery + request.headers[values: .transactionID]
        guard Set(named).count <= 1, inQuery.count <= 1 else {
            throw RequestError(400, "The request names more than one transaction.")
        }
        return (resource, named.first.flatMap { $0.isEmpty ? nil : $0 })
    }

    /// The body, read whole, where a policy binds it: what is hashed is what will be forwarded.
    private func boundBody(of request: Request, route: GatewayRoute) async throws -> [UInt8] {
        guard request.headers[values: .contentType].count <= 1 else {
            throw RequestError(400, "The request has more than one Content-Type.")
        }
        guard request.headers[.contentEncoding].map({ $0.lowercased() == "identity" }) ?? true else {
            throw RequestError(415, "A request that must be approved cannot have a Content-Encoding.")
        }
        let type = try request.headers[.contentType].map { try BoundMediaType.required(route.mediaType, $0) }
        let bytes = try await request.bytes(upTo: route.maxBodyBytes)
        guard let type else {
            guard bytes.isEmpty else { throw BoundMediaType.refusal(of: route.mediaType) }
            return bytes
        }
        if type.isJSON { _ = try BoundJSON.parse(bytes, limits: JSONLimits(bytes: route.maxBodyBytes)) }
        return bytes
    }

    /// Whether a browser says that a request with the cookie comes from our own pages, or from those that are listed.
    /// One that changes nothing may also come from a link, and from who says nothing of the kind.
    private func mayUseCookie(_ request: Request, _ pages: TrustedOrigins) -> Bool {
        let fields = request.headers
        let site = fields[.secFetchSite]
        switch pages.sender(of: fields) {
        case .own, .listed: return true
        case .foreign: return Self.safeMethods.contains(request.method) && site != "cross-site"
        case .unnamed:
            guard Self.safeMethods.contains(request.method) else { return site == "same-origin" || site == "none" }
            return site != "cross-site" || fields[.secFetchMode] == "navigate"
        }
    }

    private func deny(_ denial: AccessDenial, realm: String) -> Response {
        switch denial {
        case .noSession: unauthorized(.noSession, realm: realm)
        case .refused(let error): .problem(error)
        case .unavailable:
            .problem(503, "The gateway cannot decide now. Nothing was forwarded.", members: ["forwarded": "no"])
        case .outcomeUnknown:
            .problem(
                503, "It is not known whether the transaction was made or used. Nothing was forwarded.",
                members: ["code": .string(EngineError.outcomeUnknown.code.rawValue), "forwarded": "no"])
        default: .problem(403, "Access is denied.")
        }
    }

    private enum Missing {
        case noSession
        case bearerRefused
    }

    private func unauthorized(_ missing: Missing, realm: String) -> Response {
        let challenge =
            switch missing {
            case .bearerRefused: #"Bearer error="invalid_token""#
            case .noSession: #"SSOADVICE realm="\#(realm)",am_uri="\#(serverURL)""#
            }
        let message =
            switch missing {
            case .bearerRefused: "The access token is expired, revoked, malformed, or meant for another service."
            case .noSession: "Sign in first."
            }
        return .problem(401, message, headers: [.wwwAuthenticate: challenge])
    }
}
