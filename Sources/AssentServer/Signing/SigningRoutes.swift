import AssentCore
import AssentEngine
import AssentSigningProtocol
import AssentStore
import HTTPTypes
import Hummingbird
import Logging

/// Transaction signing, below `/signing` and the realm: calls of devices, users and relying parties. Finds the realm,
/// the route and the caller, and answers errors as problem documents.
struct SigningRoutes: Sendable {
    let providers: [String: SigningProvider]

    /// The clients of each realm: relying parties are among them.
    let clients: [String: OAuthProvider]
    let callers: Callers
    let cookie: SessionCookie
    let origins: WebOrigins
    let logger: Logger

    private static let firstSegments = RouteTable.firstSegments(of: RouteTable.signing)

    /// Answers a request; `path` is what follows `/signing`.
    func respond(to request: Request, path: String, from client: ClientAddress) async -> Response {
        guard let target = RealmPath(path, realmParameter: nil, endpoints: Self.firstSegments),
            let provider = providers[target.realm], let trusted = origins.json(realm: target.realm)
        else {
            return .signing(SigningRefusal(.notFound, "This realm does not exist, or offers no transaction signing."))
        }
        let (pattern, id) = Self.pattern(of: target.endpoint)
        guard let rule = RouteTable.rule(pattern, of: RouteTable.signing) else {
            return .signing(SigningRefusal(.notFound))
        }
        if let answer = trusted.preflight(request, methods: rule.methods ?? []) { return answer }
        var response: Response
        do {
            response = try await answer(
                SigningCall(
                    request: request, rule: rule, id: id, realm: target.realm, provider: provider, client: client),
                trusted)
        } catch let error as RequestError {
            response = .signing(error)
        } catch let error as SigningRefusal {
            response = .signing(error)
        } catch {
            logger.error("signing failed", metadata: ["error": "\(error)"])
            response = .signing(SigningRefusal(answering: error))
        }
        // Also an error brings the nonce for the next try.
        if rule.path == "configuration" || rule.path.hasPrefix("device/") {
            response.headers[.signingNonce] = provider.door.nonce()
        }
        trusted.open(&response, to: request.headers)
        return response
    }

    /// A path as its row has it, and the id in it.
    private static func pattern(of endpoint: String) -> (String, String) {
        var segments = endpoint.split(separator: "/").map(String.init)
        guard segments.count > 1, ["invites", "containers", "transactions"].contains(segments[0]) else {
            return (endpoint, "")
        }
        let id = segments[1]
        segments[1] = "*"
        return (segments.joined(separator: "/"), id)
    }

    private func answer(_ call: SigningCall, _ trusted: TrustedOrigins) async throws -> Response {
        guard call.rule.allows(call.request.method) else {
            var response = Response.signing(RequestError(405, "Use \(call.rule.allow)."))
            response.headers[.allow] = call.rule.allow
            return response
        }
        if let device = DeviceCall(rawValue: String(call.rule.path.dropFirst("device/".count))),
            call.rule.path.hasPrefix("device/")
        {
            return try await answer(device, call)
        }
        let forgery = ForgeryCheck(cookie: cookie).refusal(call.request.method, call.request.headers, trusted)
        if let forgery { throw SigningRefusal(.forbidden, forgery) }
        switch call.rule.path {
        case "configuration": return .json(200, bytes: try await call.provider.door.configuration())
        case "invites", "invites/*", "invites/*/digits", "containers", "containers/*", "keys":
            return try await SigningUserRoutes(call: call, caller: try await user(call)).respond()
        case "transactions", "transactions/*":
            return try await SigningPartyRoutes(call: call, party: try await party(call)).respond()
        case "transactions/*/evidence": return try await evidence(call)
        default: throw SigningRefusal(.notFound)
        }
    }

    private func answer(_ device: DeviceCall, _ call: SigningCall) async throws -> Response {
        let type = call.request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        guard type == "application/jose" else {
            throw RequestError(415, "The request's media type must be application/jose.")
        }
        let proofs = call.request.headers[values: .signingProof]
        guard proofs.count <= 1 else { throw SigningRefusal(.badProof) }
        let body = try await call.request.bytes(upTo: call.rule.bodyLimit)
        return .jose(
            try await call.provider.door.answer(
                device, proof: proofs.first, body: body, address: call.client.limitKey ?? "none"))
    }

    private func user(_ call: SigningCall) async throws -> SigningCaller {
        let caller = try await callers.caller(with: cookie.credential(call.request.headers), realm: call.realm)
        guard let session = caller.session else { throw SigningRefusal(.unauthorized) }
        return SigningCaller(session)
    }

    /// The confidential client whose access token has the scope `signing`.
    private func party(_ call: SigningCall) async throws -> OAuthClient {
        let credentials = PresentedCredentials(
            accessToken: BearerCredentials(call.request.headers[values: .authorization]))
        let requirement = AccessTokenRequirement(
            scopes: ["signing"], audience: [call.provider.settings.issuer.name], includesIssuer: true)
        let caller = try await callers.caller(with: credentials, realm: call.realm, requirement: requirement)
        guard case .accessToken(let grant) = caller,
            let client = clients[call.realm]?.configuration.client(grant.clientID)
        else { throw SigningRefusal(.unauthorized) }
        guard client.kind != .public else {
            throw SigningRefusal(.forbidden, "Only a client with a secret may ask users to sign.")
        }
        return client
    }

    private func evidence(_ call: SigningCall) async throws -> Response {
        let reader: SigningEvidence.Reader =
            if call.request.headers.contains(.authorization) {
                .client(try await party(call).id)
            } else {
                .caller(try await user(call))
            }
        return .json(200, bytes: try await call.provider.evidence.bundle(call.id, for: reader))
    }
}

/// A request as its route gets it.
struct SigningCall: Sendable {
    let request: Request
    let rule: RouteRule
    /// What stands for `*` in the row's path.
    let id: String
    let realm: String
    let provider: SigningProvider
    let client: ClientAddress

    /// The body as a JSON object; an empty one is an empty object.
    func json() async throws -> JSONObject { try await request.jsonObject(upTo: rule.bodyLimit) }
}

extension JSONObject {
    /// A member that is a text, if it is there.
    func signingText(_ name: String) throws(SigningRefusal) -> String? {
        guard let value = self[name] else { return nil }
        guard let text = value.string else { throw SigningRefusal(.invalidRequest, "\(name) must be a text.") }
        return text
    }

    /// Refuses members that nobody reads.
    func allow(_ names: Set<String>) throws(SigningRefusal) {
        for member in members where !names.contains(member.name) {
            throw SigningRefusal(.invalidRequest, "There is a member that this request does not have.")
        }
    }
}
