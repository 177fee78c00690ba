import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// Stands in front of services and lets through what the policies allow: once, where they ask for a transaction.
final class Gateway: RequestHandler {
    /// Scheme, host and port under which clients know the gateway.
    private let publicOrigin: Origin

    /// Where clients find the server that signs users in (`am_uri`).
    private let serverURL: String

    private let routes: [GatewayRoute]
    private let access: GatewayAccess
    private let cookie: SessionCookie
    private let upstream: Upstream
    private let logger: Logger
    private let origin: String

    init(
        publicOrigin: Origin, serverURL: String, routes: [GatewayRoute], access: GatewayAccess, cookie: SessionCookie,
        upstream: Upstream, logger: Logger
    ) {
        self.publicOrigin = publicOrigin
        self.serverURL = serverURL
        self.routes = routes
        self.access = access
        self.cookie = cookie
        self.upstream = upstream
        self.logger = logger
        origin = publicOrigin.description
    }

    private static let methods: Set<HTTPRequest.Method> = [.get, .head, .options, .post, .put, .patch, .delete]
    private static let safeMethods: Set<HTTPRequest.Method> = [.get, .head, .options]

    func respond(to request: Request, from client: ClientAddress) async throws -> Response {
        do {
            return try await answer(request, from: client)
        } catch let error as RequestError {
            return .problem(error.status, error.message)
        } catch let error as EngineError {
            return .problem(error)
        } catch {
            logger.error("the gateway could not decide", metadata: ["error": "\(type(of: error))"])
            return .problem(503, "The gateway cannot decide now. Nothing was forwarded.", members: ["forwarded": "no"])
        }
    }

    private func answer(_ request: Request, from client: ClientAddress) async throws -> Response {
        guard Self.methods.contains(request.method) else { return .problem(405, "The method is not allowed.") }
        let codings = request.headers[values: .transferEncoding]
        guard codings.isEmpty || codings.map({ $0.lowercased() }) == ["chunked"] else {
            throw RequestError(400, "The only transfer coding that is taken is chunked.")
        }
        let (resource, transactionID) = try target(of: request)
        guard let route = GatewayRoute.answering(resource.path, of: routes) else {
            return .problem(404, "Nothing is behind this path.")
        }
        let admission = try await access.admit(
            GatewayInquiry(
                realm: route.realm, policySet: route.policySet, method: request.method.rawValue, resource: resource,
                credentials: PresentedCredentials(request.headers, cookie: cookie),
                accessToken: route.requirement(origin: origin)))
        if let refusal = refusal(of: admission.caller, request, route: route) { return refusal }
        let boundBody = admission.bindsBody ? try await boundBody(of: request, route: route) : nil
        let decision = await access.settle(
            GatewayRequest(
                admission, mediaType: request.headers[.contentType], body: boundBody, transactionID: transactionID,
                clientAddress: client.ipv4))
        switch decision {
        case .granted(let transaction):
            let forwarding = Forwarding(
                upstream: upstream, route: route, resource: resource,
                user: admission.caller.user?.username, transaction: transaction?.id, cookie: cookie,
                publicOrigin: publicOrigin)
            guard let transaction else { return await forwarding.send(request, boundBody: boundBody).response }
            let result = await access.forwarding(transaction) {
                await forwarding.send(request, boundBody: boundBody)
            }
            return Forwarding.response(to: result, transaction: transaction.id)
        case .advised(let advice, _):
            return try AdviceReply(serverURL: serverURL, publicOrigin: publicOrigin).reply(
                to: request, resource: resource, realm: route.realm, advice: advice)
        case .alreadyTaken(let record):
            return .problem(
                409, "This transaction was used before. Nothing was forwarded now.",
                members: ["transaction": .string(record.id), "outcome": record.outcome?.json ?? .null])
        case .denied(let denial): return deny(denial, route: route)
        }
    }

    /// Why a caller is refused before any policy is asked; `nil` when they are not.
    private func refusal(of caller: Caller, _ request: Request, route: GatewayRoute) -> Response? {
        switch caller {
        case .refusedToken(.insufficientScope):
            let challenge = #"Bearer error="insufficient_scope", scope="\#(route.scopes.joined(separator: " "))""#
            return .problem(
                403, "The access token lacks a scope that this needs.", headers: [.wwwAuthenticate: challenge])
        case .refusedToken: return unauthorized(.bearerRefused, route: route)
        case .session(_, .cookie):
            guard Self.safeMethods.contains(request.method) || isSameSite(request.headers, route: route) else {
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
        if type.isJSON {
            do {
                _ = try JSONValue.parse(bytes, duplicates: .rejectIgnoringCase)
            } catch {
                throw RequestError(400, "The request is no JSON that can be approved. \(error.detail)")
            }
        }
        return bytes
    }

    /// Whether a browser says that the request comes from our own pages, or from those that the route allows.
    private func isSameSite(_ fields: HTTPFields, route: GatewayRoute) -> Bool {
        if let origin = fields[.origin] {
            return origin == self.origin || route.allowedOrigins.contains(origin)
        }
        return fields[.secFetchSite].map { $0 == "same-origin" || $0 == "none" } ?? false
    }

    private func deny(_ denial: AccessDenial, route: GatewayRoute) -> Response {
        switch denial {
        case .noSession: unauthorized(.noSession, route: route)
        case .refused(let error): .problem(error)
        case .unavailable:
            .problem(503, "The gateway cannot decide now. Nothing was forwarded.", members: ["forwarded": "no"])
        default: .problem(403, "Access is denied.")
        }
    }

    private enum Missing {
        case noSession
        case bearerRefused
    }

    private func unauthorized(_ missing: Missing, route: GatewayRoute) -> Response {
        let challenge =
            switch missing {
            case .bearerRefused: #"Bearer error="invalid_token""#
            case .noSession: #"SSOADVICE realm="\#(route.realm)",am_uri="\#(serverURL)""#
            }
        let message =
            switch missing {
            case .bearerRefused: "The access token is expired, revoked, malformed, or meant for another service."
            case .noSession: "Sign in first."
            }
        return .problem(401, message, headers: [.wwwAuthenticate: challenge])
    }
}
