import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// Registration of instances of apps (RFC 7591), and what these do with it afterwards (RFC 7592).
extension OAuthRoutes {
    /// `register`.
    func register(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let provider = call.service
        let body = try await Self.metadata(call)
        let app = try InstanceMetadata.app(of: body, in: provider.configuration)
        try await provider.registration.countAttempt(at: call.client.limitKey, app)
        let metadata: InstanceMetadata
        do {
            metadata = try InstanceMetadata(body, of: app, clock: proofs.clock)
        } catch {
            if [.invalidSoftwareStatement, .unapprovedSoftwareStatement].contains(error.code) {
                try await provider.registration.noteRefusedStatement(for: app)
            }
            throw error
        }
        let policy = provider.configuration.noncePolicy(of: app.client)
        let presented = PresentedProof(call.request, origin: origin, server: .authorizationServer)
        let proof = try check(presented, of: metadata.keyThumbprint, token: nil, policy)
        let registered = try await provider.registration.register(
            metadata, of: app, token: try Self.initialToken(call.request), isSealed: callers.isSealed
        ) { try await proofs.claim(proof) }
        var response = Response.json(201, json(registered, of: call))
        response.give(nonce: proof.newNonce)
        return response
    }

    /// `register/{id}`.
    func registered(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        do {
            return try await answer(call)
        } catch let refusal as SenderProofRefusal {
            throw RouteRefusal.tokenRefused(TokenRefusal(refusal))
        } catch let error as OAuthError where error.code == .invalidToken {
            throw RouteRefusal.tokenRefused(TokenRefusal(.notOurs, .dpop))
        }
    }

    private func answer(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let registration = call.service.registration
        guard case .token(let token, .dpop) = TokenCredentials(call.request.headers[values: .authorization]) else {
            throw OAuthError.invalidToken
        }
        let (instance, app) = try await registration.instance(call.id, token: token)
        let policy = call.service.configuration.noncePolicy(of: app.client)
        let presented = PresentedProof(call.request, origin: origin, server: .authorizationServer)
        let proof = try check(presented, of: nil, token: token, policy)
        guard ConstantTime.equal(proof.thumbprint, instance.metadata.keyThumbprint) else {
            throw OAuthError.invalidToken
        }
        var response: Response
        switch call.request.method {
        case .put:
            let metadata = try InstanceMetadata(
                try await Self.metadata(call), of: app, as: instance.id, clock: proofs.clock)
            // An update to another version is judged by that one.
            try app.admit(metadata, isSealed: callers.isSealed)
            let newKey = try newKey(call.request, metadata, of: instance, token, policy)
            try await proofs.claim(proof)
            if let newKey { try await proofs.claim(newKey) }
            response = .json(
                200, json(try await registration.change(instance, of: app, to: metadata, token: token), of: call))
        case .delete:
            try app.admit(instance.metadata, isSealed: callers.isSealed)
            try await proofs.claim(proof)
            try await registration.end(instance, of: app)
            response = Response(status: .noContent, headers: [.cacheControl: "no-store"])
        default:
            try app.admit(instance.metadata, isSealed: callers.isSealed)
            try await proofs.claim(proof)
            response = .json(200, json(registration.told(instance, of: app, token: token), of: call))
        }
        response.give(nonce: proof.newNonce)
        return response
    }

    /// The proof of the key that is to take the place of the registered one; `nil` when the key stays.
    private func newKey(
        _ request: Request, _ metadata: InstanceMetadata, of instance: ClientInstance, _ token: Secret,
        _ policy: NoncePolicy
    ) throws -> CheckedProof? {
        let own = PresentedProof(request, origin: origin, server: .authorizationServer)
        let presented = PresentedProof(
            fields: request.headers[values: .dpopNewKey], method: own.method, url: own.url, server: own.server)
        guard metadata.keyThumbprint != instance.metadata.keyThumbprint else {
            guard presented.fields.isEmpty else {
                throw SenderProofRefusal(.invalidProof, "DPoP-New-Key is for a request with a new key in jwks.")
            }
            return nil
        }
        return try check(presented, of: metadata.keyThumbprint, token: token, policy)
    }

    /// The proof, which must be there and, if that is named, by the key of this thumbprint.
    private func check(
        _ presented: PresentedProof, of thumbprint: String?, token: Secret?, _ policy: NoncePolicy
    ) throws(SenderProofRefusal) -> CheckedProof {
        guard let proof = try proofs.check(presented, accessToken: token, policy: policy) else {
            throw SenderProofRefusal(.invalidProof, "The request has no proof of the key.")
        }
        guard thumbprint.map({ ConstantTime.equal($0, proof.thumbprint) }) ?? true else {
            throw SenderProofRefusal(.invalidProof, "The proof is by another key than the one in jwks.")
        }
        return proof
    }

    /// The initial access token, of which there may be one.
    private static func initialToken(_ request: Request) throws(OAuthError) -> Secret? {
        guard request.headers.contains(.authorization) else { return nil }
        guard case .token(let token, .bearer) = TokenCredentials(request.headers[values: .authorization]) else {
            throw .invalidToken
        }
        return token
    }

    /// The body. What is wrong with its JSON is wrong with the metadata (RFC 7591 §3.2.2).
    private static func metadata(_ call: RouteCall<OAuthProvider>) async throws -> JSONObject {
        let bytes = try await call.body()
        guard call.request.headers[.contentType].map(Request.isJSON) == true else {
            throw RequestError(415, "The media type must be application/json.")
        }
        do {
            let json = try JSONValue.parse(bytes, limits: JSONLimits(bytes: 32 << 10, depth: 16, values: 2000))
            if let object = json.object { return object }
        } catch {
            throw OAuthError(.invalidClientMetadata, "The body is not JSON that the server accepts. \(error.detail)")
        }
        throw OAuthError(.invalidClientMetadata, "The body is not a JSON object.")
    }

    /// What an instance is told (RFC 7591 §3.2.1).
    private func json(
        _ registered: ClientRegistration.Registered, of call: RouteCall<OAuthProvider>
    ) -> JSONValue {
        var object: JSONObject = [
            "client_id": .string(registered.id),
            "client_id_issued_at": .integer(registered.createdAt),
            "registration_client_uri":
                .string("\(call.service.configuration.endpointBase)/register/\(registered.id)"),
            "registration_access_token": .string(registered.token.reveal()),
        ]
        for member in registered.metadata.members { object[member.name] = member.value }
        return .object(object)
    }
}

extension HTTPField.Name {
    /// The proof of a key that is to take the place of the one that is registered.
    static let dpopNewKey = HTTPField.Name("DPoP-New-Key")!
}
