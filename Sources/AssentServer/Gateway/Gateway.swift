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
    private let routes: [ServedRoute]
    private let decisions: any GatewayDecisions
    private let cookie: SessionCookie
    private let upstream: Upstream
    private let logger: Logger
    private let origin: String
    private let resourceOrigin: ResourceOrigin
    private let tunnels: TunnelCount

    /// The origins of all routes, whose pages may read that a path leads nowhere; `nil` when no route lists any.
    private let anywhere: TrustedOrigins?

    init(
        publicOrigin: Origin, serverURL: String, hosts: ServedHosts, routes: [GatewayRoute],
        decisions: any GatewayDecisions, cookie: SessionCookie, upstream: Upstream,
        tunnels: TunnelCount = TunnelCount(), logger: Logger
    ) {
        self.publicOrigin = publicOrigin
        self.serverURL = serverURL
        self.hosts = hosts
        self.decisions = decisions
        self.cookie = cookie
        self.upstream = upstream
        self.tunnels = tunnels
        self.logger = logger
        let origin = publicOrigin.description
        self.origin = origin
        resourceOrigin = ResourceOrigin(publicOrigin)
        self.routes = routes.map { ServedRoute($0, origin: origin, cookie: cookie) }
        let listed = Set(routes.flatMap(\.allowedOrigins))
        anywhere = listed.isEmpty ? nil : TrustedOrigins(own: origin, listed: listed)
    }

    static let methods: Set<HTTPRequest.Method> = [.get, .head, .options, .post, .put, .patch, .delete]
    private static let methodsInOrder = methods.sorted { $0.rawValue < $1.rawValue }
    private static let safeMethods: Set<HTTPRequest.Method> = [.get, .head, .options]

    func respond(to request: Request, from client: ClientAddress) async throws -> Response {
        var trusted = anywhere
        var response: Response
        do {
            guard hosts.serve(request.head.authority) else {
                return .problem(400, ServedHosts.refusal)
            }
            guard Self.methods.contains(request.method) else { return .problem(405, "The method is not allowed.") }
            let (resource, transactionID) = try target(of: request)
            guard let served = ServedRoute.answering(resource.path, of: routes) else {
                if let answer = anywhere?.preflight(request, methods: Self.methodsInOrder) { return answer }
                throw RequestError(404, "Nothing is behind this path.")
            }
            // A route that lists nobody leaves it to its service what pages may do.
            trusted = served.pages.listed.isEmpty ? nil : served.pages
            if let answer = served.pages.preflight(request, methods: Self.methodsInOrder) { return answer }
            guard decisions.isSealed || !served.route.requiresSealing else {
                throw EngineError(
                    .payloadEncryptionRequired,
                    "Calls of this route must be sealed: send it again with payload encryption (pe1).")
            }
            let isUpgrade = served.route.tunnels != nil && request.headers.contains(.upgrade)
            response = try await answer(
                Visit(
                    request: request, resource: resource, transactionID: transactionID, served: served, client: client,
                    handshake: isUpgrade ? try WebSocketHandshake(request.method, request.headers) : nil))
        } catch let error as RequestError {
            response = .problem(error.status, error.message)
            if error.status == 426 { response.headers[.secWebSocketVersion] = WebSocketHandshake.version }
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

    /// A request, and what it leads to. It is a class because it is large, and more than one closure holds it.
    private final class Visit: Sendable {
        let request: Request
        let resource: CanonicalResource
        let transactionID: String?
        let served: ServedRoute
        let client: ClientAddress
        /// What opens a WebSocket; `nil` for any other request.
        let handshake: WebSocketHandshake?

        init(
            request: Request, resource: CanonicalResource, transactionID: String?, served: ServedRoute,
            client: ClientAddress, handshake: WebSocketHandshake?
        ) {
            self.request = request
            self.resource = resource
            self.transactionID = transactionID
            self.served = served
            self.client = client
            self.handshake = handshake
        }
    }

    private func answer(_ visit: Visit) async throws -> Response {
        let request = visit.request
        if visit.handshake != nil, visit.served.pages.sender(of: request.headers) == .foreign {
            return .problem(403, "A page of this origin cannot open a WebSocket here.")
        }
        guard case .policies(let realm, let policySet) = visit.served.route.access else {
            let forwarding = forwarding(of: visit, grant: nil)
            if visit.handshake != nil, let tunnel = try await open(visit, forwarding) { return tunnel }
            return await forwarding.send(request, boundBody: nil).response
        }
        // What is spent below is not given back. Others are let in first, and then told.
        if visit.transactionID != nil, !streams(of: visit, grant: nil).hasPlace(for: request.headers) {
            return Forwarding.noPlace()
        }
        let credentials = PresentedCredentials(request, cookie: cookie, origin: origin, server: .gateway)
        let question = GatewayQuestion(
            inquiry: GatewayInquiry(
                realm: realm, policySet: policySet, method: request.method.rawValue,
                action: visit.served.route.actions.action(of: request.method, visit.resource),
                resource: visit.resource, credentials: credentials, accessToken: visit.served.requirement),
            mediaType: request.headers[.contentType], transactionID: visit.transactionID,
            clientAddress: visit.client.ip, idempotencyKey: request.headers[.idempotencyKey],
            mayUseCookie: credentials.session?.carrier == .cookie && mayUseCookie(visit),
            cacheSeconds: visit.served.route.cacheSeconds,
            authorization: request.headers[values: .authorization], identity: visit.served.route.identity?.service,
            issuer: origin)
        let body = BoundBodyReader(
            request, mediaType: visit.served.route.mediaType, limit: visit.served.route.maxBodyBytes)
        let answer = try await decisions.decide(question, body: body)
        var response = try await carryOut(answer.verdict, visit, question.inquiry)
        response.give(nonce: answer.newNonce)
        return response
    }

    private func carryOut(
        _ verdict: GatewayAnswer.Verdict, _ visit: Visit, _ inquiry: GatewayInquiry
    ) async throws -> Response {
        let request = visit.request
        switch verdict {
        case .granted(let grant, let boundBody):
            let forwarding = forwarding(of: visit, grant: grant)
            guard let transaction = grant.transaction else {
                if visit.handshake != nil, let tunnel = try await open(visit, forwarding) { return tunnel }
                return await forwarding.send(request, boundBody: boundBody).response
            }
            let result = await grant.forwarding { await forwarding.send(request, boundBody: boundBody) }
            return Forwarding.response(to: result, transaction: transaction)
        case .advised(let advice, let acrValues):
            return try AdviceReply(serverURL: serverURL, publicOrigin: publicOrigin).reply(
                to: request, resource: visit.resource, realm: inquiry.realm, advice: advice,
                client: adviceClient(visit, inquiry.credentials, acrValues: acrValues))
        case .alreadyTaken(let transaction, let outcome):
            return .problem(
                409, "This transaction was used before. Nothing was forwarded now.",
                members: ["transaction": .string(transaction), "outcome": outcome])
        case .refused(let refusal): return refuse(refusal)
        case .denied(let denial): return deny(denial, realm: inquiry.realm)
        }
    }

    /// Opens the WebSocket that a visit asks for, and stays with it; `nil` for any other request.
    private func open(_ visit: Visit, _ forwarding: Forwarding) async throws -> Response? {
        guard let handshake = visit.handshake, let settings = visit.served.route.tunnels else { return nil }
        return await TunnelOpening(
            route: visit.served.route, settings: settings, handshake: handshake,
            target: visit.served.target(of: visit.resource),
            fields: try await forwarding.fields(of: visit.request, boundBody: nil), count: tunnels,
            address: visit.client.limitKey, logger: logger, isGranted: forwarding.streams.isGranted
        ).run()
    }

    private func forwarding(of visit: Visit, grant: (any GatewayGrant)?) -> Forwarding {
        let transaction = grant?.transaction
        return Forwarding(
            upstream: upstream, served: visit.served, resource: visit.resource, user: grant?.user,
            transaction: transaction, publicOrigin: publicOrigin, client: visit.client.text,
            streams: streams(of: visit, grant: grant), identify: identify(visit, grant: grant))
    }

    /// What signs who calls; `nil` where the service is not told.
    private func identify(
        _ visit: Visit, grant: (any GatewayGrant)?
    ) -> (@Sendable (_ boundBody: [UInt8]?) async throws -> HTTPField?)? {
        guard let grant, let identity = visit.served.route.identity else { return nil }
        let transaction = grant.transaction
        return { [origin] boundBody in
            let spent = transaction.map { id in
                SpentRequest(
                    transaction: id, method: visit.request.method.rawValue, resource: visit.resource,
                    body: boundBody)
            }
            let token = try await grant.token(identity.service, issuer: origin, of: spent)
            return token.map { HTTPField(name: identity.field, value: $0.reveal()) }
        }
    }

    private func streams(of visit: Visit, grant: (any GatewayGrant)?) -> StreamWatch {
        var isGranted: (@Sendable () async -> Bool)?
        if let grant { isGranted = { await grant.isStillGranted() } }
        return StreamWatch(
            served: visit.served, count: tunnels, address: visit.client.limitKey, logger: logger, isGranted: isGranted)
    }

    private func adviceClient(
        _ visit: Visit, _ credentials: PresentedCredentials, acrValues: [String]
    ) -> AdviceReply.Client {
        // Who came with one that is not valid gets no advice.
        let scheme = credentials.accessToken.scheme
        var isForeignPage = false
        if case .listed = visit.served.pages.sender(of: visit.request.headers) { isForeignPage = true }
        return AdviceReply.Client(
            isForeignPage: isForeignPage, hasTokenAlone: scheme != nil && credentials.session == nil,
            scheme: scheme ?? .bearer, acrValues: acrValues)
    }

    private func refuse(_ refusal: CallerRefusal) -> Response {
        switch refusal {
        case .credentials(let refusal):
            var response = Response.problem(
                refusal.status, refusal.detail, headers: [.wwwAuthenticate: refusal.challenge])
            response.give(nonce: refusal.nonce)
            return response
        case .foreignPage:
            return .problem(403, "A request with the session cookie must come from an allowed origin.")
        case .kind: return .problem(EngineError(.tokenKind))
        }
    }

    private func target(of request: Request) throws -> (CanonicalResource, String?) {
        guard let path = request.head.path, path.utf8.first == UInt8(ascii: "/") else {
            throw RequestError(400, "The request target must be a path.")
        }
        let whole: CanonicalResource
        do {
            whole = try CanonicalResource(target: path, at: resourceOrigin)
        } catch {
            throw RequestError(error == .tooLong ? 414 : 400, "The URL \(error).")
        }
        // The vendor's SDKs repeat a request with the ID token: it is not what was approved, and no service may see it.
        let (bare, _) = whole.removingParameter(WireName.idTokenParameter)
        let (resource, inQuery) = bare.removingParameter(WireName.transactionParameter)
        let named = inQuery + request.headers[values: .transactionID]
        guard named.count <= 1 || Set(named).count == 1, inQuery.count <= 1 else {
            throw RequestError(400, "The request names more than one transaction.")
        }
        return (resource, named.first.flatMap { $0.isEmpty ? nil : $0 })
    }

    /// Whether a browser says that a request with the cookie comes from our own pages, or from those that are listed.
    /// One that changes nothing may also come from a link, and from who says nothing of the kind.
    private func mayUseCookie(_ visit: Visit) -> Bool {
        let request = visit.request
        let fields = request.headers
        let site = fields[.secFetchSite]
        switch visit.served.pages.sender(of: fields) {
        case .own, .listed: return true
        case .foreign: return Self.safeMethods.contains(request.method) && site != "cross-site"
        case .unnamed:
            // A browser always says which page opens a WebSocket (RFC 6455 §4.1).
            guard visit.handshake == nil else { return false }
            guard Self.safeMethods.contains(request.method) else { return site == "same-origin" || site == "none" }
            return site != "cross-site" || fields[.secFetchMode] == "navigate"
        }
    }

    private func deny(_ denial: AccessDenial, realm: String) -> Response {
        switch denial {
        case .noSession: unauthorized(realm: realm)
        case .refused(let error): .problem(error)
        case .tokenKind: .problem(EngineError(.tokenKind))
        case .unavailable:
            .problem(503, "The gateway cannot decide now. Nothing was forwarded.", members: ["forwarded": "no"])
        case .outcomeUnknown:
            .problem(
                503, "It is not known whether the transaction was made or used. Nothing was forwarded.",
                members: ["code": .string(EngineError.outcomeUnknown.code.rawValue), "forwarded": "no"])
        default: .problem(403, "Access is denied.")
        }
    }

    private func unauthorized(realm: String) -> Response {
        .problem(
            401, "Sign in first.",
            headers: [.wwwAuthenticate: #"SSOADVICE realm="\#(realm)",am_uri="\#(serverURL)""#])
    }
}
